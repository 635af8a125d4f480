"""The groups of one shard in memory: opened as they are stored, a task for each, and let go together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from streamhouse.groups.group import Group
from streamhouse.groups.shard import LeasedShard
from streamhouse.metadata.groups import GroupRow
from streamhouse.runtime.tasks import TaskGroup

MakeGroup: TypeAlias = Callable[[str, GroupRow | None, LeasedShard], Group]


class ShardGroups:
    def __init__(self, leased: LeasedShard, make_group: MakeGroup, tasks: TaskGroup) -> None:
        self.leased = leased
        self._make_group = make_group
        self._tasks = tasks
        self._groups: dict[str, Group] = {}
        self._owners: dict[str, asyncio.Task[Any]] = {}
        self.is_loaded = False
        self.loading = asyncio.Lock()
        """For whoever reads the groups in order to `fill` this."""

    @property
    def number(self) -> int:
        return self.leased.lease.shard

    @property
    def is_served(self) -> bool:
        return self.is_loaded and self.leased.is_live

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def find_or_open(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._make_group(group_id, None, self.leased)
            self._start(group_id, group)
        return group

    def fill(self, rows: Iterable[GroupRow]) -> None:
        """What is stored is what there is, whatever was in memory. All of it or, if it cannot be read, nothing."""
        self.let_go()
        groups = [(row.group_id, self._make_group(row.group_id, row, self.leased)) for row in rows]
        for group_id, group in groups:
            self._start(group_id, group)
        self.is_loaded = True

    def close(self, group_id: str) -> None:
        group = self._groups.pop(group_id, None)
        if group is not None:
            group.end()
            self._owners.pop(group_id).cancel()

    def let_go(self) -> None:
        """Forget the groups; whoever waits for one of them is told to look for its coordinator."""
        self.is_loaded = False
        for group_id in list(self._groups):
            self.close(group_id)

    async def expire(self, retention_ms: int) -> None:
        """Drop old offsets, and groups that nobody is in and nothing is stored of: expired, or joined once and never
        again."""
        await self.leased.expire(retention_ms)
        candidates = [group_id for group_id, group in self._groups.items() if not group.has_members]
        stored = {row.group_id for row in await self.leased.load_all()}
        for group_id in candidates:
            group = self._groups.get(group_id)
            if group is not None and group_id not in stored and group.is_idle:
                self.close(group_id)

    def _start(self, group_id: str, group: Group) -> None:
        self._groups[group_id] = group
        self._owners[group_id] = self._tasks.start(group.own(), group_id)
