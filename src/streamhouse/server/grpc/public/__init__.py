"""The gRPC services for clients (`wire/grpc/streamhouse_v1.proto`)."""
