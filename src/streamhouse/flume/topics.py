"""The topics of a data directory, as its node has stored them: partitions, offsets and segments, to read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from streamhouse.flume.offsets import DATABASE
from streamhouse.flume.record import Record
from streamhouse.flume.segment import Segment
from streamhouse.metadata.sqlite import node_tables as tables
from streamhouse.metadata.sqlite.reading import DatabaseReader
from streamhouse.model.errors import NotFound, OffsetOutOfRange

T = TypeVar("T")

OBJECTS = "objects"


class TopicManager:
    """`TopicManager("./streamhouse-data").get("orders").partition(0).read(5)`

    What it shows is in segments. Records that no segment holds yet are in the node's write-ahead log, and come by a
    fetch."""

    def __init__(self, data_dir: str | Path) -> None:
        self._objects = Path(data_dir) / OBJECTS
        self._database = DatabaseReader(Path(data_dir) / DATABASE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topics(self) -> list[str]:
        return [row.name for row in self.rows()]

    def rows(self) -> list[tables.TopicRow]:
        return self._database.read(tables.topics)

    def get(self, name: str) -> Topic | None:
        found = [row for row in self.rows() if row.name == name]
        return Topic(found[0], self._objects, self._database) if found else None

    def close(self) -> None:
        """Nothing is open between two questions."""


class Topic:
    def __init__(self, row: tables.TopicRow, objects: Path, database: DatabaseReader) -> None:
        self.name = row.name
        self.num_partitions = row.partition_count
        self._row = row
        self._objects = objects
        self._database = database

    def partition(self, number: int) -> Partition:
        if not 0 <= number < self.num_partitions:
            raise NotFound(f"topic {self.name!r} has no partition {number}")
        return Partition(self._row, number, self._objects, self._database)

    def read(self, partition: int, offset: int) -> Record:
        return self.partition(partition).read(offset)


class Partition:
    def __init__(self, row: tables.TopicRow, number: int, objects: Path, database: DatabaseReader) -> None:
        self.number = number
        self._row = row
        self._objects = objects
        self._database = database

    @property
    def oldest_offset(self) -> int:
        return self._range().log_start_offset

    @property
    def newest_offset(self) -> int:
        """The last one that a segment holds; one less than the oldest if none does."""
        return self._range().stored_end - 1

    def segments(self) -> list[Path]:
        """Their files, oldest first. A node may replace or delete some at any time. The first may hold records before
        `oldest_offset` too: these are deleted, and gone with their file."""
        keys = self._ask(lambda connection: tables.segment_keys(connection, self._row.topic_id, self.number))
        return [self._objects / key for key in keys]

    def read(self, offset: int) -> Record:
        with self._segment_at(offset) as segment:
            return segment.read(offset)

    @contextmanager
    def _segment_at(self, offset: int) -> Iterator[Segment]:
        key = self._ask(lambda connection: tables.segment_key_at(connection, self._row.topic_id, self.number, offset))
        if key is None:
            stored = self._range()
            raise OffsetOutOfRange(
                f"{offset} is none of the offsets of {self._row.name}/{self.number} that segments hold: these are from "
                f"{stored.log_start_offset} on, below {stored.stored_end}"
            )
        with Segment(self._objects / key) as segment:
            yield segment

    def _range(self) -> tables.StoredRange:
        found = self._ask(lambda connection: tables.stored_range(connection, self._row.topic_id, self.number))
        if found is None:
            raise NotFound(f"topic {self._row.name!r} was deleted")
        return found

    def _ask(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return self._database.read(work)
