"""Spark's own Kafka source as a peer: its jars through Maven, which a session takes when it starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark

DOWNLOAD_SECONDS = 300
# Of the connector and of its token provider. Not every mirror has those of this PySpark; older ones run on it too.
VERSIONS = ((pyspark.__version__, pyspark.__version__), ("4.2.0", "4.2.0"), ("4.2.0", "4.0.0"))
CLIENTS_VERSION = "3.9.2"
POOL_VERSION = "2.13.1"


class ConnectorMissing(Exception):
    """It cannot be had here; the message says why."""


def fetch_connector(directory: Path) -> list[Path]:
    """The jars to add to a session, which are downloaded once."""
    if not shutil.which("mvn"):
        raise ConnectorMissing("not measured: no Maven on this machine")
    problems = []
    for versions in VERSIONS:
        jars = directory / f"jars-{'-'.join(versions)}"
        try:
            if not jars.is_dir():
                _download(directory, versions, jars)
            return sorted(jars.glob("*.jar"))
        except ConnectorMissing as missing:
            problems.append(str(missing))
    raise ConnectorMissing(f"not measured: {problems[0]}")


def _download(directory: Path, versions: tuple[str, str], jars: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pom.xml").write_text(_project(*versions))
    partial = directory / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = ["mvn", "-B", "-U", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={partial.absolute()}"]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise ConnectorMissing(f"Maven did not finish within {DOWNLOAD_SECONDS} s") from None
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
        raise ConnectorMissing(
            f"Maven could not fetch the connector: {said[0][:300] if said else 'it does not say why'}"
        )
    partial.rename(jars)


def _project(connector: str, token_provider: str) -> str:
    """Each jar by name: what else they need is in PySpark, and their own lists lead to repositories besides Central."""
    jars = (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", connector),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", token_provider),
        ("org.apache.kafka", "kafka-clients", CLIENTS_VERSION),
        ("org.apache.commons", "commons-pool2", POOL_VERSION),
    )
    dependencies = "".join(
        f"""
    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""
        for group, artifact, version in jars
    )
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>connector</artifactId><version>1</version>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""
