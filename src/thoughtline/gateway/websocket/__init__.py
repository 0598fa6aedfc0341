"""The Responses API over a WebSocket, for clients that speak it."""
