"""The object store behind a small protocol."""
