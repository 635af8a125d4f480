"""Pointer rows: the plan carries where things are, workers fetch and write them, and small results come back.

Records never cross between the JVM and Python: that would cost more than all the rest."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from streamhouse.spark.jobs.failures import spark_errors
from streamhouse.spark.jobs.progress import Progress, watched
from streamhouse.spark.worker_memory import settle_memory

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import DataFrame, SparkSession

Pointer = TypeVar("Pointer")
Result = TypeVar("Result")

# Short enough that cores which are done early find more to do, long enough that a task's own cost disappears.
_TASKS_PER_CORE = 8


class Pointers(Generic[Pointer]):
    """What a worker gets: rows are numbers, and this has the pointer of each."""

    def __init__(self, pickled: Broadcast[list[bytes]]) -> None:
        self._pickled = pickled

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Pointer]]:
        settle_memory()
        for batch in batches:
            for number in batch.column(0).to_numpy().tolist():
                yield number, pickle.loads(self._pickled.value[number])


def run_pointers(
    spark: SparkSession,
    pointers: Sequence[Pointer],
    work: Callable[[Pointer], Result],
    progress: Progress,
) -> list[Result]:
    """The results of `work`, which runs in the workers, in the order of the pointers. Both are pickled, and so is the
    function: it must be one of a module, or a `partial` of one."""
    if not pointers:
        return []
    done = spark.sparkContext.accumulator(0)
    with spread(spark, pointers) as (rows, sent), watched(progress, done), spark_errors():
        found = rows.mapInArrow(_Rows(sent, work, done), "number long, result binary").toArrow()
    results = {
        number: pickle.loads(blob.as_buffer())
        for number, blob in zip(found["number"].to_numpy().tolist(), found["result"], strict=True)
    }
    return [results[number] for number in range(len(pointers))]


@contextmanager
def spread(spark: SparkSession, pointers: Sequence[Pointer]) -> Iterator[tuple[DataFrame, Pointers[Pointer]]]:
    """A row for each, evenly among the tasks. The pointers themselves go along once for each worker, and not by way of
    another Python process, as rows that Python makes would."""
    context = spark.sparkContext
    pickled = context.broadcast([pickle.dumps(pointer) for pointer in pointers])
    tasks = min(len(pointers), _TASKS_PER_CORE * context.defaultParallelism)
    try:
        yield spark.range(0, len(pointers), 1, tasks), Pointers(pickled)
    finally:
        pickled.unpersist()


class _Rows(Generic[Pointer, Result]):
    def __init__(self, sent: Pointers[Pointer], work: Callable[[Pointer], Result], done: Accumulator[int]) -> None:
        self._sent = sent
        self._work = work
        self._done = done

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, pointer in self._sent.of(batches):
            result = pickle.dumps(self._work(pointer))
            yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]})
            self._done.add(1)
