"""Logs for maintenance jobs to work on, and what readers must find in them afterwards."""
