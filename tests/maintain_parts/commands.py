"""`streamhouse maintain …` in a process of its own, which can be stopped at a named point and killed there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark_parts.driver import Driver, Hold
from spark_parts.session import HEAP, QUICK_JAVA

_PROGRAM = """
    import sys
    from streamhouse.cli.main import run
    sys.exit(run(sys.argv[1:]))
"""
_SPARK = (
    "--master", "local[2]",
    "--spark-conf", f"spark.driver.memory={HEAP}",
    "--spark-conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}",
)  # fmt: skip


def maintain(directory: Path, *arguments: str, holds: Sequence[Hold] = ()) -> Driver:
    """`arguments` are those after `maintain`."""
    return Driver(directory, _PROGRAM, "maintain", *arguments, *_SPARK, "--json", holds=holds)


def kill9_at(hold: Hold, directory: Path, *arguments: str) -> None:
    """Run it up to there. What it was held in the middle of never goes on."""
    with maintain(directory, *arguments, holds=[hold]) as driver:
        driver.wait_at(hold.name)
        driver.kill9()
