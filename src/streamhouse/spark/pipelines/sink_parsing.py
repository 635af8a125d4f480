"""Sinks of a pipeline's file: what each kind can do, and whether that is what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamhouse.model.names import check_topic_name
from streamhouse.spark.pipelines.document import Entry
from streamhouse.spark.pipelines.model import (
    ConsoleSink,
    DeltaSink,
    Guarantee,
    IcebergSink,
    OutputMode,
    ParquetSink,
    PostgresSink,
    RecordFormat,
    Sink,
    TopicSink,
)
from streamhouse.spark.pipelines.places import place

_CONSOLE_ROWS = 20
_APPEND_ONLY = (OutputMode.APPEND,)
_WHOLE_RESULTS = (OutputMode.APPEND, OutputMode.COMPLETE)
_ALL_MODES = tuple(OutputMode)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ability:
    modes: tuple[OutputMode, ...]
    guarantee: Guarantee
    parse: Callable[[Entry, Path, Mapping[str, Any]], Sink]


def parse_sink(entry: Entry, directory: Path, name: str) -> Sink:
    kinds = [kind for kind in _ABILITIES if entry.has(kind)]
    if len(kinds) != 1:
        entry.note("name", f"a sink needs one of {', '.join(map(repr, _ABILITIES))}")
    kind = kinds[0] if kinds else "console"
    ability = _ABILITIES[kind]
    mode = entry.choice("mode", OutputMode, OutputMode.APPEND)
    if mode not in ability.modes:
        entry.note("mode", f"a {kind} sink cannot take mode {mode.value!r}; it takes {_listed(ability.modes)}")
    guarantee = entry.choice("guarantee", Guarantee, ability.guarantee)
    if guarantee is Guarantee.EXACTLY_ONCE and ability.guarantee is not Guarantee.EXACTLY_ONCE:
        entry.note("guarantee", f"a {kind} sink cannot promise {guarantee.value!r}, only {ability.guarantee.value!r}")
    common = {
        "name": name,
        "line": entry.line,
        "rows_of": entry.text("from"),
        "mode": mode,
        "mode_line": entry.line_of("mode"),
        # What it does, which may be better than what is asked for.
        "guarantee": ability.guarantee,
    }
    sink = ability.parse(entry, directory, common)
    entry.expect(*_ABILITIES)
    entry.finish()
    return sink


def _topic(entry: Entry, directory: Path, common: Mapping[str, Any]) -> Sink:
    record_format = entry.choice("format", RecordFormat, RecordFormat.JSON)
    if record_format is RecordFormat.RAW and entry.has("key"):
        entry.note("key", "a raw sink takes the column 'key'; leave this out, or write `format: json`")
    return TopicSink(
        **common,
        topic=entry.checked("topic", check_topic_name, ""),
        topic_line=entry.line_of("topic"),
        format=record_format,
        key=entry.literal_or_none("key"),
        key_line=entry.text_line_of("key"),
    )


def _parquet(entry: Entry, directory: Path, common: Mapping[str, Any]) -> Sink:
    path = place(entry.text("parquet"), directory)
    return ParquetSink(**common, path=path, partition_by=entry.texts("partition_by"))


def _delta(entry: Entry, directory: Path, common: Mapping[str, Any]) -> Sink:
    return DeltaSink(**common, table=place(entry.text("delta"), directory), options=entry.pairs("options"))


def _iceberg(entry: Entry, directory: Path, common: Mapping[str, Any]) -> Sink:
    table = entry.text("iceberg")
    if table and "." not in table:
        entry.note("iceberg", f"{table!r} is not an Iceberg table; write NAMESPACE.TABLE")
    return IcebergSink(**common, table=table, catalog=entry.pairs("catalog"))


def _postgres(entry: Entry, directory: Path, common: Mapping[str, Any]) -> Sink:
    key = entry.texts("key")
    if not key:
        entry.note("postgres", "an upsert needs 'key': the column or columns that tell rows apart")
    return PostgresSink(
        **common,
        dsn=entry.text("dsn"),
        table=entry.text("postgres"),
        key=key,
        key_line=entry.line_of("key"),
    )


def _console(entry: Entry, directory: Path, common: Mapping[str, Any]) -> Sink:
    entry.flag("console", True)
    return ConsoleSink(**common, max_rows=entry.positive("max_rows") or _CONSOLE_ROWS)


def _listed(modes: tuple[OutputMode, ...]) -> str:
    return ", ".join(mode.value for mode in modes)


_ABILITIES: Mapping[str, _Ability] = {
    "topic": _Ability(modes=_ALL_MODES, guarantee=Guarantee.EXACTLY_ONCE, parse=_topic),
    "parquet": _Ability(modes=_APPEND_ONLY, guarantee=Guarantee.EXACTLY_ONCE, parse=_parquet),
    "delta": _Ability(modes=_WHOLE_RESULTS, guarantee=Guarantee.EXACTLY_ONCE, parse=_delta),
    "iceberg": _Ability(modes=_APPEND_ONLY, guarantee=Guarantee.EXACTLY_ONCE, parse=_iceberg),
    "postgres": _Ability(modes=_ALL_MODES, guarantee=Guarantee.EXACTLY_ONCE, parse=_postgres),
    "console": _Ability(modes=_ALL_MODES, guarantee=Guarantee.AT_LEAST_ONCE, parse=_console),
}
