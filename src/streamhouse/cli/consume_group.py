"""`consume --group`: reads as a member of a consumer group, and commits what was printed and nothing else."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from streamhouse.cli.console import print_note
from streamhouse.cli.topic_lookup import find_topic
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.group_consumer import GroupConsumer, GroupConsumerOptions
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.client.node import addresses_of
from streamhouse.model.errors import NotFound, StaleGeneration, StreamHouseError

_POLL_WAIT_MS = 500
_POLL_RECORDS = 500
_QUIET_POLLS = 6
"""So many without a partition, and it is said why nothing comes."""
EXIT_TERMINATED = 128 + signal.SIGTERM

Print = Callable[[Sequence[ConsumedRecord]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """Where the group has committed nothing, it starts with the earliest record, or with what is new."""

    bootstrap: str
    group: str
    topic: str
    from_earliest: bool
    follows: bool
    max_messages: int | None


async def consume_as_member(reading: GroupReading, show: Print) -> int:
    """To the end as it is now, or for as long as it is told; whatever ends it, it leaves the group. The exit code."""
    async with Cluster.connect(reading.bootstrap) as cluster:
        partitions = range(len((await find_topic(cluster, reading.topic)).partitions))
        ends = {} if reading.follows else await Admin(cluster).latest_offsets(reading.topic, partitions)
    options = GroupConsumerOptions(reset="earliest" if reading.from_earliest else "latest")
    nodes = await addresses_of(reading.bootstrap)
    consumer = GroupConsumer(nodes, reading.group, [reading.topic], options=options)
    with _Termination() as termination:
        try:
            async with consumer:
                await _read(consumer, reading, ends, show)
        except asyncio.CancelledError:
            if not termination.has_come:
                raise
            return EXIT_TERMINATED
    return 0


async def _read(consumer: GroupConsumer, reading: GroupReading, ends: dict[int, int], show: Print) -> None:
    left = reading.max_messages
    quiet = 0
    try:
        while left != 0 and (reading.follows or not _is_at_end(consumer, ends)):
            most = _POLL_RECORDS if left is None else min(left, _POLL_RECORDS)
            records = await consumer.poll(max_records=most, max_wait_ms=_POLL_WAIT_MS)
            if records:
                show(records)
                await _commit(consumer)
                left = None if left is None else left - len(records)
            quiet = 0 if consumer.assignment else quiet + 1
            if quiet == _QUIET_POLLS:
                print_note(f"other members of {reading.group!r} have all partitions; waiting for one to leave")
    except asyncio.CancelledError:
        # What a poll returned was printed: between the two nothing can be interrupted.
        with suppress(StreamHouseError):
            await consumer.commit()
        raise


async def _commit(consumer: GroupConsumer) -> None:
    try:
        await consumer.commit()
    except (StaleGeneration, NotFound):
        print_note("the partitions went to other members meanwhile, which may print the last records again")


def _is_at_end(consumer: GroupConsumer, ends: dict[int, int]) -> bool:
    """Of what is its own now; while that is nothing, there is more to come."""
    owned, positions = consumer.assignment, consumer.positions
    return bool(owned) and all(_is_read(partition, positions, ends) for partition in owned)


def _is_read(partition: GroupPartition, positions: dict[GroupPartition, int], ends: dict[int, int]) -> bool:
    position = positions.get(partition)
    return position is not None and position >= ends.get(partition.partition, 0)


class _Termination:
    """SIGTERM ends the block as Ctrl-C does, so that a member that is told to stop leaves its group."""

    def __init__(self) -> None:
        self.has_come = False

    def __enter__(self) -> _Termination:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None

        def end() -> None:
            self.has_come = True
            task.cancel()

        self._loop.add_signal_handler(signal.SIGTERM, end)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_signal_handler(signal.SIGTERM)
