"""What a worker raised is told by the driver as what it was."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from streamhouse.model.errors import CorruptData, Unavailable
from streamhouse.spark.jobs.failures import spark_errors

FROM_A_WORKER = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: \
An exception was thrown from the Python worker: Traceback (most recent call last):
  File "somewhere/pointers.py", line 60, in __call__
    result = self._work(pointer)
{raised}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
"""


def test_an_error_of_ours_keeps_its_kind_and_its_message() -> None:
    raised = "streamhouse.model.errors.CorruptData: segment x is damaged (see the log)"
    with pytest.raises(CorruptData, match=r"^segment x is damaged \(see the log\)$"), spark_errors():
        raise PySparkException(FROM_A_WORKER.format(raised=raised))


def test_any_other_error_is_told_by_its_last_line_and_worth_another_run() -> None:
    with pytest.raises(Unavailable, match="Spark gave up: MemoryError: out of it") as caught, spark_errors():
        raise PySparkException(FROM_A_WORKER.format(raised="MemoryError: out of it"))
    assert caught.value.hint is not None


def test_a_kind_that_is_not_ours_is_no_kind() -> None:
    with pytest.raises(Unavailable), spark_errors():
        raise PySparkException("streamhouse.model.errors.annotations: nothing")


def test_an_error_without_words_is_still_one() -> None:
    with pytest.raises(Unavailable, match="without a reason"), spark_errors():
        raise PySparkException("")
