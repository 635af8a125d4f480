"""Groups in this process's memory, over the topics and committed offsets of a data directory. None of it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from streamhouse.client.flume.errors import UnknownMember
from streamhouse.core.groups.consumer_target import Topics, TopicShape
from streamhouse.flume.group import DEFAULT_SESSION_TIMEOUT_MS, Group
from streamhouse.flume.offsets import OffsetStore
from streamhouse.flume.topics import TopicManager
from streamhouse.model.errors import Unavailable
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.wire.flume.groups import NEW_MEMBER, AssignedPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS


class JoinResult(NamedTuple):
    member_id: str
    generation: int
    leader_id: str
    members: tuple[str, ...]


def default_coordinator_config() -> CoordinatorConfig:
    return CoordinatorConfig()


class Coordinator:
    """`with Coordinator(default_coordinator_config(), offset_store, topic_manager) as coordinator: …`

    Silent members are removed before each question, not in the background."""

    def __init__(
        self, config: CoordinatorConfig, offset_store: OffsetStore, topics: TopicManager, *, clock: Clock | None = None
    ) -> None:
        self._config = config
        self._offsets = offset_store
        self._topics = topics
        self._clock = clock or SystemClock()
        self._groups: dict[str, Group] = {}
        self._is_running = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._is_running = True

    def stop(self) -> None:
        """Its groups are gone."""
        self._is_running = False
        self._groups.clear()

    def join_group(self, group_id: str, member_id: str, topics: list[str]) -> JoinResult:
        """The group is made if there is none. A member gets what others have given up: they join again for that."""
        self._check_running()
        group = self._groups.get(group_id)
        if group is None:
            if member_id != NEW_MEMBER:
                raise UnknownMember(f"{member_id!r} is no member of {group_id!r}", hint="join without a member id")
            group = Group(
                group_id,
                topics=self._shapes,
                session_timeout_ms=self._config.session_timeout_ms,
                clock=self._clock,
            )
        group.expire_members()
        joined = group.join(member_id, topics)
        self._groups[group_id] = group
        return JoinResult(joined.member_id, joined.generation, group.leader_id, group.members)

    def heartbeat(self, group_id: str, member_id: str, generation: int) -> None:
        self._group(group_id).heartbeat(member_id, generation)

    def leave_group(self, group_id: str, member_id: str) -> None:
        self._group(group_id).leave(member_id)

    def get_assignments(self, group_id: str, member_id: str) -> tuple[AssignedPartition, ...]:
        return self._group(group_id).assignments(member_id)

    def fetch_offset(self, group_id: str, topic: str, partition: int) -> int:
        """-1 if the group of that name, on the node, has committed nothing there."""
        self._check_running()
        return self._offsets.fetch(group_id, topic, partition)

    def commit_offset(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """Refused, as the offset store refuses it."""
        self._offsets.commit(group_id, topic, partition, offset)

    def _group(self, group_id: str) -> Group:
        self._check_running()
        if group_id not in self._groups:
            raise UnknownMember(f"nobody has joined {group_id!r} here")
        return self._groups[group_id]

    def _shapes(self) -> Topics:
        return {row.name: TopicShape(row.topic_id, row.partition_count) for row in self._topics.rows()}

    def _check_running(self) -> None:
        if not self._is_running:
            raise Unavailable("the coordinator is not started")
