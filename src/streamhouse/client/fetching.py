"""One round of fetching from partitions of any topics: each leader is asked once, each partition answers for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from streamhouse.client.cluster import Cluster
from streamhouse.client.connection import DEFAULT_TIMEOUT_MS, Connection
from streamhouse.client.errors import error_for, raise_for
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.batch import HEADER_BYTES, BatchHeader, read_header
from streamhouse.format.row_reading import CLIENT_LIMITS, RowLimits, read_rows
from streamhouse.format.rows import Record
from streamhouse.model.errors import OffsetOutOfRange, StreamHouseError, UnreadableRecords
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import fetch
from streamhouse.wire.kafka.primitives import Records

# The last version that names topics; from 13 on it is their ids, which nothing here needs.
MAX_FETCH_VERSION = 12


class FetchLimits(NamedTuple):
    max_wait_ms: int
    max_bytes: int = 16 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    min_bytes: int = 1
    rows: RowLimits = CLIENT_LIMITS


class Fetched(NamedTuple):
    """What a partition answered from `offset` on: its records and where it goes on, or why there are none."""

    partition: GroupPartition
    offset: int
    next_offset: int
    records: list[Record]
    problem: StreamHouseError | None = None


async def fetch_round(cluster: Cluster, positions: Mapping[GroupPartition, int], limits: FetchLimits) -> list[Fetched]:
    """A leader that cannot be reached is the problem of its partitions alone."""
    answers: list[Fetched] = []
    shares: dict[Connection, dict[GroupPartition, int]] = {}
    for partition, offset in positions.items():
        try:
            leader = await cluster.leader(partition.topic, partition.partition)
        except StreamHouseError as problem:
            answers.append(Fetched(partition, offset, offset, [], problem))
        else:
            shares.setdefault(leader, {})[partition] = offset
    for share in await asyncio.gather(*(_fetch_share(leader, share, limits) for leader, share in shares.items())):
        answers += share
    return answers


async def _fetch_share(
    leader: Connection, positions: Mapping[GroupPartition, int], limits: FetchLimits
) -> list[Fetched]:
    try:
        response = await leader.call(
            fetch,
            _request(positions, limits),
            max_version=MAX_FETCH_VERSION,
            timeout_ms=limits.max_wait_ms + DEFAULT_TIMEOUT_MS,
        )
        raise_for(response.error_code, f"fetching from {leader.address}")
    except StreamHouseError as problem:
        return [Fetched(partition, offset, offset, [], problem) for partition, offset in positions.items()]
    return [
        await _read_answer(place, positions[place], answer, limits.rows)
        for topic in response.responses
        for answer in topic.partitions
        if (place := GroupPartition(topic.topic, answer.partition_index)) in positions
    ]


def _request(positions: Mapping[GroupPartition, int], limits: FetchLimits) -> fetch.FetchRequest:
    by_topic: dict[str, list[fetch.FetchPartition]] = {}
    for (topic, partition), offset in positions.items():
        by_topic.setdefault(topic, []).append(
            fetch.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=limits.partition_max_bytes
            )
        )
    return fetch.FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        topics=[fetch.FetchTopic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
    )


async def _read_answer(place: GroupPartition, offset: int, answer: fetch.PartitionData, limits: RowLimits) -> Fetched:
    if answer.error_code != ErrorCode.NONE:
        return Fetched(place, offset, offset, [], fetch_problem(place, offset, answer.error_code))
    batches = b"".join(batch for _, batch in whole_batches(answer.records))
    if not batches:
        return Fetched(place, offset, offset, [])
    try:
        # In a thread: what is small as it comes may be large as rows, and this may be a node's own loop.
        rows = await asyncio.to_thread(read_rows, batches, offset, limits=limits)
    except UnreadableRecords as problem:
        return Fetched(place, offset, offset, [], problem.at(*place))
    return Fetched(place, offset, rows.next_offset, rows.records)


def fetch_problem(place: GroupPartition, offset: int, code: int) -> StreamHouseError:
    topic, partition = place
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return OffsetOutOfRange(
            f"{topic}/{partition} does not hold offset {offset}",
            hint=f"`streamhouse topic describe {topic}` shows what it holds",
        )
    return error_for(code, f"fetching from {topic}/{partition}")


def whole_batches(records: Records | None) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of an answer, without a last one that the broker cut short, as it may."""
    view = memoryview(b"".join(records) if isinstance(records, list) else records or b"")
    at = 0
    while len(view) - at >= HEADER_BYTES:
        header = read_header(view, at)
        if not HEADER_BYTES <= header.size_bytes <= len(view) - at:
            return
        yield header, view[at : at + header.size_bytes]
        at += header.size_bytes
