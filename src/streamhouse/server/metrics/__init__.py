"""What a node measures, gathered when Prometheus asks for it."""
