"""Builds the rows of every source and step of a pipeline, by name, and beside them the stream of its dead letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from streamhouse.spark.pipelines import dead_letters
from streamhouse.spark.pipelines.functions import Function, Mark, Unit, mark_of
from streamhouse.spark.pipelines.inputs import FILE_PATH, MALFORMED, Inputs, tells_malformed
from streamhouse.spark.pipelines.isolation import FAILURE, FAILURE_TYPE, IsolatedFunction
from streamhouse.spark.pipelines.model import (
    FileSource,
    Pipeline,
    PythonStep,
    RecordFormat,
    Source,
    SqlStep,
    Step,
    TopicSource,
)
from streamhouse.spark.pipelines.records import (
    ORIGIN,
    ORIGIN_TYPE,
    bad_rows,
    good_rows,
    latest_by_key,
    parse_ddl,
    parse_json,
    with_origin,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FunctionFinder = Callable[[str], Function]
"""From module:function to the function."""


@dataclass(slots=True)
class Views:
    """`letters` are streams with the columns key, value and headers, by the source or step that they are of."""

    rows: dict[str, DataFrame] = field(default_factory=dict)
    letters: dict[str, DataFrame] = field(default_factory=dict)

    def dead_letters(self) -> DataFrame | None:
        """All of them in one stream."""
        return reduce(DataFrame.unionByName, self.letters.values()) if self.letters else None


class ViewBuilder:
    """Adds one source or step after the other, in the order of the file; each becomes a view that SQL can name."""

    def __init__(
        self, session: SparkSession, pipeline: Pipeline, inputs: Inputs, find_function: FunctionFinder
    ) -> None:
        self.views = Views()
        self._session = session
        self._pipeline = pipeline
        self._inputs = inputs
        self._find_function = find_function

    def build(self) -> Views:
        for source in self._pipeline.sources:
            self.add_source(source)
        for step in self._pipeline.steps:
            self.add_step(step)
        return self.views

    def add_source(self, source: Source) -> None:
        rows = self._topic_rows(source) if isinstance(source, TopicSource) else self._file_rows(source)
        if source.watermark is not None:
            rows = rows.withWatermark(source.watermark.column, f"{source.watermark.delay_ms} milliseconds")
        self._add(source.name, rows)

    def add_step(self, step: Step) -> None:
        match step:
            case SqlStep():
                self._add(step.name, self._session.sql(step.sql))
            case PythonStep():
                self._add(step.name, self._python_rows(step))

    def _add(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)
        self.views.rows[name] = rows

    # -- sources ------------------------------------------------------------------------------------------------

    def _topic_rows(self, source: TopicSource) -> DataFrame:
        records = self._inputs.records(source, streaming=source.is_stream)
        if source.is_table:
            records = latest_by_key(records)
        if source.format is RecordFormat.RAW:
            return with_origin(records)
        assert source.schema is not None
        schema = parse_ddl(source.schema.ddl)
        # Bad records of a table are looked for in a stream, so that each is told once, also one since replaced.
        stream = self._inputs.records(source, streaming=True) if source.is_table else records
        if source.is_table:
            stream = stream.where(F.col("value").isNotNull())
        bad = bad_rows(parse_json(stream, schema))
        self.views.letters[source.name] = dead_letters.of_records(bad, self._pipeline.name, source.name)
        return good_rows(parse_json(records, schema))

    def _file_rows(self, source: FileSource) -> DataFrame:
        schema = parse_ddl(source.schema.ddl)
        rows = self._inputs.files(source, schema)
        if not tells_malformed(source):
            return rows
        # Spark refuses to read nothing but the malformed lines; this is true of every row, which it does not know.
        whole = F.to_json(F.struct(*(F.col(f"`{field.name}`") for field in schema.fields)))
        bad = rows.where(F.col(MALFORMED).isNotNull() & whole.isNotNull())
        self.views.letters[source.name] = dead_letters.of_lines(bad, self._pipeline.name, source.name)
        return rows.where(F.col(MALFORMED).isNull()).drop(MALFORMED, FILE_PATH)

    # -- functions ----------------------------------------------------------------------------------------------

    def _python_rows(self, step: PythonStep) -> DataFrame:
        function = self._find_function(step.function)
        inputs = {name: self.views.rows[name] for name in step.inputs}
        mark = mark_of(function)
        if mark is None:
            return _call(function, inputs)
        if len(inputs) != 1:
            raise ValueError(f"{step.function} works on rows, so `from` must be one name")
        (rows,) = inputs.values()
        if not rows.isStreaming:
            raise ValueError(f"{step.function} works on the rows of a stream, which {step.inputs[0]!r} is not")
        tried = _isolated(rows, function, mark)
        failed = tried.where(F.col(FAILURE).isNotNull())
        self.views.letters[step.name] = dead_letters.of_rows(failed, self._pipeline.name, step.name)
        made = tried.where(F.col(FAILURE).isNull()).drop(FAILURE)
        return made.drop(ORIGIN) if mark.unit is Unit.BATCH else made


def _call(function: Function, inputs: dict[str, DataFrame]) -> DataFrame:
    result: Any = function(next(iter(inputs.values())) if len(inputs) == 1 else inputs)
    if not isinstance(result, DataFrame):
        raise TypeError(f"{function.__name__} returned {type(result).__name__}, not a DataFrame")
    return result


def _isolated(rows: DataFrame, function: Function, mark: Mark) -> DataFrame:
    """Its columns, the origin of each row if that was known, and its failure or NULL."""
    has_origin = ORIGIN in rows.columns
    origin_ddl = f", {ORIGIN} {ORIGIN_TYPE}" if has_origin else ""
    output = parse_ddl(f"{mark.schema}{origin_ddl}, {FAILURE} {FAILURE_TYPE}")
    arrow = to_arrow_schema(output, timezone="UTC")
    run = IsolatedFunction(function, mark, arrow, ORIGIN if has_origin else None)
    return rows.mapInArrow(run, output)
