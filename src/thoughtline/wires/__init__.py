"""What moves bytes to an upstream: the port (`base`) and its implementations."""
