"""Kafka messages to test with, and other people's codecs to hold ours against."""
