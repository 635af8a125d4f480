"""The one error of the demo: something that should hold did not."""

from __future__ import annotations


class DemoFailed(Exception):
    """Ends the demo with its message and exit code 1."""
