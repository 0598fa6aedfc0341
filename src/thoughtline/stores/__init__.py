"""Where sessions live: the port (`base`) and its implementations."""
