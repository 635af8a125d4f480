"""A Flume connection by hand, for tests of what is on the wire."""
