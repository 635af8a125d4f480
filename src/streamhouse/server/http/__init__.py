"""The HTTP port: one listener, its routes from small modules."""
