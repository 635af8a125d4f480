"""Spark as the tests have it: one session for a whole worker, nodes to read and write, drivers to kill."""
