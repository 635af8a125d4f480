"""The Kafka protocol, sans-IO."""
