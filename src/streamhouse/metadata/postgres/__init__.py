"""Metadata in PostgreSQL: for many processes."""
