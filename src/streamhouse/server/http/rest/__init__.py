"""The REST API: what there is, how it is described, and what goes over the wire."""
