"""Speculative execution: two attempts of one task both run to their end, and its rows are in the log once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from node.wait import eventually
from sink_parts.staged import staged_keys
from spark_parts.driver import Driver, Hold
from spark_parts.nodes import SparkNode
from spark_parts.rows import consume, produce_with_every_codec, varied_records

TASKS = 4
CLUSTER_SECONDS = 900.0
"""Six JVMs start one after the other; on a busy machine they only must not hang."""

# The first attempt that has staged all of its rows is held there, until Spark has lost patience and another attempt of
# the same task is as far. The second hold counts what the first one lets pass: the other tasks, then that attempt.
STAGED = Hold(name="staged", module="streamhouse.spark.sink.writers", function="stage_rows", is_after=True)
STAGED_AGAIN = Hold(
    name="staged-again",
    module="streamhouse.spark.sink.writers",
    function="stage_rows",
    is_after=True,
    skip=TASKS - 1,
)
COPY = """
    import os, sys
    from pathlib import Path
    from spark_parts.standalone import cluster_conf, standalone
    from streamhouse.spark.session import open_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    endpoint, topic, copy, directory = sys.argv[1:]
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.efficiency.enabled": "false",
    }
    with standalone(Path(directory), ["127.0.0.1", "127.0.0.2"]) as master:
        spark = open_session("copy", master=master, conf={**cluster_conf(Path(directory)), **speculation})
        options = {"endpoint": endpoint, "subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
        found = spark.read.format("streamhouse").options(minPartitions="4", **options).load()
        writing = found.drop("topic").write.format("streamhouse").mode("append")
        writing.options(endpoint=endpoint, topic=copy).save()
        spark.stop()
"""


def task_of(staged_key: str) -> str:
    """A staged object is named for its batch, its task, and nothing else that two attempts have in common."""
    return staged_key.rpartition("/")[2].split("-")[1]


def test_two_attempts_of_a_task_that_both_finish_count_once(embedded_node: SparkNode, tmp_path: Path) -> None:
    node = embedded_node
    topic, copy = node.new_topic(TASKS), node.new_topic(TASKS)
    produce_with_every_codec(node.bootstrap, topic, varied_records(400))
    everything = consume(node.bootstrap, topic)
    arguments = (node.endpoint, topic, copy, str(tmp_path))

    with Driver(tmp_path, COPY, *arguments, holds=[STAGED, STAGED_AGAIN]) as driver:
        driver.wait_at(STAGED.name, timeout=CLUSTER_SECONDS)
        driver.wait_at(STAGED_AGAIN.name, timeout=CLUSTER_SECONDS)
        staged = Counter(map(task_of, staged_keys(node.endpoint)))
        assert sorted(staged.values()) == [1] * (TASKS - 1) + [2]
        assert consume(node.bootstrap, copy) == []
        driver.let_go(STAGED.name)
        driver.let_go(STAGED_AGAIN.name)
        driver.finish()

    copied = Counter(row._replace(topic=topic, offset=0) for row in consume(node.bootstrap, copy))
    assert copied == Counter(row._replace(offset=0) for row in everything)
    eventually(lambda: not staged_keys(node.endpoint), "what both attempts staged is removed")
