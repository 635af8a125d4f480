"""A verification finds every kind of violation in a stored cluster, and none in a sound one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.clock import ManualClock
from stored_cluster.logs import StoredLogs, execute
from streamhouse.format.object_keys import segment_key, wal_object_key
from streamhouse.log import verify
from streamhouse.log.verify import Verification
from streamhouse.log.verify_report import Finding, Invariant, Report
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.metadata.store import Lease, SegmentRow
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.names import TopicPartition
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.store import ObjectInfo
from streamhouse.runtime.entropy import new_uuid

GRACE_MS = 3_600_000


class WatchedMetadata(SqliteMetadataStore):
    """Lets something happen between one reading and the next."""

    growing: list[Lease]
    logs: StoredLogs

    async def load_wal_ranges(self, partitions: Sequence[TopicPartition]) -> list[list[WalRange]]:
        if self.growing:
            await self.logs.add_segment(self.growing.pop())
        return await super().load_wal_ranges(partitions)


class WatchedObjects(MemoryStore):
    """Forgets a row as retention does, just before anybody looks whether its object is there."""

    database: Path
    forgotten: str = ""

    async def head(self, key: str) -> ObjectInfo:
        execute(self.database, "DELETE FROM segments WHERE object_key = ?", [self.forgotten])
        return await super().head(key)


@dataclass
class Stored:
    """`orders/0` has segments [0, 3), [3, 6) of epoch 1 and [6, 9) of epoch 2, and two WAL objects [9, 12) and
    [12, 15), which also hold [0, 3) and [3, 6) of `orders/1`; `orders/2` is empty."""

    database: Path
    clock: ManualClock
    metadata: WatchedMetadata
    objects: WatchedObjects
    logs: StoredLogs
    leases: list[Lease]
    segments: list[SegmentRow]
    wal_keys: list[str]

    def sql(self, statement: str, *values: Any) -> None:
        execute(self.database, statement, values)

    async def verify(self, *, deep: bool = False) -> Report:
        verification = Verification(
            metadata=self.metadata,
            objects=self.objects,
            oldest_upload_ms=self.clock.now_ms() - GRACE_MS,
            deep=deep,
        )
        return await verification.run(await self.metadata.list_placements())

    async def violations(self, *, deep: bool = False) -> list[str]:
        report = await self.verify(deep=deep)
        assert report.notes == []
        return [_line(finding) for finding in report.violations]


def _line(finding: Finding) -> str:
    return f"{finding.invariant.value} {finding.subject}: {finding.message}"


@asynccontextmanager
async def stored_cluster(directory: Path) -> AsyncIterator[Stored]:
    clock = ManualClock()
    database = Database(str(directory / "metadata.db"), clock)
    await database.open()
    metadata = WatchedMetadata(database)
    objects = WatchedObjects(clock)
    objects.database = directory / "metadata.db"
    metadata.logs = logs = StoredLogs(metadata, objects)
    metadata.growing = []
    try:
        first, second, third = await logs.create(partitions=3)
        lease = await logs.lead(first)
        segments = [await logs.add_segment(lease), await logs.add_segment(lease)]
        lease = await logs.lead(first)
        segments.append(await logs.add_segment(lease))
        leases = [lease, await logs.lead(second), await logs.lead(third)]
        keys = [await logs.add_wal_object(*leases[:2]), await logs.add_wal_object(*leases[:2])]
        yield Stored(objects.database, clock, metadata, objects, logs, leases, segments, keys)
    finally:
        await metadata.close()


@pytest.mark.parametrize("deep", [False, True])
async def test_a_sound_cluster_has_no_violations(tmp_path: Path, deep: bool) -> None:
    async with stored_cluster(tmp_path) as stored:
        report = await stored.verify(deep=deep)

        assert report.findings == []
        assert (report.partitions, report.segments, report.wal_objects) == (3, 3, 2)
        assert (report.bytes_read > 0) == deep


async def test_what_agents_do_is_no_violation(tmp_path: Path) -> None:
    """A segment that ends inside a WAL range, WAL ranges older than the leader that uploads, a log start inside a
    segment, retired WAL objects, a topic that is deleted."""
    async with stored_cluster(tmp_path) as stored:
        lease = await stored.logs.lead(stored.leases[0].partition, "a1")
        await stored.logs.add_segment(lease, 4)
        await stored.metadata.advance_log_start(lease.partition, "a1", lease.epoch, 4)
        await stored.logs.add_segment(stored.leases[1], 6)
        assert await stored.metadata.retire_wal_objects(10) == 1
        (deleted,) = await stored.logs.create("deleted")
        await stored.logs.add_segment(await stored.logs.lead(deleted))
        await stored.metadata.delete_topic(deleted.topic_id)
        stored.clock.advance(2 * GRACE_MS)

        assert (await stored.verify(deep=True)).findings == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM segments WHERE base_offset = 3", "gap: no segment holds 3 to 5"),
        ("UPDATE segments SET end_offset = 5 WHERE base_offset = 0", "overlap: two segments hold 3 to 4"),
        ("DELETE FROM segments WHERE base_offset = 0", "gap: no segment holds 0 to 2, after the log start"),
        ("DELETE FROM segments", "gap: no segment holds 0 to 8"),
        ("DELETE FROM segments WHERE base_offset = 6", "segments end at 6, the committed end is 9"),
        (
            "UPDATE segments SET epoch = CASE base_offset WHEN 0 THEN 2 WHEN 3 THEN 1 ELSE 2 END",
            "epoch goes back: segment 3 to 5 has 1, the one before it 2",
        ),
        (
            "UPDATE segments SET epoch = 7 WHERE base_offset = 6",
            "segment 6 to 8 has epoch 7, but the lease only reached 2",
        ),
        (
            "DELETE FROM wal_ranges WHERE base_offset = 9",
            "gap: no WAL range holds 9 to 11, after the committed end",
        ),
        ("DELETE FROM wal_ranges WHERE base_offset >= 9", "gap: no WAL range holds 9 to 14"),
        ("DELETE FROM wal_ranges WHERE base_offset = 12", "WAL ranges end at 12, the durable end is 15"),
        ("UPDATE wal_ranges SET base_offset = 13 WHERE base_offset = 12", "gap: no WAL range holds 12 to 12"),
        ("UPDATE wal_ranges SET base_offset = 11 WHERE base_offset = 12", "overlap: two WAL ranges hold 11 to 11"),
        (
            "UPDATE wal_ranges SET epoch = 1 WHERE base_offset = 12",
            "epoch goes back: WAL range 12 to 14 has 1, the one before it 2",
        ),
    ],
    ids=lambda value: value if value.startswith(("DELETE", "UPDATE")) else "",
)
async def test_a_seam_in_the_log_is_found(tmp_path: Path, statement: str, message: str) -> None:
    async with stored_cluster(tmp_path) as stored:
        stored.sql(statement)
        # Without its row, an object is an orphan, but of the age of this test.
        assert await stored.violations() == [f"I3 orders/0: {message}"]


async def test_a_missing_segment_object_is_found(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key = stored.segments[1].object_key
        await stored.objects.delete([key])

        assert await stored.violations() == [f"I7 orders/0: segment 3 to 5: object {key} is not there"]


async def test_a_truncated_segment_object_is_found(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key, size = stored.segments[2].object_key, stored.segments[2].size_bytes
        await stored.logs.replace_object(key, (await stored.objects.get(key))[:-1])

        (violation,) = await stored.violations()
        assert violation == f"I7 orders/0: segment 6 to 8: object {key} has {size - 1} bytes instead of {size}"


async def test_a_flipped_bit_in_a_segment_is_found_by_reading_it(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key = stored.segments[0].object_key
        await stored.logs.replace_object(key, _flipped(await stored.objects.get(key), 40))

        assert await stored.violations() == []
        (violation,) = await stored.violations(deep=True)
        assert violation == f"I7 orders/0: segment 0 to 2: object {key} does not match its checksum"


async def test_a_segment_that_holds_something_else_than_its_row_says_is_found_by_reading_it(tmp_path: Path) -> None:
    """Each object is sound in itself, and the checksums are theirs."""
    async with stored_cluster(tmp_path) as stored:
        for column, base, value in (("record_count", 0, 2), ("epoch", 3, 0)):
            stored.sql(f"UPDATE segments SET {column} = {value} WHERE base_offset = {base}")
        first, _, last = stored.segments
        stored.sql(
            "UPDATE segments SET object_key = ?, checksum = ?, size_bytes = ? WHERE base_offset = 6",
            first.object_key,
            first.checksum,
            first.size_bytes,
        )

        violations = [line.rpartition(" object ")[2] for line in await stored.violations(deep=True)]
        assert violations[0].startswith("I3 orders/0: epoch goes back")
        assert [line.partition(" ")[2] for line in violations[1:]] == [
            "holds 3 records instead of 2",
            "was written in epoch 1 instead of 0",
            "holds offsets 0 to 2",
        ]
        assert last.object_key not in " ".join(violations)


async def test_a_missing_wal_object_is_found(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        await stored.objects.delete([stored.wal_keys[0]])

        assert await stored.violations() == [f"I7 WAL object {stored.wal_keys[0]}: is not there"]


async def test_a_truncated_wal_object_is_found(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key = stored.wal_keys[1]
        ((_, last),) = await stored.metadata.load_wal_ranges([stored.leases[1].partition])
        end = last.position + last.size_bytes
        await stored.logs.replace_object(key, (await stored.objects.get(key))[: end - 1])

        expected = f"I7 WAL object {key}: orders/1 3 to 5 should end at byte {end}, but the object has {end - 1}"
        assert await stored.violations() == [expected]
        assert await stored.violations(deep=True) == [expected]


async def test_a_flipped_bit_in_a_wal_object_is_found_by_reading_it(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key = stored.wal_keys[0]
        await stored.logs.replace_object(key, _flipped(await stored.objects.get(key), 40))

        assert await stored.violations() == []
        assert await stored.violations(deep=True) == [
            f"I7 WAL object {key}: orders/0 9 to 11 is damaged: the range does not match its CRC"
        ]


async def test_a_range_in_an_object_that_is_not_registered_is_found(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key = stored.wal_keys[1]
        stored.sql("DELETE FROM wal_objects WHERE object_key = ?", key)

        assert await stored.violations() == [
            f"I7 WAL object {key}: holds orders/0 12 to 14 and is not registered",
            f"I7 WAL object {key}: holds orders/1 3 to 5 and is not registered",
        ]


async def test_a_registered_object_that_is_about_to_be_removed_is_found(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        segment, wal_object = stored.segments[0].object_key, stored.wal_keys[0]
        for key in (segment, wal_object):
            stored.sql("INSERT INTO garbage VALUES (?, 0)", key)

        assert await stored.violations() == [
            f"I7 orders/0: segment 0 to 2: object {segment} is registered and yet to be removed as garbage",
            f"I7 WAL object {wal_object}: is registered and yet to be removed as garbage",
        ]


async def test_an_object_that_nothing_refers_to_is_noted_when_it_is_old_enough(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        partition = stored.leases[0].partition
        orphans = [
            segment_key(partition.topic_id, 0, 9, 1, new_uuid()),
            segment_key(new_uuid(), 0, 0, 1, new_uuid()),
            wal_object_key("a1", 1, new_uuid()),
        ]
        doomed = segment_key(partition.topic_id, 0, 9, 1, new_uuid())
        for key in (*orphans, doomed, "segments/of-somebody-else", "wal/of-somebody-else"):
            await stored.objects.create(key, [b"x"])
        stored.sql("INSERT INTO garbage VALUES (?, 0)", doomed)

        assert (await stored.verify()).findings == []
        stored.clock.advance(GRACE_MS + 1)
        report = await stored.verify()

        assert report.violations == []
        assert {note.invariant for note in report.notes} == {Invariant.AGREEMENT}
        assert sorted(note.subject for note in report.notes) == sorted(f"object {key}" for key in orphans)


async def test_rows_that_go_while_objects_are_looked_at_are_no_violation(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        key = stored.segments[0].object_key
        await stored.objects.delete([key])
        stored.objects.forgotten = key

        assert await stored.violations() == []


@pytest.mark.parametrize(("times", "is_settled"), [(5, True), (1_000, False)])
async def test_a_log_that_grows_is_read_again_until_it_stands_still(
    tmp_path: Path, times: int, is_settled: bool
) -> None:
    async with stored_cluster(tmp_path) as stored:
        stored.metadata.growing = [stored.leases[2]] * times

        report = await stored.verify()

        assert report.violations == []
        assert [note.subject for note in report.notes] == ([] if is_settled else ["orders/2"])


async def test_many_partitions_are_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_PARTITIONS_AT_ONCE", 2)
    async with stored_cluster(tmp_path) as stored:
        rows = []
        for topic in range(4):
            for partition in await stored.logs.create(f"topic-{topic}", 3):
                rows.append(await stored.logs.add_segment(await stored.logs.lead(partition)))
        await stored.metadata.delete_topic((await stored.metadata.list_topics())[-1].topic_id)
        await stored.objects.delete([rows[0].object_key, rows[8].object_key])
        stored.clock.advance(2 * GRACE_MS)

        report = await stored.verify(deep=True)

        assert (report.partitions, report.segments) == (12, 12)
        assert sorted(finding.subject for finding in report.findings) == ["topic-0/0", "topic-2/2"]


async def test_progress_counts_every_offset(tmp_path: Path) -> None:
    async with stored_cluster(tmp_path) as stored:
        checked: list[int] = []
        verification = Verification(
            metadata=stored.metadata, objects=stored.objects, oldest_upload_ms=0, deep=False, checked=checked.append
        )

        await verification.run(await stored.metadata.list_placements())

        assert sum(checked) == 15 + 6


def _flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
