"""Decisions as pure functions of (state, event, now)."""
