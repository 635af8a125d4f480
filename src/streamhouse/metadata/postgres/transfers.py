"""Hand-overs of partitions from agent to agent in PostgreSQL, timed by its clock.

A transaction locks all the transfers that it deals with by one statement, in the order of their ids, after the
partitions and leases that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from streamhouse.core.placement.transfer import TransferEvent, TransferState
from streamhouse.metadata.checks import check_count, check_text, check_ttl
from streamhouse.metadata.cluster import Transfer
from streamhouse.metadata.hand_over import (
    HISTORY_MS,
    TIMED_OUT,
    check_completions,
    check_moves,
    judge_completions,
    movable,
)
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, lock_led, to_partition
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.entropy import new_uuid

_SELECT = """
    SELECT t.transfer_id, p.topic, t.topic_id, t.partition_id, t.from_agent_id, t.to_agent_id,
        t.state, t.reason, t.created_at,
        t.state IN ('pending', 'accepted') AND t.expires_at <= now_ms() AS is_overdue,
        CASE WHEN t.state IN ('pending', 'accepted') THEN greatest(0, t.expires_at - now_ms()) ELSE 0 END AS left_ms
    FROM partition_transfers t JOIN partitions p USING (topic_id, partition_id)
"""
_LOCKED = "ORDER BY t.transfer_id FOR NO KEY UPDATE OF t"
_FIND = f"{_SELECT} WHERE t.transfer_id = ANY($1::uuid[])"
_LOCK = f"{_FIND} {_LOCKED}"
_LOCK_OVERDUE = f"{_SELECT} WHERE t.state IN ('pending', 'accepted') AND t.expires_at <= now_ms() {_LOCKED}"
_LOCK_UNDER_WAY = f"""
    {_SELECT} JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    WHERE t.state IN ('pending', 'accepted') {_LOCKED}
"""
_LIST = f"{_SELECT} ORDER BY t.created_at DESC, t.transfer_id LIMIT $1"
_LIST_UNDER_WAY = f"""
    {_SELECT} WHERE t.state IN ('pending', 'accepted') AND $2 IN (t.from_agent_id, t.to_agent_id)
    ORDER BY t.created_at, t.transfer_id LIMIT $1
"""
_UNRESOLVED = """
    WHERE t.transfer_id IN (
        SELECT transfer_id FROM (
            SELECT transfer_id, state, created_at, max(CASE state WHEN 'completed' THEN created_at ELSE 0 END)
                OVER (PARTITION BY topic_id, partition_id) AS completed_at
            FROM partition_transfers WHERE created_at > now_ms() - $1::bigint
        ) AS lately
        WHERE state <> 'completed' AND created_at > completed_at
    )
    ORDER BY t.created_at DESC, t.transfer_id
"""
_BEGIN = """
    INSERT INTO partition_transfers
        (transfer_id, topic_id, partition_id, from_agent_id, to_agent_id, state, created_at, expires_at)
    SELECT transfer_id, topic_id, partition_id, $5, to_agent_id, 'pending', clock.now, clock.now + $6::bigint
    FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[])
        AS new (transfer_id, topic_id, partition_id, to_agent_id),
        (SELECT now_ms() AS now) AS clock
"""
# What others hold is left for the next time: this waits for nobody.
_FORGET_OLD = """
    DELETE FROM partition_transfers WHERE transfer_id IN (
        SELECT transfer_id FROM partition_transfers
        WHERE created_at <= now_ms() - $1::bigint AND state NOT IN ('pending', 'accepted')
        FOR UPDATE SKIP LOCKED
    )
"""
_SET_STATE = "UPDATE partition_transfers SET state = $2, reason = $3 WHERE transfer_id = ANY($1::uuid[])"
_GIVE_LEASES = """
    UPDATE partition_leases l
    SET leader_agent_id = t.to_agent_id, lease_expires_at = now_ms() + $2::bigint, acquired_at = now_ms(),
        epoch = l.epoch + 1
    FROM partition_transfers t JOIN partitions p USING (topic_id, partition_id)
    WHERE t.transfer_id = ANY($1::uuid[]) AND l.topic = p.topic AND l.partition_id = p.partition_id
"""
_FORGET_WAL = """
    UPDATE partitions p SET wal_agent_id = '' FROM partition_transfers t
    WHERE t.transfer_id = ANY($1::uuid[]) AND p.topic_id = t.topic_id AND p.partition_id = t.partition_id
        AND p.wal_agent_id <> ''
"""


class PostgresTransfers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin_transfers(
        self, from_agent_id: str, moves: Sequence[tuple[TopicPartition, str]], timeout_ms: int
    ) -> list[Transfer | None]:
        """When the answer to COMMIT is lost this runs again, and knows by their ids those that it began."""
        check_moves(from_agent_id, moves, timeout_ms)
        transfer_ids = [new_uuid() for _ in moves]

        async def work(connection: Connection) -> list[Transfer | None]:
            partitions = {partition for partition, _ in moves}
            led = await lock_led(connection, partitions)
            ours = {
                partition
                for partition, state in led.items()
                if state.lease_is_live and state.leader_agent_id == from_agent_id
            }
            found = await _settle(connection, await connection.fetch(_LOCK_UNDER_WAY, *columns(partitions)))
            free = ours - {transfer.partition for transfer in found if not transfer.state.is_final}
            begun: dict[TopicPartition, tuple[UUID, str]] = {}
            for transfer_id, (partition, to_agent_id) in zip(transfer_ids, moves, strict=True):
                if partition in free:
                    begun.setdefault(partition, (transfer_id, to_agent_id))
            await connection.execute(
                _BEGIN,
                [transfer_id for transfer_id, _ in begun.values()],
                *columns(begun),
                [to_agent_id for _, to_agent_id in begun.values()],
                from_agent_id,
                timeout_ms,
            )
            await connection.execute(_FORGET_OLD, HISTORY_MS)
            stored = {transfer.transfer_id: transfer for transfer in await _find(connection, transfer_ids)}
            return [stored.get(transfer_id) for transfer_id in transfer_ids]

        return await self._database.transact(work)

    async def list_transfers(self, agent_id: str | None = None, limit: int = 1000) -> list[Transfer]:
        check_count("transfers", limit)

        async def work(connection: Connection) -> list[Transfer]:
            await _settle(connection, await connection.fetch(_LOCK_OVERDUE))
            if agent_id is None:
                rows = await connection.fetch(_LIST, limit)
            else:
                rows = await connection.fetch(_LIST_UNDER_WAY, limit, agent_id)
            return [_to_transfer(row) for row in rows]

        return await self._database.transact(work)

    async def list_unresolved_transfers(self, within_ms: int) -> list[Transfer]:
        async def work(connection: Connection) -> list[Transfer]:
            await _settle(connection, await connection.fetch(_LOCK_OVERDUE))
            return [_to_transfer(row) for row in await connection.fetch(f"{_SELECT} {_UNRESOLVED}", within_ms)]

        return await self._database.transact(work)

    async def accept_transfers(self, agent_id: str, transfer_ids: Sequence[UUID]) -> None:
        await self._move(agent_id, transfer_ids, TransferEvent.ACCEPT, TransferState.ACCEPTED, "")

    async def reject_transfers(self, agent_id: str, transfer_ids: Sequence[UUID], reason: str) -> None:
        check_text("reason", reason)
        await self._move(agent_id, transfer_ids, TransferEvent.REJECT, TransferState.REJECTED, reason)

    async def complete_transfers(
        self, agent_id: str, completions: Sequence[tuple[UUID, int, int]], ttl_ms: int
    ) -> list[Exception | None]:
        check_ttl(ttl_ms)
        check_completions(completions)
        transfer_ids = [transfer_id for transfer_id, _, _ in completions]

        async def work(connection: Connection) -> list[Exception | None]:
            # A transfer never changes its partition, so that is known before it is locked.
            partitions = {transfer.partition for transfer in await _find(connection, transfer_ids)}
            led = await lock_led(connection, partitions, to_hand_over=True)
            transfers = await _settle(connection, await connection.fetch(_LOCK, transfer_ids))
            by_id = {transfer.transfer_id: transfer for transfer in transfers}
            verdict = judge_completions(agent_id, completions, by_id, led)
            accepted = [transfer.transfer_id for transfer in verdict.accepted]
            if accepted:
                await connection.execute(_GIVE_LEASES, accepted, ttl_ms)
                await connection.execute(_FORGET_WAL, accepted)
                await connection.execute(_SET_STATE, accepted, TransferState.COMPLETED.value, "")
            return verdict.answers

        return await self._database.transact(work)

    async def _move(
        self, agent_id: str, transfer_ids: Sequence[UUID], event: TransferEvent, state: TransferState, reason: str
    ) -> None:
        async def work(connection: Connection) -> None:
            found = await _settle(connection, await connection.fetch(_LOCK, list(transfer_ids)))
            await connection.execute(_SET_STATE, movable(found, agent_id, event), state.value, reason)

        await self._database.transact(work)


async def _find(connection: Connection, transfer_ids: Sequence[UUID]) -> list[Transfer]:
    return [_to_transfer(row) for row in await connection.fetch(_FIND, transfer_ids)]


async def _settle(connection: Connection, locked: Sequence[Any]) -> list[Transfer]:
    """As they are now: those that are past their time have failed."""
    overdue = [row["transfer_id"] for row in locked if row["is_overdue"]]
    if overdue:
        await connection.execute(_SET_STATE, overdue, TransferState.FAILED.value, TIMED_OUT)
    return [
        replace(_to_transfer(row), state=TransferState.FAILED, reason=TIMED_OUT)
        if row["is_overdue"]
        else _to_transfer(row)
        for row in locked
    ]


def _to_transfer(row: Any) -> Transfer:
    return Transfer(
        transfer_id=UUID(int=row["transfer_id"].int),
        topic=row["topic"],
        partition=to_partition(row),
        from_agent_id=row["from_agent_id"],
        to_agent_id=row["to_agent_id"],
        state=TransferState(row["state"]),
        reason=row["reason"],
        created_at_ms=row["created_at"],
        left_ms=row["left_ms"],
    )
