"""Flume's protocol, bytes to messages and back: no sockets, no clock."""
