"""The web console: pages over the REST API."""
