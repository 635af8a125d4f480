"""The Spark that the README shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_parts.nodes import SparkNode
from spark_parts.rows import produce, varied_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_README = Path(__file__).parents[2] / "README.md"


def test_the_topic_of_the_readme_is_shown_as_a_table(
    spark: SparkSession, embedded_node: SparkNode, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"^```python\n(from streamhouse\.spark.*?)^```", _README.read_text("utf-8"), re.M | re.DOTALL)
    topic = embedded_node.new_topic()
    produce(embedded_node.bootstrap, topic, varied_records(10, seed=1), codec="lz4")
    code = code.replace("http://127.0.0.1:8080", embedded_node.endpoint).replace('"orders"', repr(topic))
    exec(compile(code, "README.md", "exec"), {"__name__": "example"})
    table = capsys.readouterr().out
    assert "partition" in table
    assert len(re.findall(r"\|\s+0\|\s+\d+\|$", table, re.MULTILINE)) == 10
