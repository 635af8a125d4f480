"""A pipeline at work: a streaming query for each sink and one for the dead letters, in this process's Spark session."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidInput, NotFound, StreamHouseError, Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.pause import pause_ms
from streamhouse.spark.pipelines.checking import check_pipeline, dead_letter_mode
from streamhouse.spark.pipelines.dead_letters import of_refusals
from streamhouse.spark.pipelines.failure import as_error, is_late_start
from streamhouse.spark.pipelines.inputs import RealInputs
from streamhouse.spark.pipelines.model import Guarantee, OutputMode, Pipeline, Trigger
from streamhouse.spark.pipelines.modules import FunctionLoader
from streamhouse.spark.pipelines.parsing import DEAD_LETTER
from streamhouse.spark.pipelines.progress import OUTPUT_METRIC, OUTPUT_ROWS, Offsets, Progress, from_spark, positions_of
from streamhouse.spark.pipelines.records import ORIGIN
from streamhouse.spark.pipelines.sinks.console import RowPrinter
from streamhouse.spark.pipelines.sinks.open import open_sink
from streamhouse.spark.pipelines.sinks.parquet import ParquetFiles
from streamhouse.spark.pipelines.sinks.topic import RecordWriter
from streamhouse.spark.pipelines.sinks.writer import BatchId, BatchWriter, Refusal
from streamhouse.spark.pipelines.views import ViewBuilder
from streamhouse.wire.http.planning import LATEST, OffsetQuestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_QUERY_ID = "sql.streaming.queryId"
_REFUSED = "refused"
_POLL_MS = 50
_INITIALISATION_MS = 60_000
_INITIALISING = ("Initializing StreamExecution", "Initializing sources")
_MOST_FAILURES = 5
# That a Python process did not start in time says nothing about the pipeline: the machine is busy, and may be for long.
_MOST_LATE_STARTS = 30
_FIRST_PAUSE_MS = 1000
_LONGEST_PAUSE_MS = 16_000
_LAG_TIMEOUT_SECONDS = 2.0


def pipeline_session(session: SparkSession, pipeline: Pipeline) -> SparkSession:
    """One with settings and views of its own. A cast that fails gives NULL, as SQL in pipelines is to judge, not to end
    them; who wants errors sets spark.sql.ansi.enabled."""
    own = session.newSession()
    own.conf.set("spark.sql.ansi.enabled", "false")
    for name, value in pipeline.conf.items():
        if own.conf.isModifiable(name):
            own.conf.set(name, value)
    return own


@dataclass(slots=True, kw_only=True)
class _Query:
    """One sink's, started again when it fails. `failures` counts since the last batch that was done."""

    name: str
    guarantee: Guarantee
    stream: DataStreamWriter
    query: StreamingQuery
    last_reported: int = -1
    failures: int = 0
    failed_after: int = -1
    retry_at_ms: int | None = None

    @property
    def has_failed(self) -> bool:
        return not self.query.isActive and self.query.exception() is not None


class PipelineRun:
    """`start`, then `tend` and `poll` until the former says that it is over, then `failure`; `stop` at any time."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        *,
        once: bool,
        show_rows: RowPrinter,
        note: Callable[[str], None],
    ) -> None:
        self.pipeline = pipeline
        self._session = pipeline_session(session, pipeline)
        self._trigger = Trigger(interval_ms=None) if once else pipeline.trigger
        self._show_rows = show_rows
        self._note = note
        self._clock = SystemClock()
        self._queries: dict[str, _Query] = {}
        self._errors: dict[str, StreamHouseError] = {}
        self._refused = 0

    @property
    def guarantees(self) -> dict[str, Guarantee]:
        """By query; the dead letters' is a topic."""
        return {query.name: query.guarantee for query in self._queries.values()}

    @property
    def refused_rows(self) -> int:
        """Dead letters of sinks, in this run."""
        return self._refused

    def start(self) -> None:
        """InvalidPipeline before anything is read if it cannot run."""
        check_pipeline(self._session, self.pipeline)
        loader = FunctionLoader(self.pipeline.directory)
        try:
            self._start_all(loader)
        except PySparkException as error:
            self.stop(grace_ms=0)
            raise as_error(self.pipeline.name, error) from error
        except BaseException:
            self.stop(grace_ms=0)
            raise

    def _start_all(self, loader: FunctionLoader) -> None:
        views = ViewBuilder(self._session, self.pipeline, RealInputs(self._session, self.pipeline), loader.find).build()
        loader.send(self._session)
        for sink in self.pipeline.sinks:
            rows = views.rows[sink.rows_of].drop(ORIGIN)
            self._start(sink.name, sink.guarantee, open_sink(sink, self.pipeline, self._show_rows), rows, sink.mode)
        letters = views.dead_letters()
        if letters is not None:
            mode = dead_letter_mode(self._session, letters) or OutputMode.APPEND
            self._start(DEAD_LETTER, Guarantee.EXACTLY_ONCE, self._dead_letter_writer(), letters, mode)

    def tend(self) -> bool:
        """Start again what failed, after a pause that grows. False when all have ended, or one has failed for good."""
        try:
            mended = [self._mend(query) for query in self._queries.values()]
            under_way = [query.query.isActive or query.retry_at_ms is not None for query in self._queries.values()]
            return all(mended) and any(under_way)
        except Py4JError as error:
            raise _java_died() from error

    def poll(self) -> list[Progress]:
        """The micro-batches since the last call."""
        try:
            reports = [(query, report) for query in self._queries.values() for report in _new_reports(query)]
        except Py4JError as error:
            raise _java_died() from error
        latest = self._latest([positions_of(report) for _, report in reports])
        return [from_spark(query.name, report, latest) for query, report in reports]

    def failure(self) -> StreamHouseError | None:
        """Why it ended, if not as it should."""
        failed = [query for query in self._queries.values() if query.has_failed]
        return self._reason(failed[0]) if failed else None

    def stop(self, *, grace_ms: int = 10_000) -> None:
        """Let micro-batches that are under way finish, for some time: they would only run again."""
        deadline_ms = self._clock.monotonic_ms() + grace_ms
        try:
            for query in self._queries.values():
                while _is_busy(query.query) and self._clock.monotonic_ms() < deadline_ms:
                    pause_ms(_POLL_MS)
                query.query.stop()
        except Py4JError as error:
            raise _java_died() from error

    def _mend(self, query: _Query) -> bool:
        """False if it has failed for good."""
        if not query.has_failed:
            return True
        now_ms = self._clock.monotonic_ms()
        if query.retry_at_ms is None:
            if query.last_reported > query.failed_after:
                query.failures = 0
            query.failed_after = query.last_reported
            query.failures += 1
            reason = self._reason(query)
            most = _MOST_LATE_STARTS if is_late_start(reason) else _MOST_FAILURES
            if isinstance(reason, InvalidInput | NotFound) or query.failures > most:
                return False
            self._note(f"{reason}; trying again")
            query.retry_at_ms = now_ms + min(_FIRST_PAUSE_MS * 2 ** (query.failures - 1), _LONGEST_PAUSE_MS)
        elif now_ms >= query.retry_at_ms and not any(_is_initialising(each.query) for each in self._queries.values()):
            self._errors.pop(query.name, None)
            query.retry_at_ms = None
            query.query = query.stream.start()
        return True

    def _reason(self, query: _Query) -> StreamHouseError:
        exception = query.query.exception()
        assert exception is not None
        return self._errors.get(query.name) or as_error(query.name, exception)

    # -- queries ------------------------------------------------------------------------------------------------

    def _start(
        self,
        name: str,
        guarantee: Guarantee,
        writer: BatchWriter | ParquetFiles,
        rows: DataFrame,
        mode: OutputMode,
    ) -> None:
        observed = writer.shape(rows).observe(OUTPUT_METRIC, F.count(F.lit(1)).alias(OUTPUT_ROWS))
        stream = (
            observed.writeStream.queryName(f"{self.pipeline.name}.{name}")
            .outputMode(mode.value)
            .option("checkpointLocation", f"{self.pipeline.checkpoint}/{name}")
            .trigger(**_trigger_arguments(self._trigger))
        )
        if isinstance(writer, ParquetFiles):
            stream = writer.attach(stream)
        else:
            stream = stream.foreachBatch(self._batch_function(name, writer))
        query = _Query(name=name, guarantee=guarantee, stream=stream, query=stream.start())
        self._queries[name] = query
        self._wait_initialised(query.query)

    def _wait_initialised(self, query: StreamingQuery) -> None:
        deadline_ms = self._clock.monotonic_ms() + _INITIALISATION_MS
        while _is_initialising(query):
            if self._clock.monotonic_ms() > deadline_ms:
                return
            pause_ms(_POLL_MS)

    def _batch_function(self, name: str, writer: BatchWriter) -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, number: int) -> None:
            query_id = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
            sink_id = f"{self.pipeline.name}.{name}.{query_id}"
            try:
                refusals = writer.write(batch, BatchId(sink_id=sink_id, number=number))
                if refusals:
                    self._bury(
                        batch.sparkSession, name, refusals, BatchId(sink_id=f"{sink_id}.{_REFUSED}", number=number)
                    )
            except StreamHouseError as error:
                # Spark would only keep its text, between stack traces.
                self._errors[name] = error
                raise

        return write

    def _bury(self, session: SparkSession, sink: str, refusals: Sequence[Refusal], batch_id: BatchId) -> None:
        letters = of_refusals(session, refusals, self.pipeline.name, sink)
        self._dead_letter_writer().write(letters, batch_id)
        self._refused += len(refusals)

    def _dead_letter_writer(self) -> RecordWriter:
        assert self.pipeline.dead_letter is not None, "checked before"
        return RecordWriter(self.pipeline.endpoint, self.pipeline.dead_letter.topic, self.pipeline.options)

    # -- lag ----------------------------------------------------------------------------------------------------

    def _latest(self, positions: Sequence[Offsets]) -> Offsets:
        """The ends of all topics that are being read. Nothing, if nobody answers: the view goes on without."""
        wanted = sorted({(topic, part) for each in positions for topic, parts in each.items() for part in parts})
        if not wanted:
            return {}
        questions = [OffsetQuestion(topic=topic, partition=int(part), timestamp_ms=LATEST) for topic, part in wanted]
        try:
            with PlanningClient(self.pipeline.endpoint, timeout_seconds=_LAG_TIMEOUT_SECONDS) as client:
                answers = client.offsets(questions)
        except StreamHouseError:
            return {}
        latest: dict[str, dict[str, int]] = {}
        for (topic, part), offset in zip(wanted, answers, strict=True):
            if offset is not None:
                latest.setdefault(topic, {})[part] = offset
        return latest


def _trigger_arguments(trigger: Trigger) -> dict[str, Any]:
    if trigger.interval_ms is not None:
        return {"processingTime": f"{trigger.interval_ms} milliseconds"}
    return {"once": True} if trigger.is_single else {"availableNow": True}


def _new_reports(query: _Query) -> list[dict[str, Any]]:
    """Spark tells again of a batch, while it waits for more, that it had nothing to do."""
    reports = [json.loads(report.json) for report in query.query.recentProgress]
    new = [report for report in reports if report["batchId"] > query.last_reported]
    fresh = [report for report in new if report["numInputRows"] or "addBatch" in report["durationMs"]]
    if fresh:
        query.last_reported = fresh[-1]["batchId"]
    return fresh


def _is_initialising(query: StreamingQuery) -> bool:
    """One query at a time: each has Python processes of its own to start, which Spark gives ten seconds. Several would
    be in one another's way, and if all failed and began again together, so again for ever."""
    return bool(query.isActive and query.status["message"] in _INITIALISING)


def _is_busy(query: StreamingQuery) -> bool:
    return bool(query.isActive and query.status["isTriggerActive"])


def _java_died() -> Unavailable:
    return Unavailable("Spark's Java process ended", hint="start the pipeline again: it goes on from its checkpoint")
