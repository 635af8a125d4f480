"""The Kafka listener."""
