"""Nodes that ask one another over gRPC."""
