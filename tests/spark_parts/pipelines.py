"""Pipelines run in the worker's own session or by the command, and the events that tests feed them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient, NewTopic

from compat.record import Record
from node.wait import eventually
from spark_parts.driver import START_SECONDS, Driver, Hold
from spark_parts.rows import Row, consume
from spark_parts.session import HEAP, MASTER, QUICK_JAVA
from streamhouse.spark.pipelines.parsing import parse_pipeline, read_pipeline
from streamhouse.spark.pipelines.registry import STATE_VARIABLE, Registry, state_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamhouse.spark.pipelines.model import Pipeline
    from streamhouse.spark.pipelines.run import PipelineRun

_COMMAND = f"""
    import os, sys
    os.environ["{STATE_VARIABLE}"] = sys.argv.pop(1)
    from streamhouse.cli.main import main
    main()
"""


def pipeline_of(text: str, directory: Path, **variables: str) -> Pipeline:
    """Of a file `pipeline.yaml` in the directory, with this text."""
    return parse_pipeline(dedent(text), str(directory / "pipeline.yaml"), variables)


def pipeline_in(file: Path, endpoint: str, **variables: str) -> Pipeline:
    return read_pipeline(str(file), variables, endpoint=endpoint)


def start_once(spark: SparkSession, pipeline: Pipeline, shown: list[dict[str, object]] | None = None) -> PipelineRun:
    """Under way; `shown` takes what a console sink shows."""
    from streamhouse.spark.pipelines.run import PipelineRun

    rows = shown if shown is not None else []
    run = PipelineRun(
        spark, pipeline, once=True, show_rows=lambda sink, batch, first, count: rows.extend(first), note=print
    )
    run.start()
    return run


def finish(run: PipelineRun) -> None:
    """Until all that was there is processed."""
    try:
        eventually(lambda: not run.tend(), "the pipeline's end", timeout=START_SECONDS, pause=0.05)
        failure = run.failure()
        assert failure is None, failure
    finally:
        run.stop()


class PipelineCommand:
    """`streamhouse pipeline run` of a file in the directory, in a process and with a list of pipelines of its own.

    The text is without `master` and `conf`: those are for a session that starts quickly."""

    def __init__(self, text: str, directory: Path, *, master: str = MASTER, **variables: str) -> None:
        session = {
            "master": master,
            "conf": {"spark.driver.memory": HEAP, "spark.driver.extraJavaOptions": QUICK_JAVA},
        }
        # What is JSON is YAML.
        lines = [dedent(text), *(f"{name}: {json.dumps(value)}" for name, value in session.items())]
        whole = "\n".join(lines)
        for name, value in variables.items():
            whole = whole.replace(f"${{{name}}}", value)
        self._directory = directory
        self.state = directory / "state"
        self.file = directory / "pipeline.yaml"
        self.file.write_text(whole)

    @property
    def registry(self) -> Registry:
        return Registry(state_directory({STATE_VARIABLE: str(self.state)}))

    def start(self, *options: str, holds: Sequence[Hold] = ()) -> Driver:
        arguments = (str(self.state), "pipeline", "run", str(self.file), *options)
        return Driver(self._directory, _COMMAND, *arguments, holds=holds)


def create_topics(bootstrap: str, *names: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        done.result()


def json_records(events: Iterable[Mapping[str, Any]], key: str | None = None) -> list[Record]:
    return [
        Record(key=str(event[key]).encode() if key else None, value=json.dumps(event).encode(), timestamp_ms=None)
        for event in events
    ]


def json_values(bootstrap: str, topic: str) -> list[Any]:
    """In the order of partition and offset."""
    return [json.loads(row.value) for row in consume(bootstrap, topic) if row.value is not None]


def latest_values(bootstrap: str, topic: str) -> dict[str, Any]:
    """As a compacted topic would keep them: the last of each key."""
    return {row.key.decode(): json.loads(row.value) for row in consume(bootstrap, topic) if row.key and row.value}


def facts_of(letter: Row) -> dict[str, str]:
    """The headers that a dead letter was given."""
    return {
        name.removeprefix("streamhouse."): (value or b"").decode()
        for name, value in letter.headers
        if name.startswith("streamhouse.")
    }
