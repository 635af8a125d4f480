"""Pipelines described in YAML: topics and files in, SQL and Python in between, topics, tables and lakes out."""
