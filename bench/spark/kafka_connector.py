"""Spark's own Kafka source as a peer: its jars through Maven, which a session takes when it starts."""

from __future__ import annotations

from pathlib import Path

import pyspark

from bench.maven import Artifact, MavenFailed, fetch_jars

# Of the connector and of its token provider. Not every mirror has those of this PySpark; older ones run on it too.
VERSIONS = ((pyspark.__version__, pyspark.__version__), ("4.2.0", "4.2.0"), ("4.2.0", "4.0.0"))
CLIENTS_VERSION = "3.9.2"
POOL_VERSION = "2.13.1"


class ConnectorMissing(Exception):
    """It cannot be had here; the message says why."""


def fetch_connector(directory: Path) -> list[Path]:
    """The jars to add to a session, which are downloaded once."""
    problems = []
    for versions in VERSIONS:
        try:
            return sorted(fetch_jars(_artifacts(*versions), directory / f"jars-{'-'.join(versions)}").glob("*.jar"))
        except MavenFailed as problem:
            problems.append(str(problem))
    raise ConnectorMissing(f"not measured: {problems[0]}")


def _artifacts(connector: str, token_provider: str) -> list[Artifact]:
    """Each jar by name: what else they need is in PySpark, and their own lists lead to repositories besides Central."""
    return [
        Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", connector, alone=True),
        Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", token_provider, alone=True),
        Artifact("org.apache.kafka", "kafka-clients", CLIENTS_VERSION, alone=True),
        Artifact("org.apache.commons", "commons-pool2", POOL_VERSION, alone=True),
    ]
