"""Spark sessions as this package wants them: quiet, on loopback, retrying tasks, and with our format known."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint
from streamhouse.spark.home import home_without_archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARROW_BATCH_ROWS = 50_000
"""Rows that cross between Python and the JVM at once: enough to hide the cost of a crossing."""

LOW_LATENCY: Mapping[str, str] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.pollingDelay": "2ms",
    "spark.sql.adaptive.enabled": "false",
}
"""For short micro-batches with a checkpoint on a local disk. Its files have no checksums then: Spark syncs none of them
to the disk in any case, and what a crash of the machine, not of the process, did to one may go unnoticed."""

_LOCAL = re.compile(r"local(\[(?P<cores>\*|\d+)(?P<tries>,\d+)?\])?|local-cluster\[.*\]")
_CONNECT = "sc://"
_CONNECT_MODE = ("spark.remote", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
_MASTERS = ("local", "spark://", "k8s://")
_TASK_TRIES = 4
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_LOG4J2 = Path(__file__).with_name("log4j2.properties")
_JAVA_HINT = "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"


def open_session(app_name: str, *, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, started if there is none. `conf` has the last word on every setting, and adds to
    the options for Java.

    On any other master than a local one the executors' Python must have this package installed."""
    conf = conf or {}
    master = conf.get("spark.master", master)
    _check_no_connect(master, conf)
    _check_master(master)
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InvalidConfig("PySpark is not installed", hint=install_hint("spark")) from error
    _check_java()
    is_local = _LOCAL.fullmatch(master) is not None
    if is_local:
        # Workers are to be what this process is, with the packages that it has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Else what listens besides the driver, such as a local cluster's workers, takes the machine's own address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = _combine({**_settings(), **(_local_settings(master) if is_local else {})}, conf)
    builder = SparkSession.builder.appName(app_name).master(_with_retries(master))
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with home_without_archives():
            session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        hint = _JAVA_HINT if error.getCondition() == "JAVA_GATEWAY_EXITED" else None
        raise InvalidConfig(f"Spark did not start: {error}", hint=hint) from error
    _register(session)
    return session


def _check_no_connect(master: str, conf: Mapping[str, str]) -> None:
    """PySpark looks at all of these, and at variables even if they are empty."""
    for address in (conf.get("spark.remote"), os.environ.get("SPARK_REMOTE"), master):
        if address and address.lower().startswith(_CONNECT):
            raise InvalidConfig(
                f"{address!r} is a Spark Connect server, which has a session of its own",
                hint=f"SparkSession.builder.remote({address!r}).getOrCreate() gives it, and it knows"
                " format('streamhouse') if the server's Python has this package",
            )
    given = conf.keys() | os.environ.keys()
    asking = next((name for name in _CONNECT_MODE if name in given), None)
    if asking is not None:
        raise InvalidConfig(
            f"{asking} makes every session one of Spark Connect, and a Connect server has a session of its own",
            hint=f"leave {asking} out, or ask for the server's: SparkSession.builder.remote('sc://HOST:PORT')",
        )


def _check_master(master: str) -> None:
    """Spark's Java process would end without a word that reaches us, as if Java were what is wrong."""
    if master != "yarn" and not master.startswith(_MASTERS):
        raise InvalidConfig(
            f"there is no master {master!r}", hint="it is local[*], spark://HOST:PORT, k8s://HOST:PORT or yarn"
        )


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (Path(home, "bin", "java").exists() if home else shutil.which("java")):
        where = f"JAVA_HOME, {home}" if home else "the PATH"
        raise InvalidConfig(f"Spark needs Java, and there is none on {where}", hint=_JAVA_HINT)


def _settings() -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_ROWS),
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        # A busy machine takes longer than the usual 15 s to start a worker.
        "spark.python.authenticate.socketTimeout": "120s",
    }


def _local_settings(master: str) -> dict[str, str]:
    java_options = f"-Xss8m -Dlog4j2.configurationFile={_LOG4J2.as_uri()}"
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **dict.fromkeys(_JAVA_OPTIONS, java_options),
        # The usual 200 are for clusters: here they are only overhead.
        "spark.sql.shuffle.partitions": str(_core_count(master)),
    }


def _combine(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    combined = {**ours, **theirs}
    for name in _JAVA_OPTIONS:
        if name in combined:
            combined[name] = f"{ours.get(name, '')} {theirs.get(name, '')}".strip()
    return combined


def _core_count(master: str) -> int:
    matched = _LOCAL.fullmatch(master)
    cores = matched["cores"] if matched else None
    return int(cores) if cores and cores.isdigit() else os.cpu_count() or 1


def _with_retries(master: str) -> str:
    """`local[N]` never tries a task again; `local[N,4]` does, as every other master."""
    matched = _LOCAL.fullmatch(master)
    if matched is None or matched["cores"] is None or matched["tries"] is not None:
        return master
    return f"local[{matched['cores']},{_TASK_TRIES}]"


def _register(session: SparkSession) -> None:
    from streamhouse.spark.datasource import StreamHouseDataSource

    session.dataSource.register(StreamHouseDataSource)
