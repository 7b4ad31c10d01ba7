"""The HTTP API. Nothing here but `address` and `listener` is imported before the first HTTP connection comes."""
