"""One line out of the many in which Spark says what went wrong, and whether to try again."""

from __future__ import annotations

import pytest

from streamhouse.model.errors import NotFound, StreamHouseError, Unavailable
from streamhouse.spark.pipelines.failure import as_error, is_late_start

_PLAIN = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [DIVIDE_BY_ZERO] Division by zero. Use \
`try_divide` to tolerate divisor being 0. SQLSTATE: 22012 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1, runId = 2]"""

_PYTHON = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 4207, in invoke_udf
    func()
  File "reader.py", line 10, in read
    raise NotFound("x")
streamhouse.model.errors.NotFound: there is no topic 'orders'
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: revenue [id = 1, runId = 2]"""


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (_PLAIN, Unavailable, "revenue: Division by zero. Use `try_divide` to tolerate divisor being 0."),
        (_PYTHON, NotFound, "revenue: there is no topic 'orders'"),
        (_PYTHON.replace("streamhouse.model.errors.NotFound", "OSError"), Unavailable, "revenue: OSError: there is no"),
        ("something else\nand more", Unavailable, "revenue: something else"),
    ],
)
def test_the_reason_is_one_line_and_of_the_kind_that_was_raised(
    text: str, kind: type[StreamHouseError], expected: str
) -> None:
    error = as_error("revenue", RuntimeError(text))

    assert type(error) is kind
    assert str(error).startswith(expected)
    assert "\n" not in str(error)


def test_a_process_that_started_too_slowly_is_told_from_other_failures() -> None:
    text = _PLAIN.replace("[DIVIDE_BY_ZERO] Division by zero. Use", "Python worker failed to connect back.\n")

    assert is_late_start(as_error("revenue", RuntimeError(text)))
    assert not is_late_start(as_error("revenue", RuntimeError(_PLAIN)))
