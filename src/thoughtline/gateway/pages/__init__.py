"""The gateway's own pages: status, models, the admin API of the reasoning cache, OpenAPI."""
