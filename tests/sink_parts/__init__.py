"""Exactly-once sinks without Spark: what tasks stage, and leaders that fail when told to."""
