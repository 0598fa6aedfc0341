"""The HTTP server: connections, requests and their answers, on uvicorn's protocol class."""
