"""Members of the consumer group protocol, and what must hold between them and their group."""
