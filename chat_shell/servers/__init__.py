"""The gRPC server and the HTTP server, which run turns through the same service."""
