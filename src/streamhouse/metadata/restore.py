"""What a metadata store that lost everything is asked: to take back what a bucket still says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from streamhouse.core.rebuild import RebuiltMetadata
from streamhouse.model.errors import AlreadyExists


class RestoreStore(Protocol):
    async def restore(self, rebuilt: RebuiltMetadata) -> None:
        """Topics, partitions, segments, epochs, leases and WAL objects in one transaction, beside what is there;
        AlreadyExists if a topic of that name or id is, unless it is all of them: that is an earlier try of this."""


def is_restored(rebuilt: RebuiltMetadata, names: Collection[str], ids: Collection[UUID]) -> bool:
    """Whether it has been done already; `names` and `ids` are those of the topics that the store has."""
    wanted = {topic.topic_id for topic in rebuilt.topics}
    if wanted and wanted <= set(ids):
        return True
    for topic in rebuilt.topics:
        if topic.name in names or topic.topic_id in ids:
            raise AlreadyExists(
                f"the metadata store has a topic {topic.name!r}", hint="rebuild into an empty one, or delete the topic"
            )
    return False
