"""Our own Kafka client: connection, producer, consumer, admin."""
