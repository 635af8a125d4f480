"""Topics in Spark's own declarative pipelines: the shipped example, run once, or with SWEEP a second time on what the
first has left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from compat.record import Record
from spark_parts.driver import START_SECONDS
from spark_parts.nodes import SparkNode
from spark_parts.pipelines import create_topics, json_values
from spark_parts.rows import produce
from spark_parts.session import QUICK_JAVA

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"
IS_LONG = bool(os.environ.get("SWEEP"))
STORAGE = "file:///tmp/streamhouse-declarative"


def order(number: int, cents: int) -> Record:
    value = {"order_id": f"O-{number}", "status": "placed", "country": "DE", "currency": "EUR", "total_cents": cents}
    return Record(key=None, value=json.dumps(value).encode())


def run(project: Path, endpoint: str) -> None:
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(project / "conf"),
        "STREAMHOUSE_ENDPOINT": endpoint,
    }
    done = subprocess.run(
        [binaries / "spark-pipelines", "run"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_topic_feeds_a_streaming_table_and_a_flow_writes_back_each_record_once(
    embedded_node: SparkNode, tmp_path: Path
) -> None:
    bootstrap = embedded_node.bootstrap
    create_topics(bootstrap, "orders", "large-orders")
    project = tmp_path / "declarative"
    shutil.copytree(EXAMPLE, project)
    specification = project / "spark-pipeline.yml"
    text = specification.read_text()
    assert STORAGE in text
    specification.write_text(text.replace(STORAGE, (tmp_path / "storage").as_uri()))
    with (project / "conf" / "spark-defaults.conf").open("a") as conf:
        conf.write(f"\nspark.driver.extraJavaOptions {QUICK_JAVA}\n")

    produce(bootstrap, "orders", [order(1, 9_999), order(2, 10_000), Record(key=None, value=b"oops")])
    run(project, embedded_node.endpoint)
    assert [large["order_id"] for large in json_values(bootstrap, "large-orders")] == ["O-2"]
    if not IS_LONG:
        return
    produce(bootstrap, "orders", [order(3, 50_000)])
    run(project, embedded_node.endpoint)
    assert sorted(large["order_id"] for large in json_values(bootstrap, "large-orders")) == ["O-2", "O-3"]
