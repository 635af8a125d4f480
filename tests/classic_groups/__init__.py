"""Drives classic groups in tests: hands out tickets, keeps time, and collects the answers."""
