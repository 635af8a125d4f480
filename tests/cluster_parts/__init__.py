"""Agents that take and hand over leases of a real metadata store without leading anything."""
