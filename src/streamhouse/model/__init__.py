"""Names, ids, settings and errors: what every layer speaks about."""
