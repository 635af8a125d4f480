"""What `segment show` says of segments, sound and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamhouse.cli.main import run
from streamhouse.cli.segment_report import inspect_segment, segment_records
from streamhouse.format.batch import place
from streamhouse.format.records import Record, encode_records
from streamhouse.format.segment import Lineage, encode_segment
from streamhouse.model.errors import CorruptData


def segment_bytes(batches: int = 4, *, lineage: Lineage | None = None) -> bytes:
    """A segment of one-record batches, each large enough for a block of its own."""
    placed = []
    for offset in range(batches):
        batch = bytearray(encode_records([Record(0, 1_700_000_000_000 + offset, b"k%d" % offset, b"v" * 300)]))
        place(batch, 0, offset, 1)
        placed.append(bytes(batch))
    return b"".join(encode_segment(placed, epoch=3, block_bytes=400, lineage=lineage).parts)


def test_a_sound_segment_shows_its_blocks_and_records() -> None:
    report = inspect_segment("file", segment_bytes())

    assert [block.first_offset for block in report.blocks] == [0, 1, 2, 3]
    assert report.damaged == ()
    assert report.footer.epoch == 3
    assert [(record.offset, record.key) for record in segment_records(report)] == [
        (0, b"k0"),
        (1, b"k1"),
        (2, b"k2"),
        (3, b"k3"),
    ]


def test_a_key_says_whose_the_segment_is() -> None:
    topic = "7a7faaf5-f514-4984-8afa-bd12088167e7"
    key = f"segments/{topic}/00003/00000000000000000000-00000001-84d360f8d13f4b47955dc67ca18a6105.strm"

    report = inspect_segment(f"/data/objects/{key}", segment_bytes())

    assert (report.topic, report.partition) == (topic, 3)


def test_what_took_the_place_of_others_says_of_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, replacing = tmp_path / "plain", tmp_path / "replacing"
    plain.write_bytes(segment_bytes())
    replacing.write_bytes(segment_bytes(lineage=Lineage(7, 0, 20, 0)))

    assert run(["segment", "show", str(plain)]) == 0
    assert "replaces" not in capsys.readouterr().out
    assert run(["segment", "show", str(replacing)]) == 0
    assert "0 to 19, as generation 7" in capsys.readouterr().out
    assert run(["segment", "show", str(replacing), "--json"]) == 0
    expected = {"generation": 7, "base_offset": 0, "end_offset": 20, "log_start_offset": 0}
    assert json.loads(capsys.readouterr().out)["footer"]["lineage"] == expected


def test_a_damaged_block_does_not_hide_the_others() -> None:
    sound = segment_bytes()
    damaged = bytearray(sound)
    damaged[inspect_segment("file", sound).blocks[1].position + 30] ^= 1

    report = inspect_segment("file", bytes(damaged))

    assert [block.number for block in report.damaged] == [1]
    assert [record.offset for record in segment_records(report)] == [0, 2, 3]


@pytest.mark.parametrize("at", [0, -1, -30])
def test_a_segment_whose_frame_is_damaged_is_refused(at: int) -> None:
    damaged = bytearray(segment_bytes())
    damaged[at] ^= 1

    with pytest.raises(CorruptData):
        inspect_segment("file", bytes(damaged))


def test_the_command_shows_a_file_and_fails_on_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.strm"
    path.write_bytes(segment_bytes())

    assert run(["segment", "show", str(path), "--json", "--records"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["footer"]["record_count"] == 4
    assert [record["key"] for record in shown["records"]] == ["k0", "k1", "k2", "k3"]

    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)

    assert run(["segment", "show", str(path)]) == 1
    captured = capsys.readouterr()
    assert "damaged" in captured.out
    assert captured.err.startswith("error: block 0 at byte 8 is damaged")
