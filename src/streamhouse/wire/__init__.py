"""Protocols as bytes in, requests out: no sockets here."""
