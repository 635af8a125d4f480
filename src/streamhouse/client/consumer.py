"""Reads partitions of one topic from given offsets on, to given ends or for as long as it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamhouse.client.cluster import DEFAULT_RETRY_MS, Cluster
from streamhouse.client.connection import DEFAULT_TIMEOUT_MS, Connection
from streamhouse.client.errors import raise_for
from streamhouse.client.fetching import MAX_FETCH_VERSION, fetch_problem, whole_batches
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.row_reading import CLIENT_LIMITS, read_rows
from streamhouse.model.errors import UnreadableRecords
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedRecord:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    max_bytes: int = 16 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    min_bytes: int = 1
    retry_ms: int = DEFAULT_RETRY_MS


class Consumer:
    """`positions` say where each partition is read next; with `stop_at`, a partition ends there."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        positions: Mapping[int, int],
        *,
        stop_at: Mapping[int, int] | None = None,
        options: ConsumerOptions | None = None,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._positions = dict(positions)
        self._stop_at = stop_at
        self._options = options or ConsumerOptions()
        self._problem: UnreadableRecords | None = None

    @property
    def positions(self) -> dict[int, int]:
        return dict(self._positions)

    def add(self, positions: Mapping[int, int]) -> None:
        """Read these partitions too; those that are read already stay where they are."""
        self._positions = {**positions, **self._positions}

    def at_end(self) -> bool:
        """Whether every partition was read to where it stops; never without `stop_at`."""
        return not self._unfinished()

    async def poll(self, *, max_wait_ms: int = 500) -> list[ConsumedRecord]:
        """The next records, in offset order within a partition; none if nothing came within the wait.

        UnreadableRecords of one partition is raised after the records of others, and again until `seek` passes over."""
        self._raise_problem()
        if not self._unfinished():
            return []
        answers = await self._cluster.retrying(
            lambda: self._fetch(max_wait_ms), topic=self._topic, timeout_ms=self._options.retry_ms
        )
        records: list[ConsumedRecord] = []
        for answer in answers:
            try:
                records += self._take(answer)
            except UnreadableRecords as problem:
                self._problem = self._problem or problem
        if not records:
            self._raise_problem()
        return records

    def seek(self, partition: int, offset: int) -> None:
        """The next poll reads there."""
        self._positions[partition] = offset

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _unfinished(self) -> list[int]:
        if self._stop_at is None:
            return list(self._positions)
        return [partition for partition, at in self._positions.items() if at < self._stop_at[partition]]

    async def _fetch(self, max_wait_ms: int) -> list[fetch.PartitionData]:
        shares: dict[Connection, list[int]] = {}
        for partition in self._unfinished():
            shares.setdefault(await self._cluster.leader(self._topic, partition), []).append(partition)
        answers = await asyncio.gather(
            *(self._fetch_from(leader, share, max_wait_ms) for leader, share in shares.items())
        )
        return [partition for answer in answers for partition in answer]

    async def _fetch_from(
        self, leader: Connection, partitions: Sequence[int], max_wait_ms: int
    ) -> list[fetch.PartitionData]:
        wanted = [
            fetch.FetchPartition(
                partition=partition,
                fetch_offset=self._positions[partition],
                partition_max_bytes=self._options.partition_max_bytes,
            )
            for partition in partitions
        ]
        request = fetch.FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=self._options.min_bytes,
            max_bytes=self._options.max_bytes,
            topics=[fetch.FetchTopic(topic=self._topic, partitions=wanted)],
        )
        response = await leader.call(
            fetch, request, max_version=MAX_FETCH_VERSION, timeout_ms=max_wait_ms + DEFAULT_TIMEOUT_MS
        )
        raise_for(response.error_code, f"fetching from {self._topic}")
        answers = [partition for topic in response.responses for partition in topic.partitions]
        for answer in answers:
            self._check(answer)
        return answers

    def _check(self, answer: fetch.PartitionData) -> None:
        if answer.error_code != ErrorCode.NONE:
            place = GroupPartition(self._topic, answer.partition_index)
            raise fetch_problem(place, self._positions[answer.partition_index], answer.error_code)

    def _take(self, answer: fetch.PartitionData) -> list[ConsumedRecord]:
        """Moves the position behind them."""
        partition = answer.partition_index
        batches = b"".join(batch for _, batch in whole_batches(answer.records))
        try:
            # A batch comes whole, also when the position is in its middle.
            rows = read_rows(batches, self._positions[partition], limits=CLIENT_LIMITS)
        except UnreadableRecords as problem:
            raise problem.at(self._topic, partition) from None
        self._positions[partition] = rows.next_offset
        return [
            ConsumedRecord(
                topic=self._topic,
                partition=partition,
                offset=offset,
                timestamp_ms=timestamp_ms,
                key=key,
                value=value,
                headers=headers,
            )
            for offset, timestamp_ms, key, value, headers in rows.records
            if self._stop_at is None or offset < self._stop_at[partition]
        ]
