"""The Flume door."""
