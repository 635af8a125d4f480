"""Bytes that changed on disk: a torn tail is cut, earlier damage stops the node, a damaged segment is never served."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faults.workload import create_topic
from node.process import Node, NodeDied
from node.raw import RawConnection, build_batch, read_values
from node.storage import EmbeddedStorage, Segment, committed_records, segments_of
from node.wait import eventually

IN_WAL = ("--segment-age", "10m", "--wal-file-bytes", "1MiB")
"""Nothing reaches the object store before the crash: all is recovery's."""
CORRUPT_MESSAGE, STORAGE_ERROR = 2, 56


def wal_file(data_dir: Path) -> Path:
    return wal_files(data_dir)[-1]


def wal_files(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "wal").glob("*.wal"))


def written_end(content: bytes) -> int:
    """Where the unused rest of a preallocated file begins."""
    return len(content.rstrip(b"\0"))


class Crashed:
    """A node that acknowledged two writes and died, and where the second one lies in its WAL."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        with Node(data_dir, *IN_WAL) as node, RawConnection(node.address) as raw:
            create_topic(node.bootstrap, "torn", 1)
            for number in range(5):
                assert raw.produce("torn", build_batch(f"first-{number}".encode() * 20)).error_code == 0
            self.before = wal_file(data_dir).read_bytes()
            # With a header, so that its last byte is none of the zeros behind it, also if no mark follows it yet.
            assert raw.produce("torn", build_batch(b"second" * 50, headers=[("last", b"byte")])).error_code == 0
            self.after = wal_file(data_dir).read_bytes()
            node.kill9()
        self.start = next(at for at in range(len(self.after)) if self.before[at : at + 1] != self.after[at : at + 1])
        self.end = written_end(self.after)

    def leave(self, content: bytes) -> None:
        wal_file(self.data_dir).write_bytes(content)

    def values_after_restart(self) -> list[bytes | None]:
        with Node(self.data_dir, *IN_WAL) as node, RawConnection(node.address) as raw:
            values = list(read_values(raw.fetch("torn", 0).records).values())
            answer = raw.produce("torn", build_batch(b"afterwards"))
            assert (answer.error_code, answer.base_offset) == (0, len(values))
            assert read_values(raw.fetch("torn", len(values)).records) == {len(values): b"afterwards"}
            return values


FIRST = [f"first-{number}".encode() * 20 for number in range(5)]


@pytest.fixture(scope="module")
def crashed_once(tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    return Crashed(tmp_path_factory.mktemp("crashed") / "data")


@pytest.fixture
def crashed(crashed_once: Crashed, data_dir: Path) -> Crashed:
    """A copy of the crashed node's directory for each test."""
    shutil.copytree(crashed_once.data_dir, data_dir)
    crashed = object.__new__(Crashed)
    crashed.__dict__.update(crashed_once.__dict__, data_dir=data_dir)
    return crashed


def test_what_is_only_in_the_wal_is_recovered(crashed: Crashed) -> None:
    assert crashed.values_after_restart() == [*FIRST, b"second" * 50]


@pytest.mark.parametrize("part", [0.05, 0.5, 0.85])
def test_an_entry_that_was_written_in_part_is_cut(crashed: Crashed, part: float) -> None:
    """As if the machine had died in the middle of the second write, before its sync and its acknowledgement."""
    torn = crashed.start + int((crashed.end - crashed.start) * part)
    crashed.leave(crashed.after[:torn].ljust(len(crashed.after), b"\0"))
    assert crashed.values_after_restart() == FIRST


@pytest.mark.parametrize("part", [0.05, 0.5, 0.85])
def test_a_file_that_ends_in_the_middle_of_an_entry_is_cut(crashed: Crashed, part: float) -> None:
    torn = crashed.start + int((crashed.end - crashed.start) * part)
    crashed.leave(crashed.after[:torn])
    assert crashed.values_after_restart() == FIRST


def test_an_entry_whose_blocks_reached_the_disk_out_of_order_is_never_served(crashed: Crashed) -> None:
    """Its end was written, its beginning was not: an unsynced write has no order. To refuse it is safe, too."""
    middle = (crashed.start + crashed.end) // 2
    crashed.leave(crashed.after[: crashed.start] + bytes(middle - crashed.start) + crashed.after[middle:])
    try:
        values = crashed.values_after_restart()
    except NodeDied as death:
        assert "streamhouse wal show" in death.stderr  # noqa: PT017
    else:
        assert values == FIRST


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"\x00" * 7 + b"\x01" * 300, bytes(range(256)) * 40])
def test_garbage_behind_the_last_entry_is_cut(crashed: Crashed, garbage: bytes) -> None:
    end = crashed.end
    crashed.leave((crashed.after[:end] + garbage).ljust(len(crashed.after), b"\0"))
    assert crashed.values_after_restart() == [*FIRST, b"second" * 50]


@pytest.mark.parametrize("where", ["first entry", "middle", "length field"])
def test_a_flipped_bit_before_the_tail_stops_the_node_loudly(crashed: Crashed, where: str) -> None:
    first = crashed.after.index(b"first-0")
    third = crashed.after.index(b"first-3")
    # Offsets and lengths lie in the entry's header, before the batch and its 61 bytes of header.
    position = {"first entry": first, "middle": third + 5, "length field": third - 61 - 21 - 8}[where]
    damaged = bytearray(crashed.after)
    damaged[position] ^= 0x10
    crashed.leave(bytes(damaged))
    with pytest.raises(NodeDied) as death, Node(crashed.data_dir, *IN_WAL):
        pass
    assert death.value.exit_code not in (0, None)
    assert "streamhouse wal show" in death.value.stderr
    assert wal_file(crashed.data_dir).read_bytes() == bytes(damaged), "the evidence was changed"


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_wal_file_that_is_gone_stops_the_node_loudly(data_dir: Path, gone: int) -> None:
    """Each file has a record of a partition of its own, so that no offset tells. There are few enough of them that
    nothing is uploaded to relieve the WAL."""
    with Node(data_dir, *IN_WAL) as node:
        create_topic(node.bootstrap, "big", 3)
        with RawConnection(node.address) as raw:
            for partition in range(3):
                batch = build_batch(b"%d" % partition * 600_000)
                assert raw.produce("big", batch, partition=partition).error_code == 0
        node.kill9()
    (file,) = [path for path in wal_files(data_dir) if b"%d" % gone * 600_000 in path.read_bytes()]
    file.unlink()
    for _ in range(2):  # it is no less gone at the second try
        with pytest.raises(NodeDied) as death, Node(data_dir):
            pass
        assert death.value.exit_code not in (0, None)
        assert "WAL file" in death.value.stderr


def test_a_lost_wal_can_be_given_up(data_dir: Path) -> None:
    with Node(data_dir, *IN_WAL, "--lease-ttl", "2s", "--lease-renewal", "500ms") as node:
        create_topic(node.bootstrap, "given-up", 1)
        with RawConnection(node.address) as raw:
            assert raw.produce("given-up", build_batch(b"lost")).error_code == 0
        node.kill9()
    for file in wal_files(data_dir):
        file.unlink()
    with pytest.raises(NodeDied, match="partition elect"), Node(data_dir):
        pass
    elect = [sys.executable, "-m", "streamhouse", "partition", "elect", "given-up", "0", "--unclean", "--yes"]
    command = [*elect, "--data-dir", str(data_dir)]
    eventually(
        lambda: subprocess.run(command, check=False, capture_output=True).returncode == 0,
        "its lease runs out, and its records are given up",
    )
    with Node(data_dir) as node, RawConnection(node.address) as raw:
        assert raw.produce("given-up", build_batch(b"goes on")).error_code == 0


# -- segments -------------------------------------------------------------------------------------------------------

PLACES = {
    "first block's header": lambda size: 12,
    "first block": lambda size: size // 4,
    "middle": lambda size: size // 2,
    "last block": lambda size: size * 3 // 4,
    "index": lambda size: size - 110,
    "footer's start": lambda size: size - 80,
    "footer": lambda size: size - 40,
    "footer's end": lambda size: size - 10,
    "last byte": lambda size: size - 1,
}
VALUES = {number: f"{number}-".encode() * 200 for number in range(8)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped node whose topic has a partition with one segment for each place to damage, and one more."""
    data_dir = tmp_path_factory.mktemp("stored") / "data"
    storage = EmbeddedStorage(data_dir)
    partitions = len(PLACES) + 1
    with Node(data_dir, "--segment-age", "100ms") as node, RawConnection(node.address) as raw:
        create_topic(node.bootstrap, "stored", partitions)
        for partition in range(partitions):
            answer = raw.produce("stored", build_batch(*VALUES.values()), partition=partition)
            assert answer.error_code == 0
        eventually(lambda: committed_records(storage, "stored") == 8 * partitions, "all segments")
        assert node.terminate() == 0
    return data_dir


def damage(storage: EmbeddedStorage, segment: Segment, position: int) -> None:
    content = bytearray(storage.read_object(segment.object_key))
    content[position] ^= 0x01
    storage.write_object(segment.object_key, bytes(content))


def assert_refused(node: Node, partition: int, place: str) -> None:
    """A fetch of it is an error; what cannot be read is not skipped either, so the log begins and ends where it did."""
    with RawConnection(node.address) as raw:
        answer = raw.fetch("stored", 0, partition=partition)
        assert answer.error_code in (CORRUPT_MESSAGE, STORAGE_ERROR), f"{place}: answered with {answer.error_code}"
        assert not answer.records, f"{place}: served"
        assert raw.list_offset("stored", -2, partition).offset == 0, place
        assert raw.list_offset("stored", -1, partition).offset == len(VALUES), place


def assert_served(node: Node, partition: int) -> None:
    with RawConnection(node.address) as raw:
        answer = raw.fetch("stored", 0, partition=partition)
        assert (answer.error_code, read_values(answer.records)) == (0, VALUES)


def test_a_damaged_segment_is_an_error_and_never_wrong_data(stored: Path, data_dir: Path) -> None:
    shutil.copytree(stored, data_dir)
    storage = EmbeddedStorage(data_dir)
    segments = segments_of(storage, "stored")
    for segment, place in zip(segments, PLACES.values(), strict=False):
        damage(storage, segment, place(segment.size_bytes))
    intact = segments[-1].partition
    with Node(data_dir) as node:
        for segment, place in zip(segments, PLACES, strict=False):
            assert_refused(node, segment.partition, f"damage in its {place}")
        assert_served(node, intact)
        with RawConnection(node.address) as raw:
            assert raw.produce("stored", build_batch(b"goes on"), partition=intact).error_code == 0


def test_a_damaged_magic_is_an_error_or_does_no_harm(stored: Path, data_dir: Path) -> None:
    """A range read need not come by there."""
    shutil.copytree(stored, data_dir)
    storage = EmbeddedStorage(data_dir)
    segment = segments_of(storage, "stored")[0]
    damage(storage, segment, 0)
    with Node(data_dir) as node, RawConnection(node.address) as raw:
        answer = raw.fetch("stored", 0, partition=segment.partition)
        assert answer.error_code in (CORRUPT_MESSAGE, STORAGE_ERROR) or read_values(answer.records) == VALUES


def test_a_segment_that_is_short_is_an_error(stored: Path, data_dir: Path) -> None:
    shutil.copytree(stored, data_dir)
    storage = EmbeddedStorage(data_dir)
    short, *_, intact = segments_of(storage, "stored")
    storage.write_object(short.object_key, storage.read_object(short.object_key)[:-30])
    with Node(data_dir) as node:
        assert_refused(node, short.partition, "short")
        assert_served(node, intact.partition)


def test_a_segment_that_is_gone_is_an_error_and_not_an_unknown_topic(stored: Path, data_dir: Path) -> None:
    shutil.copytree(stored, data_dir)
    storage = EmbeddedStorage(data_dir)
    gone, *_, intact = segments_of(storage, "stored")
    storage.write_object(gone.object_key, None)
    with Node(data_dir) as node:
        assert_refused(node, gone.partition, "gone")
        assert_served(node, intact.partition)


def test_the_command_that_inspects_a_segment_finds_the_damage(stored: Path, data_dir: Path) -> None:
    shutil.copytree(stored, data_dir)
    storage = EmbeddedStorage(data_dir)
    segment = segments_of(storage, "stored")[0]
    file = data_dir / "objects" / segment.object_key

    def show() -> int:
        command = [sys.executable, "-m", "streamhouse", "segment", "show", str(file)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert show() == 0
    damage(storage, segment, segment.size_bytes // 2)
    assert show() != 0
