"""Jars through Maven: downloaded once into a directory, whole or not at all."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DOWNLOAD_SECONDS = 600


class Artifact(NamedTuple):
    """`alone`: without what it says that it needs."""

    group: str
    name: str
    version: str
    alone: bool = False


class MavenFailed(Exception):
    """The jars cannot be had here; the message says why."""


def fetch_jars(artifacts: Sequence[Artifact], directory: Path) -> Path:
    """The directory, with the artifacts and all that they need in it."""
    if directory.is_dir():
        return directory
    if not shutil.which("mvn") or not shutil.which("java"):
        raise MavenFailed("no Maven or no Java on this machine")
    project = directory.parent / f"{directory.name}.project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    (project / "pom.xml").write_text(_pom(artifacts))
    partial = project / "jars"
    command = ["mvn", "-B", "-U", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={partial.absolute()}"]
    try:
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        raise MavenFailed(f"Maven did not finish within {DOWNLOAD_SECONDS} s") from None
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if "[ERROR]" in line]
        raise MavenFailed(f"Maven could not fetch the jars: {said[0][:300] if said else 'it does not say why'}")
    partial.rename(directory)
    shutil.rmtree(project)
    return directory


def _pom(artifacts: Sequence[Artifact]) -> str:
    dependencies = "".join(map(_dependency, artifacts))
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>streamhouse</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""


def _dependency(artifact: Artifact) -> str:
    nothing_else = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    return f"""
    <dependency>
      <groupId>{artifact.group}</groupId><artifactId>{artifact.name}</artifactId><version>{artifact.version}</version>
      {nothing_else if artifact.alone else ""}
    </dependency>"""
