"""`make bench-spark`: Spark's source, sink and jobs, each beside the same work on the same data without us."""
