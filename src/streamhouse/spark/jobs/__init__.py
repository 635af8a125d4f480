"""Maintenance on Spark: the plan's rows are pointers to objects, which workers read and write by themselves."""
