"""The check of request logs: whether each model call begins with the one before. It needs no server."""
