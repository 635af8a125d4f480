"""One run: a node, a tuned Spark session, the connector if it can be had, and measurements that take turns."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from bench.native import Native
from bench.servers import Server, serving, start_node
from bench.spark.dropping_sink import DroppingSink
from bench.spark.filling import fill
from bench.spark.kafka_connector import ConnectorMissing, fetch_connector
from bench.spark.memory_source import MemorySource, keep
from bench.spark.plan import Plan, Topic
from bench.spark.processor import Cost, Family, cost_of, middle
from streamhouse.spark.session import LOW_LATENCY, open_session

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

REPOSITORY = Path(__file__).parents[2]
HEAP = "2g"
# Segments are there soon after the last record, and retention leaves alone what is measured.
NODE_FLAGS = ("--grpc-port", "0", "--flume-port", "0", "--segment-age", "2s", "--retention-interval", "24h")

Work = Callable[[], int]
"""Does something and returns how many records it was about."""


class SparkRun:
    """Everything that a scenario is given."""

    def __init__(
        self,
        *,
        plan: Plan,
        out: Path,
        console: Console,
        node: Server,
        endpoint: str,
        connector_missing: str,
        spark: SparkSession,
    ) -> None:
        self.plan = plan
        self.node = node
        self.endpoint = endpoint
        self.connector_missing = connector_missing
        self.spark = spark
        self.native = Native(out / "bin")
        self._work = out / "spark-work"
        self._console = console
        process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        self._family = Family(process.pid)
        self._names: dict[str, int] = {}
        self._filled: set[str] = set()

    def say(self, text: str) -> None:
        self._console.print(f"[dim]· {text}[/dim]", highlight=False)

    def directory(self, name: str) -> Path:
        """One that does not exist yet."""
        path = self._work / name
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    # -- topics -------------------------------------------------------------------------------------------------

    def fill(self, topic: Topic, *, partitions: int, name: str = "", **more: object) -> str:
        frames = self._work / "frames"
        filled = partial(fill, self.native, self.node, self.endpoint, topic, frames, partitions=partitions, name=name)
        return filled(**more)

    def filled(self, topic: Topic) -> str:
        """The topic with these records, written when first asked for."""
        if topic.name not in self._filled:
            self.say(f"filling a topic: {topic.records:,} records with values of {topic.values}")
            self.fill(topic, partitions=self.plan.partitions)
            self._filled.add(topic.name)
        return topic.name

    def new_name(self, base: str) -> str:
        self._names[base] = self._names.get(base, 0) + 1
        return f"{base}-{self._names[base]}"

    # -- frames -------------------------------------------------------------------------------------------------

    def topic(self, name: str) -> DataFrame:
        reader = self.spark.read.format("streamhouse").option("endpoint", self.endpoint)
        return reader.option("subscribe", name).load()

    def topic_stream(self, name: str) -> DataFrame:
        reader = self.spark.readStream.format("streamhouse").option("endpoint", self.endpoint)
        return reader.option("subscribe", name).option("startingOffsets", "earliest").load()

    def memory(self, name: str) -> DataFrame:
        """What `topic` yields, from memory."""
        return self.spark.read.format(MemorySource.name()).option("path", self.kept(name)).load()

    def memory_stream(self, name: str) -> DataFrame:
        return self.spark.readStream.format(MemorySource.name()).option("path", self.kept(name)).load()

    def kept(self, name: str) -> str:
        """The directory with what `topic` yields, written when first asked for."""
        directory = self._work / "memory" / name
        if not directory.is_dir():
            keep(self.topic(name), directory)
        return str(directory)

    def finish(self, stream: DataFrame, form: str, options: Mapping[str, str] | None = None) -> int:
        """All that is there now, through a streaming query; returns how many rows it took in."""
        query = self.start(stream, form, options, {"availableNow": True})
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    def start(
        self, stream: DataFrame, form: str, options: Mapping[str, str] | None, trigger: Mapping[str, object]
    ) -> StreamingQuery:
        checkpoint = self.directory(f"checkpoints/{self.new_name('checkpoint')}")
        writer = stream.writeStream.format(form).options(**(options or {}))
        return writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()  # type: ignore[arg-type]

    # -- measuring ----------------------------------------------------------------------------------------------

    def take_turns(self, works: Mapping[str, Work]) -> dict[str, Cost]:
        """Each as often as the plan says, in turns, after turns that only warm up; the median by processor time."""
        costs: dict[str, list[Cost]] = {name: [] for name in works}
        for turn in range(self.plan.warm_ups + self.plan.repeats):
            for name, work in works.items():
                cost = self.cost_of(work)
                if turn >= self.plan.warm_ups:
                    costs[name].append(cost)
        return {name: middle(each) for name, each in costs.items()}

    def cost_of(self, work: Work) -> Cost:
        self.node.settle()
        return cost_of(work, self._family.cpu_seconds, self.node.cpu_seconds)


def shortened(problem: Exception) -> str:
    """Without the stacks of the JVM and of the worker that a problem of Spark brings along."""
    first, *more = str(problem).splitlines() or [type(problem).__name__]
    cause = next((line for line in more if line.strip() and not line.startswith((" ", "\t"))), "")
    return f"{first} {cause}".strip()


@contextmanager
def spark_run(plan: Plan, out: Path, console: Console) -> Iterator[SparkRun]:
    """Builds and starts what a run needs, and ends it."""
    work = out / "spark-work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    Native(out / "bin").build()
    jars, missing = _connector(plan, out)
    port = _free_port()
    try:
        with serving(start_node(work / "node", "--http-port", str(port), *NODE_FLAGS)) as node:
            spark = open_session("bench", conf=_conf(work, jars))
            try:
                for limit in (MemorySource, DroppingSink):
                    spark.dataSource.register(limit)
                yield SparkRun(
                    plan=plan,
                    out=out,
                    console=console,
                    node=node,
                    endpoint=f"http://127.0.0.1:{port}",
                    connector_missing=missing,
                    spark=spark,
                )
            finally:
                spark.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _connector(plan: Plan, out: Path) -> tuple[list[Path], str]:
    """The jars of Spark's own Kafka source, or why there are none."""
    if not plan.peers:
        return [], "left out of the quick form"
    try:
        return fetch_connector(out / "spark-kafka"), ""
    except ConnectorMissing as missing:
        return [], str(missing)


def _conf(work: Path, jars: list[Path]) -> dict[str, str]:
    return {
        **LOW_LATENCY,
        "spark.driver.memory": HEAP,
        "spark.local.dir": str(work / "spark"),
        # Workers import the limits' data sources.
        "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
        "spark.executorEnv.AWS_REGION": os.environ.get("AWS_REGION", "us-east-1"),
        **({"spark.jars": ",".join(map(str, jars))} if jars else {}),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
