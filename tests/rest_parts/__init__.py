"""The REST API as its callers use it."""
