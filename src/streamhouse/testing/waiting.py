"""What a test may wait for in its broker, and what is the case instead when it has waited in vain."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from streamhouse.app.node import Node
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.consumer_snapshot import ConsumerState
from streamhouse.core.groups.outcome import GroupError
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock

_LOOK_EVERY_MS = 5
_LONGEST_WAIT_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`records`: so many in the topic, or more. `members`: so many in a group that is stable. `lag`: no more than that
    behind, in the topic or in all that the group has committed. `committed`: of the topic, as the sum of offsets."""

    topic: str | None = None
    records: int | None = None
    group: str | None = None
    members: int | None = None
    lag: int | None = None
    committed: int | None = None

    def __post_init__(self) -> None:
        of_group = (self.members, self.lag, self.committed)
        if self.group is None and any(given is not None for given in of_group):
            raise InvalidInput("members, lag and committed are those of a group", hint="wait(group=…, lag=0)")
        if self.topic is None and (self.records is not None or self.committed is not None):
            raise InvalidInput("records and committed are those of a topic", hint="wait(topic=…, records=1)")
        if self.group is None and self.records is None:
            raise InvalidInput("there is nothing to wait for", hint="wait(topic=…, records=1) or wait(group=…)")
        for name in ("records", "members", "lag", "committed"):
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
                raise InvalidInput(f"{name}={number!r} is not a number of things")


def check_timeout(timeout_s: float) -> None:
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 <= timeout_s <= _LONGEST_WAIT_S:
        raise InvalidInput(f"timeout={timeout_s!r} is not for how long to wait", hint="seconds, a day at most")


async def wait_until(node: Node, clock: Clock, wanted: Wanted, timeout_s: float) -> None:
    """AssertionError after the time, with what is not as wanted."""
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    while (missing := await _missing(node, wanted)) is not None:
        if asyncio.get_running_loop().time() > deadline_s:
            raise AssertionError(f"after {timeout_s:g} s {missing}")
        await clock.sleep_ms(_LOOK_EVERY_MS)


async def _missing(node: Node, wanted: Wanted) -> str | None:
    if wanted.records is not None:
        assert wanted.topic is not None
        topic = node.broker.topics.find(wanted.topic)
        there = sum(end - start for start, end in _ends(node, topic).values()) if topic is not None else 0
        if there < wanted.records:
            name = wanted.topic
            return f"there are {there} records of {name!r}, and not {wanted.records}{_no_topic(node, name)}"
    if wanted.group is None:
        return None
    if wanted.members is not None or (wanted.lag is None and wanted.committed is None):
        unstable = _instability(node, wanted.group, wanted.members)
        if unstable is not None:
            return unstable
    return await _behind(node, wanted.group, wanted)


def _instability(node: Node, group: str, members: int | None) -> str | None:
    described = node.broker.groups.describe(group)
    if described is None or isinstance(described, GroupError):
        return f"group {group!r} has no members{_no_group(node, group)}"
    count, state = len(described.members), described.state
    if members is not None and count != members:
        return f"group {group!r} has {count} members, and not {members}, and is {state.value}"
    if state in (ClassicState.STABLE, ConsumerState.STABLE) or (members == 0 and not count):
        return None
    return f"group {group!r} is {state.value}, and not Stable, with {count} members"


async def _behind(node: Node, group: str, wanted: Wanted) -> str | None:
    if wanted.lag is None and wanted.committed is None:
        return None
    found = await node.broker.groups.committed(group, None, -1)
    if isinstance(found, GroupError):
        return f"group {group!r} has committed nothing{_no_group(node, group)}"
    offsets = {partition: each.offset for partition, each in found.items() if each.offset >= 0}
    topics = [
        topic
        for topic in node.broker.topics
        if (topic.name == wanted.topic if wanted.topic is not None else _has_committed(topic, offsets))
    ]
    if not topics:
        why = _no_topic(node, wanted.topic) if wanted.topic is not None else ""
        return f"group {group!r} has committed nothing{why or _no_group(node, group)}"
    behind: list[str] = []
    lag = committed = 0
    for topic in topics:
        for number, (start, end) in _ends(node, topic).items():
            offset = offsets.get(TopicPartition(topic.topic_id, number))
            committed += offset or 0
            left = end - max(start, offset if offset is not None else start)
            lag += left
            if left > 0:
                at = offset if offset is not None else "nothing"
                behind.append(f"{topic.name}/{number} has committed {at} of {end}")
    where = f": {'; '.join(behind)}" if behind else ""
    if wanted.lag is not None and lag > wanted.lag:
        return f"group {group!r} is {lag} records behind, and not {wanted.lag}{where}"
    if wanted.committed is not None and committed < wanted.committed:
        return f"group {group!r} has committed {committed} of {wanted.topic!r}, and not {wanted.committed}{where}"
    return None


def _ends(node: Node, topic: Topic) -> dict[int, tuple[int, int]]:
    """Of each partition that is led now: where it begins and ends."""
    leaders = node.engine.leadership.leaders_of(topic)
    return {
        number: (leader.log_start_offset, leader.high_watermark)
        for number, leader in enumerate(leaders)
        if leader is not None
    }


def _has_committed(topic: Topic, offsets: dict[TopicPartition, int]) -> bool:
    return any(partition.topic_id == topic.topic_id for partition in offsets)


def _no_topic(node: Node, name: str) -> str:
    if node.broker.topics.find(name) is not None:
        return ""
    names = [topic.name for topic in node.broker.topics]
    return f": there is no such topic, but {', '.join(names)}" if names else ": the broker has no topic"


def _no_group(node: Node, group: str) -> str:
    groups = node.broker.groups.all_groups()
    names = [] if isinstance(groups, GroupError) else [one.group_id for one in groups]
    if group in names:
        return ""
    return f": there is no such group, but {', '.join(names)}" if names else ": the broker has no group"
