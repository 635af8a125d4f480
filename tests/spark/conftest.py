"""The worker's Spark session and the nodes that its tests read and write. PySpark is imported when first used."""

from __future__ import annotations

from spark_parts.nodes import any_node, embedded_node, service_node
from spark_parts.session import spark

__all__ = ["any_node", "embedded_node", "service_node", "spark"]
