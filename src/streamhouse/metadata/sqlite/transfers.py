"""Hand-overs of partitions from agent to agent in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from uuid import UUID

from streamhouse.core.placement.transfer import TransferEvent, TransferState
from streamhouse.metadata.checks import check_count, check_text, check_ttl
from streamhouse.metadata.cluster import Change, Transfer
from streamhouse.metadata.hand_over import (
    HISTORY_MS,
    TIMED_OUT,
    check_completions,
    check_moves,
    judge_completions,
    movable,
)
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import find_led, key_of, to_partition
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.entropy import new_uuid

_SELECT = """
    SELECT t.transfer_id, p.topic, t.topic_id, t.partition_id, t.from_agent_id, t.to_agent_id,
        t.state, t.reason, t.created_at, t.expires_at
    FROM partition_transfers t JOIN partitions p USING (topic_id, partition_id)
"""
# It has no transfer under way (an index sees to that), and `from` holds its live lease.
_BEGIN = """
    INSERT INTO partition_transfers
        (transfer_id, topic_id, partition_id, from_agent_id, to_agent_id, state, created_at, expires_at)
    SELECT :transfer_id, p.topic_id, p.partition_id, :from_agent_id, :to_agent_id, 'pending', :now, :expires_at
    FROM partitions p JOIN partition_leases l ON l.topic = p.topic AND l.partition_id = p.partition_id
    WHERE p.topic_id = :topic_id AND p.partition_id = :partition
        AND l.leader_agent_id = :from_agent_id AND l.lease_expires_at > :now
    ON CONFLICT DO NOTHING
"""
_UNRESOLVED = """
    WHERE t.transfer_id IN (
        SELECT transfer_id FROM (
            SELECT transfer_id, state, created_at, max(CASE state WHEN 'completed' THEN created_at ELSE 0 END)
                OVER (PARTITION BY topic_id, partition_id) AS completed_at
            FROM partition_transfers WHERE created_at > ?
        ) AS lately
        WHERE state <> 'completed' AND created_at > completed_at
    )
    ORDER BY t.created_at DESC, t.transfer_id
"""
_FAIL_OVERDUE = """
    UPDATE partition_transfers SET state = 'failed', reason = ?
    WHERE state IN ('pending', 'accepted') AND expires_at <= ?
"""
_GIVE_LEASE = """
    UPDATE partition_leases
    SET leader_agent_id = ?, lease_expires_at = ?, acquired_at = ?, epoch = epoch + 1
    WHERE topic = ? AND partition_id = ?
"""


class SqliteTransfers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin_transfers(
        self, from_agent_id: str, moves: Sequence[tuple[TopicPartition, str]], timeout_ms: int
    ) -> list[Transfer | None]:
        check_moves(from_agent_id, moves, timeout_ms)

        def work(connection: sqlite3.Connection) -> list[Transfer | None]:
            now_ms = self._database.now_ms()
            _fail_overdue(connection, now_ms)
            connection.execute(
                "DELETE FROM partition_transfers WHERE created_at <= ? AND state NOT IN ('pending', 'accepted')",
                (now_ms - HISTORY_MS,),
            )
            return [
                _begin(connection, from_agent_id, partition, to_agent_id, now_ms, timeout_ms)
                for partition, to_agent_id in moves
            ]

        return await self._database.write(work, Change.TRANSFERS)

    async def list_transfers(self, agent_id: str | None = None, limit: int = 1000) -> list[Transfer]:
        check_count("transfers", limit)

        def work(connection: sqlite3.Connection) -> list[Transfer]:
            now_ms = self._database.now_ms()
            _fail_overdue(connection, now_ms)
            if agent_id is None:
                rows = connection.execute(f"{_SELECT} ORDER BY t.created_at DESC, t.transfer_id LIMIT ?", (limit,))
            else:
                rows = connection.execute(
                    f"{_SELECT} WHERE t.state IN ('pending', 'accepted') AND ? IN (t.from_agent_id, t.to_agent_id)"
                    " ORDER BY t.created_at, t.transfer_id LIMIT ?",
                    (agent_id, limit),
                )
            return [_to_transfer(row, now_ms) for row in rows]

        return await self._database.write(work, Change.TRANSFERS)

    async def list_unresolved_transfers(self, within_ms: int) -> list[Transfer]:
        def work(connection: sqlite3.Connection) -> list[Transfer]:
            now_ms = self._database.now_ms()
            _fail_overdue(connection, now_ms)
            rows = connection.execute(f"{_SELECT} {_UNRESOLVED}", (now_ms - within_ms,))
            return [_to_transfer(row, now_ms) for row in rows]

        return await self._database.write(work, Change.TRANSFERS)

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

        def work(connection: sqlite3.Connection) -> list[Exception | None]:
            now_ms = self._database.now_ms()
            _fail_overdue(connection, now_ms)
            transfers = _find(connection, (transfer_id for transfer_id, _, _ in completions), now_ms)
            led = find_led(connection, {transfer.partition for transfer in transfers.values()}, now_ms)
            verdict = judge_completions(agent_id, completions, transfers, led)
            for transfer in verdict.accepted:
                _hand_over(connection, transfer, now_ms, ttl_ms)
            return verdict.answers

        return await self._database.write(work, Change.TRANSFERS, Change.LEASES)

    async def _move(
        self, agent_id: str, transfer_ids: Sequence[UUID], event: TransferEvent, state: TransferState, reason: str
    ) -> None:
        def work(connection: sqlite3.Connection) -> None:
            now_ms = self._database.now_ms()
            _fail_overdue(connection, now_ms)
            moved = movable(_find(connection, transfer_ids, now_ms).values(), agent_id, event)
            connection.executemany(
                "UPDATE partition_transfers SET state = ?, reason = ? WHERE transfer_id = ?",
                ((state.value, reason, str(transfer_id)) for transfer_id in moved),
            )

        await self._database.write(work, Change.TRANSFERS)


def _begin(
    connection: sqlite3.Connection,
    from_agent_id: str,
    partition: TopicPartition,
    to_agent_id: str,
    now_ms: int,
    timeout_ms: int,
) -> Transfer | None:
    transfer_id = new_uuid()
    topic_id, number = key_of(partition)
    values = {
        "transfer_id": str(transfer_id),
        "topic_id": topic_id,
        "partition": number,
        "from_agent_id": from_agent_id,
        "to_agent_id": to_agent_id,
        "now": now_ms,
        "expires_at": now_ms + timeout_ms,
    }
    connection.execute(_BEGIN, values)
    return _find(connection, [transfer_id], now_ms).get(transfer_id)


def _fail_overdue(connection: sqlite3.Connection, now_ms: int) -> None:
    connection.execute(_FAIL_OVERDUE, (TIMED_OUT, now_ms))


def _find(connection: sqlite3.Connection, transfer_ids: Iterable[UUID], now_ms: int) -> dict[UUID, Transfer]:
    found = {}
    for transfer_id in transfer_ids:
        row = connection.execute(f"{_SELECT} WHERE t.transfer_id = ?", (str(transfer_id),)).fetchone()
        if row is not None:
            found[transfer_id] = _to_transfer(row, now_ms)
    return found


def _hand_over(connection: sqlite3.Connection, transfer: Transfer, now_ms: int, ttl_ms: int) -> None:
    connection.execute(
        _GIVE_LEASE, (transfer.to_agent_id, now_ms + ttl_ms, now_ms, transfer.topic, transfer.partition.partition)
    )
    connection.execute(
        "UPDATE partitions SET wal_agent_id = '' WHERE topic_id = ? AND partition_id = ?", key_of(transfer.partition)
    )
    connection.execute(
        "UPDATE partition_transfers SET state = ? WHERE transfer_id = ?",
        (TransferState.COMPLETED.value, str(transfer.transfer_id)),
    )


def _to_transfer(row: tuple[str, str, str, int, str, str, str, str, int, int], now_ms: int) -> Transfer:
    state = TransferState(row[6])
    return Transfer(
        transfer_id=UUID(row[0]),
        topic=row[1],
        partition=to_partition(row[2], row[3]),
        from_agent_id=row[4],
        to_agent_id=row[5],
        state=state,
        reason=row[7],
        created_at_ms=row[8],
        left_ms=0 if state.is_final else max(0, row[9] - now_ms),
    )
