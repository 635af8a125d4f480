"""Where groups are in a topic, some groups at a time: what the metadata store says, and while it is silent what it said
last to those who look again and again."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from streamhouse.metadata.checks import check_text
from streamhouse.metadata.totals import GroupPosition, TotalsStore
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.watched import Silence, Watched

_PATIENCE_MS = 2_000
_KEPT_PAGES = 8


class Positions(NamedTuple):
    """By group id and partition; `metadata_silence` is why there are no newer ones."""

    found: list[GroupPosition]
    metadata_silence: Silence | None


class _Page(NamedTuple):
    topic_id: UUID
    after_group: str
    group_limit: int


class TopicPositions:
    def __init__(self, store: TotalsStore, clock: Clock, tasks: TaskGroup) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._pages: OrderedDict[_Page, Watched[list[GroupPosition]]] = OrderedDict()

    async def find(self, topic_id: UUID, after_group: str, group_limit: int) -> Positions:
        """All those of so many groups, from the first behind `after_group`."""
        check_text("group id", after_group)
        watched = self._watched(_Page(topic_id, after_group, group_limit))
        await watched.look()
        if watched.answer is None:
            why = "" if watched.silence is None else f": {watched.silence.why}"
            raise MetadataUnavailable(f"the metadata store does not answer{why}", hint="try again when it is back")
        return Positions(watched.answer.value, watched.silence)

    async def _ask(self, page: _Page) -> list[GroupPosition]:
        return await self._store.list_topic_positions(page.topic_id, page.group_limit, after_group=page.after_group)

    def _watched(self, page: _Page) -> Watched[list[GroupPosition]]:
        if page not in self._pages:
            self._pages[page] = Watched(
                lambda: self._ask(page), self._clock, self._tasks, "positions", patience_ms=_PATIENCE_MS
            )
        self._pages.move_to_end(page)
        if len(self._pages) > _KEPT_PAGES:
            self._pages.popitem(last=False)
        return self._pages[page]
