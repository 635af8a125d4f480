"""What a task has staged says where everything is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streamhouse.format.object_keys import parse_staging_key
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, StorageUnavailable
from streamhouse.spark.sink import staging
from streamhouse.spark.sink.staging import StagingArea


class Objects:
    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.problem: Exception | None = None

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        self.content[key] = b"".join(parts)
        if self.problem is not None:
            raise self.problem


def test_runs_name_the_bytes_of_each_partition_together() -> None:
    objects = Objects()
    area = StagingArea(objects.put, "sink", 7, 3)
    area.add("a", 0, [b"11", b"222"], 5)
    area.add("b", 1, [b"x"], 1)
    area.add("a", 0, [b"3"], 2)
    (staged,) = area.finish()
    assert parse_staging_key(staged.key) == ("sink", 7)
    found = {
        (run.topic, run.partition): (objects.content[staged.key][run.start_byte : run.end_byte], run.record_count)
        for run in staged.runs
    }
    assert found == {("a", 0): (b"112223", 7), ("b", 1): (b"x", 1)}
    assert sum(len(content) for content, _ in found.values()) == len(objects.content[staged.key])


def test_nothing_written_is_nothing_staged() -> None:
    objects = Objects()
    assert StagingArea(objects.put, "sink", 0, 0).finish() == []
    assert objects.content == {}


def test_a_task_with_much_to_write_stages_several_objects_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_OBJECT_BYTES", 10)
    objects = Objects()
    area = StagingArea(objects.put, "sink", 0, 0)
    for number in range(7):
        area.add("a", 0, [b"%d" % number * 4], 1)
    staged = area.finish()
    assert [objects.content[item.key] for item in staged] == [b"000011112222", b"333344445555", b"6666"]
    assert [item.runs[0].record_count for item in staged] == [3, 3, 1]


def test_a_key_that_is_taken_is_our_own_earlier_try() -> None:
    objects = Objects()
    objects.problem = AlreadyExists("it exists")
    area = StagingArea(objects.put, "sink", 0, 0)
    area.add("a", 0, [b"x"], 1)
    assert len(area.finish()) == 1


def test_a_store_that_refuses_fails_the_task() -> None:
    objects = Objects()
    objects.problem = StorageUnavailable("no room")
    area = StagingArea(objects.put, "sink", 0, 0)
    area.add("a", 0, [b"x"], 1)
    with pytest.raises(StorageUnavailable):
        area.finish()
