"""One line out of the many in which Spark says what went wrong."""

from __future__ import annotations

import pytest

from streamhouse.spark.pipelines.failure import explain

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
    ("text", "expected"),
    [
        (_PLAIN, "Division by zero. Use `try_divide` to tolerate divisor being 0."),
        (_PYTHON, "NotFound: there is no topic 'orders'"),
        ("something else\nand more", "something else"),
        ("", ""),
    ],
)
def test_the_reason_is_one_line(text: str, expected: str) -> None:
    assert explain(RuntimeError(text)) == expected
