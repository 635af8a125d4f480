"""The gRPC port: one listener, several services."""
