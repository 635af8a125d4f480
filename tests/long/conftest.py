"""The same session and nodes as in tests/spark."""

from __future__ import annotations

from spark_parts.nodes import any_node, embedded_node, service_node
from spark_parts.session import spark

__all__ = ["any_node", "embedded_node", "service_node", "spark"]
