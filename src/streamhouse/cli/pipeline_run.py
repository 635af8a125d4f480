"""Runs a pipeline in the foreground: signals, the registry's entry, and what is shown meanwhile."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from streamhouse.cli.pipeline_report import RunReport
from streamhouse.cli.pipeline_view import View, open_view
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.model import Pipeline
from streamhouse.spark.pipelines.registry import ENDED, FAILED, HEARTBEAT_MS, Registration, Registry, RunRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamhouse.spark.pipelines.run import PipelineRun

_POLL_SECONDS = 0.25
_SIGNALLED = 128


def run_pipeline(pipeline: Pipeline, registry: Registry, *, once: bool, as_json: bool) -> None:
    """Blocks until it has ended or was stopped; raises why it failed."""
    clock = SystemClock()
    with registry.register(pipeline.name) as registration, open_view(as_json=as_json) as view:
        report = RunReport(pipeline, pid=os.getpid(), now_ms=clock.now_ms())
        registration.write(report.record(clock.now_ms()))
        stopping = _stop_on_signals()
        try:
            view.note(f"starting Spark at {pipeline.master}")
            with open_pipeline_session(pipeline) as session:
                # Spark has put its own in the place of SIGINT's.
                _stop_on_signals(stopping)
                _watch(_started(session, pipeline, view, once=once), registration, report, view, stopping)
        except BaseException as error:
            registration.write(report.record(clock.now_ms(), state=FAILED, error=str(error) or type(error).__name__))
            raise
        registration.write(report.record(clock.now_ms(), state=ENDED))


@contextmanager
def open_pipeline_session(pipeline: Pipeline) -> Iterator[SparkSession]:
    """The pipeline's own; Spark ends with it."""
    try:
        import pyspark  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise InvalidConfig("PySpark is not installed", hint=install_hint("spark")) from error
    from streamhouse.spark.pipelines.run import pipeline_session
    from streamhouse.spark.session import open_session

    # What goes wrong is told in one line, by us.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    session = open_session(f"streamhouse pipeline {pipeline.name}", master=pipeline.master, conf=pipeline.conf)
    try:
        yield pipeline_session(session, pipeline)
    finally:
        session.stop()


def _started(session: SparkSession, pipeline: Pipeline, view: View, *, once: bool) -> PipelineRun:
    from streamhouse.spark.pipelines.run import PipelineRun

    run = PipelineRun(session, pipeline, once=once, show_rows=view.rows, note=view.note)
    run.start()
    return run


def _watch(
    run: PipelineRun, registration: Registration, report: RunReport, view: View, stopping: threading.Event
) -> None:
    clock = SystemClock()
    report.begin(run.guarantees)
    told = _Told(registration)
    try:
        while run.tend() and not stopping.wait(_POLL_SECONDS):
            _tell(run, told, report, view)
        if stopping.is_set():
            view.note("stopping, when the micro-batches under way are done")
    finally:
        run.stop()
    _tell(run, told, report, view)
    view.show(report.record(clock.now_ms(), state=ENDED))
    failure = run.failure()
    if failure is not None and not stopping.is_set():
        raise failure


class _Told:
    """What others read of this run: written when there is something new, and else so often that it is seen to live."""

    def __init__(self, registration: Registration) -> None:
        self._registration = registration
        self._written_at_ms = 0

    def write(self, record: RunRecord, *, is_new: bool) -> None:
        if is_new or record.updated_at_ms - self._written_at_ms >= HEARTBEAT_MS:
            self._registration.write(record)
            self._written_at_ms = record.updated_at_ms


def _tell(run: PipelineRun, told: _Told, report: RunReport, view: View) -> None:
    now_ms = SystemClock().now_ms()
    batches = run.poll()
    for batch in batches:
        report.add(batch)
        view.batch(run.pipeline.name, batch)
    report.refused_rows = run.refused_rows
    record = report.record(now_ms)
    told.write(record, is_new=bool(batches))
    view.show(record)


def _stop_on_signals(event: threading.Event | None = None) -> threading.Event:
    """The first one stops it; the second ends the process where it is, which costs no row."""
    stopping = event or threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(_SIGNALLED + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return stopping
