"""What `wal show` says of files that are sound, cut off, damaged or unused."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from streamhouse.cli.main import run
from streamhouse.cli.wal_report import Ending, inspect_wal, inspect_wal_file
from streamhouse.format.batch import place
from streamhouse.format.records import Record, encode_records
from streamhouse.format.wal_entry import (
    FILE_HEADER_BYTES,
    encode_entry_header,
    encode_file_header,
    encode_mark,
    entry_prefix,
)
from streamhouse.model.errors import CorruptData

TOPIC = UUID(int=5)
FILE_BYTES = 8192


def wal_file(path: Path, *, first_position: int = 0, batches: int = 3, base_offset: int = 0, marks: bool = True) -> int:
    """Writes a WAL file of one-record batches with a mark before each; returns the position where it stops."""
    content = bytearray(encode_file_header(first_position))
    for offset in range(base_offset, base_offset + batches):
        if marks:
            content += encode_mark(first_position + len(content))
        batch = bytearray(encode_records([Record(0, 1_700_000_000_000, b"key", b"value")]))
        place(batch, 0, offset, 1)
        prefix = entry_prefix(TOPIC, 2)
        content += encode_entry_header(first_position + len(content), prefix, batch) + prefix + batch
    end = len(content)
    path.write_bytes(bytes(content).ljust(FILE_BYTES, b"\0"))
    return first_position + end


def damage(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    path.write_bytes(content)


def test_a_sound_file_shows_its_batches_and_marks(tmp_path: Path) -> None:
    end = wal_file(tmp_path / "1.wal", first_position=1000, base_offset=7)

    report = inspect_wal_file(tmp_path / "1.wal")

    assert [(batch.topic_id, batch.partition, batch.base_offset) for batch in report.batches] == [
        (TOPIC, 2, 7),
        (TOPIC, 2, 8),
        (TOPIC, 2, 9),
    ]
    assert len(report.mark_positions) == 3
    assert report.mark_positions[0] == 1000 + FILE_HEADER_BYTES
    assert report.end_position == end
    assert report.ending is Ending.UNUSED


def test_an_entry_that_a_crash_cut_off_is_a_torn_tail(tmp_path: Path) -> None:
    end = wal_file(tmp_path / "1.wal")
    damage(tmp_path / "1.wal", end - 1)

    report = inspect_wal_file(tmp_path / "1.wal")

    assert report.ending is Ending.TORN
    assert report.is_sound
    assert len(report.batches) == 2


def test_damage_before_a_mark_is_told_from_a_torn_tail(tmp_path: Path) -> None:
    wal_file(tmp_path / "1.wal")
    damage(tmp_path / "1.wal", FILE_HEADER_BYTES + 60)

    report = inspect_wal_file(tmp_path / "1.wal")

    assert report.ending is Ending.DAMAGED
    assert not report.is_sound
    assert report.batches == ()


def test_a_gap_between_files_is_damage(tmp_path: Path) -> None:
    end = wal_file(tmp_path / "1.wal", marks=False)
    wal_file(tmp_path / "2.wal", first_position=end)
    wal_file(tmp_path / "3.wal", first_position=end + 10_000)

    reports = inspect_wal([tmp_path / "1.wal", tmp_path / "2.wal", tmp_path / "3.wal"])

    assert [report.is_sound for report in reports] == [True, False, True]
    assert "3.wal" in (reports[1].problem or "")


@pytest.mark.parametrize("content", [b"", bytes(10), bytes(FILE_BYTES)])
def test_a_file_made_ahead_of_need_is_no_damage(tmp_path: Path, content: bytes) -> None:
    end = wal_file(tmp_path / "1.wal")
    (tmp_path / "2.wal").write_bytes(content)
    wal_file(tmp_path / "3.wal", first_position=end)

    reports = inspect_wal([tmp_path / "1.wal", tmp_path / "2.wal", tmp_path / "3.wal"])

    assert [report.ending for report in reports] == [Ending.UNUSED, Ending.UNWRITTEN, Ending.UNUSED]


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.wal").write_bytes(b"something else entirely".ljust(100))

    with pytest.raises(CorruptData, match=r"1\.wal"):
        inspect_wal_file(tmp_path / "1.wal")


def test_the_command_fails_on_damage_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "wal"
    directory.mkdir()
    wal_file(directory / "00000000000000000001.wal")

    assert run(["wal", "show", "--data-dir", str(tmp_path), "--entries"]) == 0
    assert str(TOPIC) in capsys.readouterr().out

    damage(directory / "00000000000000000001.wal", FILE_HEADER_BYTES + 60)

    assert run(["wal", "show", "--data-dir", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "damaged" in captured.out
    assert captured.err.startswith("error: 00000000000000000001.wal is damaged at byte 56")
