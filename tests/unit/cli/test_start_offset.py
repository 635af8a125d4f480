"""Where `consume` starts, as people write it."""

from __future__ import annotations

import pytest

from streamhouse.cli.start_offset import StartKind, StartOffset, parse_start_offset
from streamhouse.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", StartOffset(StartKind.EARLIEST)),
        ("latest", StartOffset(StartKind.LATEST)),
        ("0", StartOffset(StartKind.OFFSET, 0)),
        ("42", StartOffset(StartKind.OFFSET, 42)),
        ("-5", StartOffset(StartKind.LAST, 5)),
        ("@1700000000123", StartOffset(StartKind.TIMESTAMP, 1_700_000_000_123)),
        ("@2023-11-14T22:13:20Z", StartOffset(StartKind.TIMESTAMP, 1_700_000_000_000)),
        ("@2023-11-14T22:13:20.5+00:00", StartOffset(StartKind.TIMESTAMP, 1_700_000_000_500)),
        ("@2023-11-14T22:13:20", StartOffset(StartKind.TIMESTAMP, 1_700_000_000_000)),
        ("@2023-11-15T00:13:20+02:00", StartOffset(StartKind.TIMESTAMP, 1_700_000_000_000)),
    ],
)
def test_a_start_is_read(text: str, start: StartOffset) -> None:
    assert parse_start_offset(text) == start


@pytest.mark.parametrize("text", ["", "first", "1.5", "--5", "@", "@tomorrow", "9" * 30, "٣"])
def test_what_is_no_start_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_start_offset(text)
