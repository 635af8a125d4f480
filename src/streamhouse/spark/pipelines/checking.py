"""Checks a pipeline before anything runs: topics, files, schemas, SQL, functions, and what Spark can do as a stream."""

from __future__ import annotations

import asyncio
import difflib
import glob
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException, PySparkException

from streamhouse.client.node import http_endpoints
from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidConfig, StreamHouseError
from streamhouse.spark.pipelines.inputs import EmptyInputs, record_options
from streamhouse.spark.pipelines.model import (
    FileSource,
    OutputMode,
    Pipeline,
    PostgresSink,
    PythonStep,
    Sink,
    Source,
    SqlStep,
    Step,
    TopicSink,
    TopicSource,
)
from streamhouse.spark.pipelines.modules import FunctionLoader
from streamhouse.spark.pipelines.places import local_path
from streamhouse.spark.pipelines.problems import Problems, did_you_mean
from streamhouse.spark.pipelines.records import ORIGIN, parse_ddl
from streamhouse.spark.pipelines.sinks.open import open_sink
from streamhouse.spark.pipelines.views import ViewBuilder
from streamhouse.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POSITION = re.compile(r"\bline (\d+),? pos (\d+)")
_CONDITION = re.compile(r"^\s*\[[A-Z_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: .*", re.DOTALL)
_LONGEST_MESSAGE = 400
_ANSWER_SECONDS = 10.0
_REACH_SECONDS = 5.0


def check_places(pipeline: Pipeline, *, offline: bool = False) -> Problems:
    """Those of files and topics, which are found without Spark. `offline` asks no node whether the topics exist."""
    problems = Problems(pipeline.file)
    _check_files(pipeline, problems)
    if not offline:
        _check_topics(pipeline, problems, _topics_at(pipeline, problems))
    return problems


def check_pipeline(session: SparkSession, pipeline: Pipeline, found: Problems | None = None) -> None:
    """InvalidPipeline names everything that is wrong, with what `check_places` has found if it was asked before."""
    problems = check_places(pipeline) if found is None else found
    # Spark logs each of its errors with a stack trace; they are told here, with their lines.
    spark_log = logging.getLogger("SQLQueryContextLogger")
    was_disabled, spark_log.disabled = spark_log.disabled, True
    try:
        _Analysis(session, pipeline, problems).run()
    finally:
        spark_log.disabled = was_disabled
    problems.raise_any()


def reached(pipeline: Pipeline, *, runs: bool) -> Pipeline:
    """With the URL of a node that answers; no Spark is needed to find that out, so nobody waits for one in vain.
    InvalidPipeline if none does, and where it is to be run also if a topic or a file is not there."""
    problems = Problems(pipeline.file)
    if _wanted_topics(pipeline):
        try:
            pipeline = replace(pipeline, endpoint=asyncio.run(http_endpoints(pipeline.endpoint)))
        except StreamHouseError as problem:
            _add_unreached(pipeline, problems, problem)
    if runs or not problems.is_empty:
        _check_files(pipeline, problems)
    if runs and problems.is_empty:
        _check_topics(pipeline, problems, _topics_at(pipeline, problems))
    problems.raise_any()
    return pipeline


def _add_unreached(pipeline: Pipeline, problems: Problems, problem: StreamHouseError) -> None:
    problems.add(pipeline.endpoint_line, f"cannot ask {pipeline.endpoint} for its topics: {problem}")


def _check_files(pipeline: Pipeline, problems: Problems) -> None:
    for source in pipeline.sources:
        path = local_path(source.path) if isinstance(source, FileSource) else None
        if isinstance(source, FileSource) and path is not None and not glob.glob(str(path)):
            problems.add(source.path_line, f"there are no files {source.path!r}")


def _wanted_topics(pipeline: Pipeline) -> list[tuple[str, int]]:
    """And the lines that name them."""
    wanted = [(source.topic, source.topic_line) for source in pipeline.sources if isinstance(source, TopicSource)]
    wanted += [(sink.topic, sink.topic_line) for sink in pipeline.sinks if isinstance(sink, TopicSink)]
    if pipeline.dead_letter is not None:
        wanted.append((pipeline.dead_letter.topic, pipeline.dead_letter.line))
    return wanted


def _topics_at(pipeline: Pipeline, problems: Problems) -> list[str] | None:
    """None if the node does not say, or nobody wants to know."""
    if not _wanted_topics(pipeline):
        return None
    try:
        with PlanningClient(pipeline.endpoint, timeout_seconds=_ANSWER_SECONDS, reach_seconds=_REACH_SECONDS) as client:
            return [topic.name for topic in client.topics()]
    except StreamHouseError as problem:
        _add_unreached(pipeline, problems, problem)
        return None


def _check_topics(pipeline: Pipeline, problems: Problems, known: list[str] | None) -> None:
    if known is None:
        return
    for topic, line in _wanted_topics(pipeline):
        if topic not in known:
            close = difflib.get_close_matches(topic, known, n=1)
            mending = f"did you mean {close[0]!r}?" if close else f"make it with `streamhouse topic create {topic}`"
            problems.add(line, f"there is no topic {topic!r}; {mending}")


class _Analysis:
    """Runs the steps on empty inputs, through Spark's analyzer. What depends on something wrong is not judged."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, problems: Problems) -> None:
        self._session = session
        self._pipeline = pipeline
        self._problems = problems
        self._failed: set[str] = set()
        self._builder = ViewBuilder(session, pipeline, EmptyInputs(session), FunctionLoader(pipeline.directory).find)

    def run(self) -> None:
        for source in self._pipeline.sources:
            self._check_source(source)
        for step in self._pipeline.steps:
            self._check_step(step)
        for sink in self._pipeline.sinks:
            self._check_sink(sink)
        self._check_dead_letters()

    # -- sources and steps --------------------------------------------------------------------------------------

    def _check_source(self, source: Source) -> None:
        if source.schema is not None:
            try:
                parse_ddl(source.schema.ddl)
            except PySparkException as error:
                line, message = _located(error, source.schema.line)
                self._fail(source.name, line, f"this schema is not Spark DDL: {message}")
                return
            except InvalidConfig as error:
                self._fail(source.name, source.schema.line, str(error))
                return
        if isinstance(source, TopicSource):
            options = record_options(self._pipeline, source, streaming=source.is_stream)
            self._try(source.name, source.line, lambda: SourceOptions.parse(options))
        line = source.watermark.line if source.watermark else source.line
        self._try(source.name, line, lambda: self._builder.add_source(source))

    def _check_step(self, step: Step) -> None:
        match step:
            case SqlStep():
                self._check_sql(step)
            case PythonStep():
                if not self._failed.intersection(step.inputs):
                    self._try(step.name, step.function_line, lambda: self._builder.add_step(step))
                else:
                    self._failed.add(step.name)

    def _check_sql(self, step: SqlStep) -> None:
        try:
            # Only a query: anything else would be carried out right here.
            self._session._jsparkSession.sessionState().sqlParser().parseQuery(step.sql)
            self._builder.add_step(step)
        except AnalysisException as error:
            missing = _missing_table(error)
            if missing is not None and self._is_failed(missing):
                self._failed.add(step.name)
                return
            line, message = _located(error, step.sql_line)
            self._fail(step.name, line, message if missing is None else self._unknown(missing, step))

    def _unknown(self, missing: str, step: SqlStep) -> str:
        later = next((one for one in self._pipeline.steps if one.name.lower() == missing.lower()), None)
        if later is not None:
            return f"{missing!r} comes later, on line {later.line}; move it before {step.name!r}"
        return f"there is no source or step {missing!r}{did_you_mean(missing, list(self._builder.views.rows))}"

    def _is_failed(self, name: str) -> bool:
        return name.lower() in {failed.lower() for failed in self._failed}

    # -- sinks --------------------------------------------------------------------------------------------------

    def _check_sink(self, sink: Sink) -> None:
        rows = self._builder.views.rows.get(sink.rows_of)
        if rows is None:
            return
        if not rows.isStreaming:
            message = f"{sink.rows_of!r} has no streaming source, so there is nothing to run; write `stream: true`"
            self._problems.add(sink.line, message)
            return
        line = sink.key_line if isinstance(sink, TopicSink | PostgresSink) else sink.line
        shaped = self._try(None, line, lambda: _shaped(sink, self._pipeline, rows))
        if shaped is not None:
            self._check_mode(shaped, sink.mode, sink.mode_line, f"sink {sink.name!r}")
        if isinstance(sink, PostgresSink) and self._pipeline.dead_letter is None:
            self._problems.add(sink.line, "rows that PostgreSQL refuses need a place; write `dead_letter: TOPIC`")

    def _check_dead_letters(self) -> None:
        letters = self._builder.views.dead_letters()
        if letters is None:
            return
        if self._pipeline.dead_letter is None:
            # The file's reader has seen to the sources: what is left are functions.
            for step in self._pipeline.steps:
                if isinstance(step, PythonStep) and step.name in self._builder.views.letters:
                    message = f"rows that {step.function} fails for need a place; write `dead_letter: TOPIC`"
                    self._problems.add(step.function_line, message)
            return
        if dead_letter_mode(self._session, letters) is None:
            self._check_mode(letters, OutputMode.APPEND, self._pipeline.dead_letter.line, "the dead letters")

    def _check_mode(self, rows: DataFrame, mode: OutputMode, line: int, who: str) -> None:
        try:
            check_streaming(self._session, rows, mode)
        except AnalysisException as error:
            self._problems.add(line, f"{who}: {_located(error, line)[1]}")

    # -- inside -------------------------------------------------------------------------------------------------

    def _try(self, name: str | None, line: int, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except PySparkException as error:
            self._fail(name, line, _located(error, line)[1])
        except StreamHouseError as error:
            self._fail(name, line, str(error))
        except Exception as error:
            # A user's function, which can raise anything.
            self._fail(name, line, f"{type(error).__name__}: {error}")
        return None

    def _fail(self, name: str | None, line: int, message: str) -> None:
        if name is not None:
            self._failed.add(name)
        self._problems.add(line, message)


def check_streaming(session: SparkSession, rows: DataFrame, mode: OutputMode) -> None:
    """What Spark checks when a query starts: AnalysisException if it cannot be a stream in this mode."""
    jvm: Any = session._jvm
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    java_mode = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode.value]()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), java_mode)


def dead_letter_mode(session: SparkSession, letters: DataFrame) -> OutputMode | None:
    """Rows of an aggregation are final in one mode only; None if there is no mode for them."""
    for mode in (OutputMode.APPEND, OutputMode.UPDATE):
        try:
            check_streaming(session, letters, mode)
            return mode
        except AnalysisException:
            continue
    return None


def _shaped(sink: Sink, pipeline: Pipeline, rows: DataFrame) -> DataFrame:
    return open_sink(sink, pipeline, lambda *_: None).shape(rows.drop(ORIGIN))


def _located(error: PySparkException, first_line: int) -> tuple[int, str]:
    """The line of the file and the message, of an error in a text that begins on `first_line`."""
    text = str(error)
    position = _POSITION.search(text)
    offset = int(position[1]) - 1 if position and isinstance(error, AnalysisException | ParseException) else 0
    message = " ".join(_STATE.sub("", _CONDITION.sub("", text)).split("\n\n")[0].split())
    return first_line + offset, message[:_LONGEST_MESSAGE]


def _missing_table(error: AnalysisException) -> str | None:
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    return str((error.getMessageParameters() or {}).get("relationName", "")).replace("`", "")
