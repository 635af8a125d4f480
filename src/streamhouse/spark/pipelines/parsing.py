"""From a pipeline's file to its model: keys, names, references and promises are checked, and nobody is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamhouse.model.errors import InvalidConfig, InvalidInput, NotFound
from streamhouse.model.names import check_topic_name
from streamhouse.model.units import parse_duration_ms
from streamhouse.spark.pipelines.document import Entry, read_document
from streamhouse.spark.pipelines.model import (
    DeadLetter,
    FileFormat,
    FileSource,
    Pipeline,
    PythonStep,
    RecordFormat,
    Schema,
    Source,
    SqlStep,
    Start,
    Step,
    TopicSource,
    Trigger,
    Watermark,
)
from streamhouse.spark.pipelines.places import place
from streamhouse.spark.pipelines.problems import Problems, did_you_mean
from streamhouse.spark.pipelines.sink_parsing import parse_sink

DEFAULT_ENDPOINT = "http://127.0.0.1:8080"
DEFAULT_MASTER = "local[*]"
DEAD_LETTER = "dead_letter"
"""The name under which the dead letters' own query and checkpoint go."""

_DEFAULT_TRIGGER = Trigger(interval_ms=1000)
# With the id of its query, a sink is known to the node by both names, in at most 128 characters.
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_SINK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_VIEW_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_SINK_HINT = "use up to 40 letters, digits, '_' and '-'"
_SOURCE_KINDS = ("topic", "table", "files")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def read_pipeline(file: str, variables: Mapping[str, str], *, endpoint: str | None = None) -> Pipeline:
    """`endpoint` instead of the one in the file. InvalidPipeline names everything that is wrong."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"there is no pipeline file {file!r}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidConfig(f"cannot read {file!r}: {problem}") from problem
    return parse_pipeline(text, file, variables, endpoint=endpoint)


def parse_pipeline(text: str, file: str, variables: Mapping[str, str], *, endpoint: str | None = None) -> Pipeline:
    problems = Problems(file)
    directory = Path(file).resolve().parent
    entry = read_document(text, "a pipeline", problems, variables)
    problems.raise_any()
    assert entry is not None
    name = _name(entry, _PIPELINE_NAME, "use up to 40 letters, digits, '.', '_' and '-'")
    sources = tuple(_parse_source(item, directory) for item in entry.entries("sources", "a source"))
    steps = tuple(_parse_step(item) for item in entry.entries("steps", "a step"))
    sink_entries = entry.entries("sinks", "a sink")
    for key, found in (("sources", sources), ("sinks", sink_entries)):
        if not found:
            entry.note(key, f"a pipeline needs {key!r}")
    pipeline = Pipeline(
        name=name,
        file=file,
        directory=directory,
        endpoint=endpoint or entry.text_or_none("endpoint") or DEFAULT_ENDPOINT,
        endpoint_line=entry.line_of("endpoint"),
        master=entry.text_or_none("master") or DEFAULT_MASTER,
        checkpoint=place(entry.text("checkpoint"), directory),
        trigger=entry.checked("trigger", _parse_trigger, _DEFAULT_TRIGGER),
        dead_letter=_parse_dead_letter(entry),
        conf=entry.pairs("conf"),
        options=entry.pairs("options"),
        sources=sources,
        steps=steps,
        sinks=tuple(parse_sink(item, directory, _name(item, _SINK_NAME, _SINK_HINT)) for item in sink_entries),
    )
    entry.expect("endpoint")
    entry.finish()
    _check_names(pipeline, problems)
    _check_references(pipeline, problems)
    _check_dead_letter(pipeline, entry)
    problems.raise_any()
    return pipeline


def _name(entry: Entry, pattern: re.Pattern[str], hint: str) -> str:
    name = entry.text("name")
    if name and not pattern.fullmatch(name):
        entry.note("name", f"{name!r} is not a name; {hint}")
    return name


def _parse_trigger(text: str) -> Trigger:
    match text:
        case "once":
            return Trigger(interval_ms=None, is_single=True)
        case "available-now":
            return Trigger(interval_ms=None)
        case _:
            try:
                return Trigger(interval_ms=parse_duration_ms(text))
            except InvalidConfig:
                hint = "write a duration such as 5s, or once, or available-now"
                raise InvalidConfig(f"{text!r} is not a trigger", hint=hint) from None


def _parse_dead_letter(entry: Entry) -> DeadLetter | None:
    topic = entry.checked(DEAD_LETTER, check_topic_name, "")
    return DeadLetter(topic=topic, line=entry.line_of(DEAD_LETTER)) if topic else None


# -- sources ------------------------------------------------------------------------------------------------------


def _parse_source(entry: Entry, directory: Path) -> Source:
    name = _name(entry, _VIEW_NAME, "SQL calls it by this: use letters, digits and '_'")
    kinds = [kind for kind in _SOURCE_KINDS if entry.has(kind)]
    if len(kinds) != 1:
        entry.note("name", "a source needs one of 'topic', 'table' and 'files'")
    source = _parse_files(entry, name, directory) if kinds == ["files"] else _parse_topic(entry, name)
    entry.expect(*_SOURCE_KINDS)
    entry.finish()
    return source


def _parse_topic(entry: Entry, name: str) -> TopicSource:
    is_table = entry.has("table")
    key = "table" if is_table else "topic"
    record_format = entry.choice("format", RecordFormat, RecordFormat.JSON)
    schema = _parse_schema(entry) if record_format is RecordFormat.JSON else None
    if record_format is RecordFormat.RAW and entry.has("schema"):
        entry.expect("schema")
        entry.note("schema", "a raw source has the columns of a record, and no schema of its own")
    source = TopicSource(
        name=name,
        line=entry.line,
        topic=entry.checked(key, check_topic_name, ""),
        topic_line=entry.line_of(key),
        format=record_format,
        schema=schema,
        watermark=_parse_watermark(entry),
        start=entry.choice("start", Start, Start.EARLIEST),
        max_records=entry.positive("max_records"),
        is_table=is_table,
        is_stream=entry.flag("stream", not is_table),
        options=entry.pairs("options"),
    )
    if not is_table and not source.is_stream:
        entry.note(
            "stream", "a topic is read as a stream; for the latest record of each key, write 'table' for 'topic'"
        )
    if is_table and source.watermark is not None:
        entry.note("watermark", "the latest record of a key is never late: a table has no watermark")
    if is_table and source.start is Start.LATEST:
        entry.note("start", "a table is made of all records of its topic")
    return source


def _parse_files(entry: Entry, name: str, directory: Path) -> FileSource:
    if not entry.has("format"):
        entry.note("files", "files need a 'format': csv, json or parquet")
    source = FileSource(
        name=name,
        line=entry.line,
        path=place(entry.text("files"), directory),
        path_line=entry.line_of("files"),
        format=entry.choice("format", FileFormat, FileFormat.JSON),
        schema=_parse_schema(entry),
        watermark=_parse_watermark(entry),
        is_stream=entry.flag("stream", False),
        options=entry.pairs("options"),
    )
    if source.watermark is not None and not source.is_stream:
        entry.note("watermark", "only a stream has a watermark; write `stream: true`")
    return source


def _parse_schema(entry: Entry) -> Schema:
    return Schema(ddl=entry.literal("schema"), line=entry.text_line_of("schema"))


def _parse_watermark(entry: Entry) -> Watermark | None:
    watermark = entry.entry("watermark")
    if watermark is None:
        return None
    parsed = Watermark(column=watermark.text("column"), delay_ms=watermark.duration_ms("delay"), line=watermark.line)
    watermark.finish()
    return parsed


# -- steps --------------------------------------------------------------------------------------------------------


def _parse_step(entry: Entry) -> Step:
    name = _name(entry, _VIEW_NAME, "SQL calls it by this: use letters, digits and '_'")
    if entry.has("sql") == entry.has("python"):
        entry.note("name", "a step needs either 'sql' or 'python'")
    step: Step
    if entry.has("python"):
        function = entry.checked("python", _check_function, "")
        line = entry.line_of("python")
        step = PythonStep(name=name, line=entry.line, function=function, function_line=line, inputs=entry.texts("from"))
        if not step.inputs:
            entry.note("python", "a Python step needs 'from': the name or names whose rows it takes")
    else:
        step = SqlStep(
            name=name,
            line=entry.line,
            sql=entry.literal_or_none("sql") or "",
            sql_line=entry.text_line_of("sql"),
        )
    entry.expect("sql", "python")
    entry.finish()
    return step


def _check_function(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise InvalidInput(f"{text!r} is not module:function")
    return text


# -- the whole ----------------------------------------------------------------------------------------------------


def _check_names(pipeline: Pipeline, problems: Problems) -> None:
    views = [(part.name, part.line) for part in (*pipeline.sources, *pipeline.steps)]
    sinks = [(sink.name, sink.line) for sink in pipeline.sinks]
    # SQL does not tell capitals apart.
    _refuse_doubles([(name.lower(), line) for name, line in views], "a source or step", problems)
    _refuse_doubles(sinks, "a sink", problems)
    for name, line in sinks:
        if name == DEAD_LETTER:
            problems.add(line, f"{DEAD_LETTER!r} is the name of the dead letters; call this sink otherwise")


def _refuse_doubles(named: Iterable[tuple[str, int]], what: str, problems: Problems) -> None:
    first: dict[str, int] = {}
    for name, line in named:
        if name in first:
            problems.add(line, f"{what} {name!r} is already on line {first[name]}")
        elif name:
            first[name] = line


def _check_references(pipeline: Pipeline, problems: Problems) -> None:
    """SQL's own references are Spark's to check."""
    known = [source.name for source in pipeline.sources]
    for step in pipeline.steps:
        if isinstance(step, PythonStep):
            for name in step.inputs:
                _check_known(name, known, step.line, f"step {step.name!r}", problems)
        known.append(step.name)
    for sink in pipeline.sinks:
        _check_known(sink.rows_of, known, sink.line, f"sink {sink.name!r}", problems)


def _check_known(name: str, known: list[str], line: int, who: str, problems: Problems) -> None:
    if name and name not in known:
        problems.add(
            line, f"{who} takes rows from {name!r}, which is no source or earlier step{did_you_mean(name, known)}"
        )


def _check_dead_letter(pipeline: Pipeline, entry: Entry) -> None:
    dead_letter = pipeline.dead_letter
    for source in pipeline.sources:
        if dead_letter is None and parses(source):
            message = f"records of {source.name!r} that do not parse need a place; write `{DEAD_LETTER}: TOPIC`"
            entry.note(DEAD_LETTER, message)
        elif dead_letter is not None and isinstance(source, TopicSource) and source.topic == dead_letter.topic:
            entry.note(DEAD_LETTER, f"source {source.name!r} reads the dead letters: they would go round in circles")


def parses(source: Source) -> bool:
    """Whether a record of it can be one that does not parse."""
    if isinstance(source, TopicSource):
        return source.format is RecordFormat.JSON
    return source.is_stream and source.format is not FileFormat.PARQUET
