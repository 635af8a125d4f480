"""The offsets that groups have committed, as the node of a data directory has stored them."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from streamhouse.metadata.sqlite.node_tables import committed_offset, committed_offsets
from streamhouse.metadata.sqlite.reading import DatabaseReader
from streamhouse.model.errors import Unsupported
from streamhouse.wire.flume.groups import NO_COMMIT

DATABASE = "metadata.db"


class OffsetStore:
    """`OffsetStore("./streamhouse-data").fetch("analytics", "orders", 0)`

    It may be asked while the node runs; each answer is as of then. Commits go through a node, which knows who may make
    them: `GroupConsumer.commit`, or API 5 of any Flume port."""

    def __init__(self, data_dir: str | Path) -> None:
        self._database = DatabaseReader(Path(data_dir) / DATABASE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fetch(self, group_id: str, topic: str, partition: int) -> int:
        """-1 if the group has committed nothing there."""
        found = self._database.read(lambda connection: committed_offset(connection, group_id, topic, partition))
        return NO_COMMIT if found is None or found < 0 else found

    def fetch_all(self, group_id: str) -> dict[tuple[str, int], int]:
        """By topic and partition."""
        return self._database.read(lambda connection: committed_offsets(connection, group_id))

    def commit(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """Refused: only a node may write what it has open, and only its own coordinator knows who may commit."""
        raise Unsupported(
            f"group {group_id!r} cannot commit {offset} for {topic}/{partition} here: this is for reading",
            hint="commit through a Flume port: streamhouse.flume.GroupConsumer",
        )

    def close(self) -> None:
        """Nothing is open between two questions."""
