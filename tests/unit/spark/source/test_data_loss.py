"""Records that are there and cannot be read: a task ends with where they are, or passes over them and says so."""

from __future__ import annotations

import logging

import pytest

from format_samples.hostile import lying
from streamhouse.core.scan_plan import TailPiece
from streamhouse.format.batch import place
from streamhouse.format.records import Record, encode_records
from streamhouse.model.errors import UnreadableRecords
from streamhouse.spark.options import Connection, Options
from streamhouse.spark.source.data_loss import DataLoss
from streamhouse.spark.source.reading import TaskReader
from streamhouse.spark.source.rows import RowBatches

CLAIMED = 5


def read(data_loss: DataLoss) -> list[int]:
    """The offsets that come of a good record, a batch that lies about its count, and a good record."""
    bad = bytearray(lying(CLAIMED))
    place(bad, 0, 1, 0)
    before, after = (encode_records([Record(0, 1_000, b"k", b"v")], base_offset=offset) for offset in (0, 1 + CLAIMED))
    reader = TaskReader(
        connection=Connection.parse(Options({"endpoint": "http://nowhere:1"})),
        include_headers=False,
        presign=False,
        data_loss=data_loss,
    )
    piece = TailPiece(topic="t", partition=0, start=0, end=100, size_bytes=0)
    rows = RowBatches(include_headers=False)
    return [
        offset
        for batch in reader._decode(piece, [before, bytes(bad), after], rows)
        for offset in batch.column("offset").to_pylist()
    ]


def test_they_end_the_task_with_where_they_are() -> None:
    with pytest.raises(UnreadableRecords, match="records 1 to 5 of t-0 cannot be read") as refusal:
        read(DataLoss(is_fatal=True))
    assert refusal.value.next_offset == 1 + CLAIMED
    assert "failOnDataLoss" in str(refusal.value)


def test_they_are_passed_over_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert read(DataLoss(is_fatal=False, passes_over_unreadable=True)) == [0, 1 + CLAIMED]
    assert "records 1 to 5 of t-0 cannot be read" in caplog.text
