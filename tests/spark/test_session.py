from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from node.process import clean_environment
from spark_parts.driver import Driver, Hold
from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.session import open_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

OPEN_ONE = "from streamhouse.spark.session import open_session; open_session('without')"


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**clean_environment(), **environment},
    )


def environment_of_workers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow

    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict(
            {"python": [sys.executable], "key": [os.environ.get("AWS_ACCESS_KEY_ID")]}
        )


def test_a_second_session_of_the_process_is_the_first_one(spark: SparkSession) -> None:
    assert open_session("another").sparkContext is spark.sparkContext


def test_a_session_retries_its_tasks_and_listens_on_loopback_only(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()

    assert spark.sparkContext.master == "local[2,4]"
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_options_for_java_add_to_our_own(spark: SparkSession) -> None:
    options = spark.sparkContext.getConf().get("spark.driver.extraJavaOptions") or ""

    assert "log4j2.properties" in options
    assert "-XX:+UseSerialGC" in options


def test_workers_run_this_python_with_the_credentials_of_their_session(spark: SparkSession) -> None:
    frame = spark.range(1).mapInArrow(environment_of_workers, "python string, key string")

    assert [tuple(row) for row in frame.collect()] == [(sys.executable, "test-access-key")]


def test_times_are_shown_in_utc(spark: SparkSession) -> None:
    row = spark.sql("SELECT CAST(timestamp_millis(0) AS STRING) AS epoch").first()

    assert row is not None
    assert row["epoch"] == "1970-01-01 00:00:00"


def test_without_java_the_error_says_what_to_install() -> None:
    done = run_python(OPEN_ONE, PATH="/nowhere", JAVA_HOME="")

    assert "Spark needs Java, and there is none on the PATH (install Java 17" in done.stderr


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(InvalidConfig, match=f"none on JAVA_HOME, {tmp_path}"):
        open_session("without")


def test_without_pyspark_the_error_says_what_to_install() -> None:
    done = run_python(f"import sys; sys.modules['pyspark.errors'] = None; {OPEN_ONE}")

    assert "PySpark is not installed (in a checkout of StreamHouse: pip install '.[spark]')" in done.stderr


def test_a_connect_server_is_no_master_and_java_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidConfig, match="Spark Connect server") as caught:
        open_session("remote", master="sc://spark.example.com:15002")
    assert "SparkSession.builder.remote('sc://spark.example.com:15002').getOrCreate()" in str(caught.value)
    assert "Java" not in str(caught.value)

    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere:15002")
    with pytest.raises(InvalidConfig, match="'sc://elsewhere:15002' is a Spark Connect server"):
        open_session("remote")


@pytest.mark.parametrize("conf", [{"spark.master": "SC://host:15002"}, {"spark.remote": "SC://host:15002"}])
def test_a_connect_server_among_the_settings_is_named(conf: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match="'SC://host:15002' is a Spark Connect server"):
        open_session("remote", conf=conf)


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
@pytest.mark.parametrize("value", ["", "1"])
def test_a_variable_that_asks_for_connect_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(InvalidConfig, match=f"{variable} makes every session one of Spark Connect"):
        open_session("remote")


def test_a_setting_that_asks_for_connect_is_named() -> None:
    with pytest.raises(InvalidConfig, match=r"leave spark\.remote out"):
        open_session("remote", conf={"spark.remote": "local[2]"})


def test_the_settings_have_the_last_word_on_the_master() -> None:
    with pytest.raises(InvalidConfig, match="there is no master 'mesos://host:5050'"):
        open_session("elsewhere", conf={"spark.master": "mesos://host:5050"})


def test_a_master_that_spark_does_not_know_is_named_before_java_is_started() -> None:
    with pytest.raises(InvalidConfig, match=r"there is no master 'mesos://host:5050' \(it is local\[\*\]"):
        open_session("elsewhere", master="mesos://host:5050")


HELD_DRIVER = """
    import json, sys
    print("working", flush=True)
    json.dumps(1)
    json.dumps(2)
    print("past it", flush=True)
"""
SECOND_CALL = Hold(name="second", module="json", function="dumps", skip=1)


def test_a_driver_is_held_at_the_call_that_is_named_and_goes_on_when_told(tmp_path: Path) -> None:
    with Driver(tmp_path, HELD_DRIVER, holds=[SECOND_CALL]) as driver:
        driver.wait_at("second")
        assert driver.output() == "working\n"

        driver.let_go("second")
        assert driver.finish() == "working\npast it\n"


def test_a_driver_that_is_killed_where_it_is_held_does_nothing_more(tmp_path: Path) -> None:
    with Driver(tmp_path, HELD_DRIVER, holds=[SECOND_CALL]) as driver:
        driver.wait_at("second")
        driver.kill9()

        assert driver.output() == "working\n"
