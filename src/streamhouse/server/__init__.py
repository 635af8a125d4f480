"""Listeners: sockets to broker calls."""
