"""Metadata in a SQLite file: for one process."""
