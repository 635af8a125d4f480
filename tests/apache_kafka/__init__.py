"""Apache Kafka's own tools, Connect, MirrorMaker and Streams against a node: `make test-peers`."""
