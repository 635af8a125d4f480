"""What every metadata store does with hand-overs of partitions, line by line of the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from behaviour.cluster import (
    TIMEOUT_MS,
    accepted_transfer,
    acquire_with_local_wal,
    begin_transfer,
    complete,
    placement_of,
    wal_commit,
)
from behaviour.coordinators import rival, until_waiting
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind, acquire, make_topic, segment_commit
from streamhouse.core.placement.transfer import TransferState
from streamhouse.metadata.cluster import Transfer
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.model.errors import InvalidInput, StaleEpoch
from streamhouse.model.names import TopicPartition

THIRD = "agent-3"
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


async def state_of(store: MetadataStore, transfer: Transfer) -> TransferState:
    (found,) = [one for one in await store.list_transfers() if one.transfer_id == transfer.transfer_id]
    return found.state


async def refuses(store: MetadataStore, transfer: Transfer, lease: Lease, end_offset: int = 0) -> bool:
    """A completion is refused, and no lease changes hands."""
    before = await placement_of(store, transfer.partition)
    answer = await complete(store, transfer, lease, end_offset)
    after = await placement_of(store, transfer.partition)
    assert replace(after, lease_left_ms=0) == replace(before, lease_left_ms=0)
    return isinstance(answer, StaleEpoch)


async def test_a_transfer_begins_pending(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    transfer = await begin_transfer(metadata, await acquire(metadata, partition))
    assert transfer == Transfer(
        transfer_id=transfer.transfer_id,
        topic="orders",
        partition=partition,
        from_agent_id=AGENT,
        to_agent_id=OTHER,
        state=TransferState.PENDING,
        reason="",
        created_at_ms=transfer.created_at_ms,
    )
    assert transfer.created_at_ms > 0
    for agent_id in (AGENT, OTHER, None):
        assert await metadata.list_transfers(agent_id) == [transfer]
    assert await metadata.list_transfers(THIRD) == []


async def test_a_transfer_says_how_long_it_may_still_take(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await begin_transfer(metadata, lease)
    begun_ms = transfer.left_ms
    await metadata_kind.pass_time(1_000)
    (found,) = await metadata.list_transfers(OTHER)
    assert 0 < found.left_ms <= begun_ms - 1_000
    await metadata.reject_transfers(OTHER, [transfer.transfer_id], "no")
    (over,) = await metadata.list_transfers()
    assert over.left_ms == 0


async def test_a_completed_transfer_moves_the_lease_at_once_to_the_next_epoch(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire_with_local_wal(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, 0, 10)])
    transfer = await accepted_transfer(metadata, lease)
    await metadata_kind.pass_time(10_000)
    assert await complete(metadata, transfer, lease, 10) is None
    placement = await placement_of(metadata, partition)
    assert (placement.agent_id, placement.epoch, placement.wal_agent_id) == (OTHER, 2, "")
    assert TTL_MS - 10_000 < placement.lease_left_ms <= TTL_MS
    assert await state_of(metadata, transfer) is TransferState.COMPLETED
    assert await metadata.list_transfers(OTHER) == []

    # The successor writes on without asking for the lease, and its predecessor no more.
    given = replace(lease, agent_id=OTHER, epoch=2)
    (renewed,) = await metadata.renew_leases(OTHER, [given], TTL_MS)
    assert renewed is not None
    assert await metadata.renew_leases(AGENT, [lease], TTL_MS) == [None]
    (late,) = await metadata.commit_segments([segment_commit(lease, 10, 20)])
    assert isinstance(late, StaleEpoch)
    assert await metadata.commit_segments([segment_commit(given, 10, 20)]) == [None]


async def test_the_row_of_a_handed_over_lease_is_that_of_a_new_grant(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    await complete(metadata, transfer, lease)
    ((leader, ttl_ms, epoch),) = await metadata_kind.query(
        "SELECT leader_agent_id, lease_expires_at - acquired_at, epoch FROM partition_leases"
    )
    assert (leader, epoch) == (OTHER, 2)
    assert abs(ttl_ms - TTL_MS) < TTL_MS  # PostgreSQL's clock is read for each


async def test_a_completion_repeated_is_done_once(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    assert await complete(metadata, transfer, lease) is None
    # Also when the successor has gone on, and lost it to somebody else.
    given = replace(lease, agent_id=OTHER, epoch=2)
    assert await metadata.commit_segments([segment_commit(given, 0, 10)]) == [None]
    await metadata.release_leases(OTHER, [given], drained=True)
    await acquire(metadata, partition, THIRD)
    assert await complete(metadata, transfer, lease) is None
    placement = await placement_of(metadata, partition)
    assert (placement.agent_id, placement.epoch) == (THIRD, 3)


async def test_one_completion_sent_many_times_at_once_is_done_once(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    completion = (transfer.transfer_id, lease.epoch, 0)
    answers = await asyncio.gather(
        *(
            store.complete_transfers(AGENT, [completion, completion], TTL_MS)
            for store in (metadata, other_process)
            for _ in range(5)
        )
    )
    assert answers == [[None, None]] * 10
    placement = await placement_of(metadata, partition)
    assert (placement.agent_id, placement.epoch) == (OTHER, 2)


async def test_only_an_accepted_transfer_is_completed(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await begin_transfer(metadata, lease)
    assert await refuses(metadata, transfer, lease)
    await metadata.accept_transfers(OTHER, [transfer.transfer_id])
    await metadata.reject_transfers(OTHER, [transfer.transfer_id], "changed my mind")
    assert await refuses(metadata, transfer, lease)
    unknown = replace(transfer, transfer_id=uuid4())
    assert await refuses(metadata, unknown, lease)


async def test_only_the_giver_completes(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    for stranger in (OTHER, THIRD):
        assert await refuses(metadata, transfer, replace(lease, agent_id=stranger))
    assert await complete(metadata, transfer, lease) is None
    (answer,) = await metadata.complete_transfers(OTHER, [(transfer.transfer_id, 1, 0)], TTL_MS)
    assert isinstance(answer, StaleEpoch)


async def test_a_completion_needs_the_live_lease_at_its_epoch(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    older, newer, expired, released, taken = await make_topic(metadata, 5)
    leases = {partition: await acquire(metadata, partition) for partition in (older, newer, expired, released, taken)}
    await metadata.begin_transfers(AGENT, [(partition, OTHER) for partition in leases], 10 * TTL_MS)
    transfers = {transfer.partition: transfer for transfer in await metadata.list_transfers()}
    await metadata.accept_transfers(OTHER, [transfer.transfer_id for transfer in transfers.values()])
    assert await refuses(metadata, transfers[newer], replace(leases[newer], epoch=2))
    await acquire(metadata, older)
    assert await refuses(metadata, transfers[older], leases[older])
    await metadata.release_leases(AGENT, [leases[released]], drained=True)
    assert await refuses(metadata, transfers[released], leases[released])
    await metadata_kind.pass_time(TTL_MS)
    assert await refuses(metadata, transfers[expired], leases[expired])
    await acquire(metadata, taken, THIRD)
    assert await refuses(metadata, transfers[taken], leases[taken])


async def test_a_completion_needs_all_that_was_acknowledged_to_be_durable(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, 0, 10)])
    await metadata.commit_wal_objects([wal_commit((lease, 10, 15))])
    transfer = await accepted_transfer(metadata, lease)
    for end_offset in (0, 10, 14, 16):
        assert await refuses(metadata, transfer, lease, end_offset)
    assert await complete(metadata, transfer, lease, 15) is None


async def test_each_completion_of_a_batch_is_judged_on_its_own(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 4)
    leases = [await acquire(metadata, partition) for partition in partitions]
    transfers = [await accepted_transfer(metadata, lease) for lease in leases[:3]]
    pending = await begin_transfer(metadata, leases[3], THIRD)
    answers = await metadata.complete_transfers(
        AGENT,
        [
            (transfers[0].transfer_id, 1, 0),
            (transfers[1].transfer_id, 1, 99),
            (uuid4(), 1, 0),
            (pending.transfer_id, 1, 0),
            (transfers[2].transfer_id, 1, 0),
        ],
        TTL_MS,
    )
    assert [type(answer) for answer in answers] == [type(None), StaleEpoch, StaleEpoch, StaleEpoch, type(None)]
    assert [(row.agent_id, row.epoch) for row in await metadata.list_placements()] == [
        (OTHER, 2),
        (AGENT, 1),
        (OTHER, 2),
        (AGENT, 1),
    ]


async def test_a_transfer_needs_a_live_lease_and_no_other_transfer(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    never, expired, foreign, busy, good = await make_topic(metadata, 5)
    await acquire(metadata, expired)
    await metadata_kind.pass_time(TTL_MS)
    await acquire(metadata, foreign, OTHER)
    await begin_transfer(metadata, await acquire(metadata, busy), THIRD)
    await acquire(metadata, good)
    gone = TopicPartition(uuid4(), 0)
    asked = [(partition, THIRD) for partition in (never, expired, foreign, gone, busy)]
    *refused, begun, twice = await metadata.begin_transfers(AGENT, [*asked, (good, THIRD), (good, OTHER)], TIMEOUT_MS)
    assert refused == [None] * 5
    assert begun is not None
    assert (begun.partition, begun.to_agent_id) == (good, THIRD)
    assert twice is None


async def test_a_partition_can_be_handed_over_again_after_one_that_ended(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    rejected = await begin_transfer(metadata, lease)
    await metadata.reject_transfers(OTHER, [rejected.transfer_id], "full")
    overdue = await begin_transfer(metadata, lease)
    await metadata_kind.pass_time(TIMEOUT_MS)
    completed = await accepted_transfer(metadata, lease)
    assert await state_of(metadata, overdue) is TransferState.FAILED
    assert await complete(metadata, completed, lease) is None
    back = await begin_transfer(metadata, replace(lease, agent_id=OTHER), AGENT)
    assert len({rejected.transfer_id, overdue.transfer_id, completed.transfer_id, back.transfer_id}) == 4


async def test_of_many_that_begin_at_once_exactly_one_does(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 10)
    await metadata.acquire_leases(AGENT, partitions, TTL_MS)
    moves = [(partition, OTHER) for partition in partitions]
    answers = await asyncio.gather(
        metadata.begin_transfers(AGENT, moves, TIMEOUT_MS),
        other_process.begin_transfers(AGENT, moves[::-1], TIMEOUT_MS),
        metadata.begin_transfers(AGENT, moves[5:] + moves[:5], TIMEOUT_MS),
    )
    begun = [transfer.partition for answer in answers for transfer in answer if transfer is not None]
    assert sorted(begun) == sorted(partitions)
    assert len(await metadata.list_transfers(OTHER)) == 10


async def test_only_the_taker_accepts_and_only_what_is_pending(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    transfer = await begin_transfer(metadata, await acquire(metadata, partition))
    for stranger in (AGENT, THIRD):
        await metadata.accept_transfers(stranger, [transfer.transfer_id])
        assert await state_of(metadata, transfer) is TransferState.PENDING
    for _ in range(2):
        await metadata.accept_transfers(OTHER, [uuid4(), transfer.transfer_id])
        assert await state_of(metadata, transfer) is TransferState.ACCEPTED
    await metadata.reject_transfers(OTHER, [transfer.transfer_id], "")
    await metadata.accept_transfers(OTHER, [transfer.transfer_id])
    assert await state_of(metadata, transfer) is TransferState.REJECTED


@pytest.mark.parametrize("is_accepted", [False, True])
@pytest.mark.parametrize("agent_id", [AGENT, OTHER])
async def test_either_side_rejects_what_is_under_way_and_says_why(
    metadata: MetadataStore, is_accepted: bool, agent_id: str
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await (accepted_transfer if is_accepted else begin_transfer)(metadata, lease)
    await metadata.reject_transfers(THIRD, [transfer.transfer_id], "not mine")
    assert not (await state_of(metadata, transfer)).is_final
    await metadata.reject_transfers(agent_id, [transfer.transfer_id], "no room")
    await metadata.reject_transfers(agent_id, [transfer.transfer_id], "again")
    (found,) = await metadata.list_transfers()
    assert (found.state, found.reason) == (TransferState.REJECTED, "no room")
    assert await metadata.list_transfers(OTHER) == []


async def test_what_is_completed_is_not_rejected(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    await complete(metadata, transfer, lease)
    for agent_id in (AGENT, OTHER):
        await metadata.reject_transfers(agent_id, [transfer.transfer_id], "too late")
    (found,) = await metadata.list_transfers()
    assert (found.state, found.reason) == (TransferState.COMPLETED, "")


@pytest.mark.parametrize("is_accepted", [False, True])
async def test_a_transfer_that_takes_too_long_has_failed_for_everybody(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, is_accepted: bool
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await (accepted_transfer if is_accepted else begin_transfer)(metadata, lease)
    await metadata_kind.pass_time(TIMEOUT_MS - 5_000)
    assert len(await metadata.list_transfers(OTHER)) == 1
    await metadata_kind.pass_time(5_000)
    assert await metadata.list_transfers(OTHER) == []
    (found,) = await metadata.list_transfers()
    assert found.state is TransferState.FAILED
    assert found.reason
    assert await metadata_kind.query("SELECT state FROM partition_transfers") == [("failed",)]
    await metadata.accept_transfers(OTHER, [transfer.transfer_id])
    await metadata.reject_transfers(OTHER, [transfer.transfer_id], "too late")
    assert await refuses(metadata, transfer, lease)
    assert await metadata.list_transfers() == [found]


async def test_what_is_past_its_time_is_neither_accepted_rejected_nor_completed_although_nobody_looked(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 3)
    leases = [await acquire(metadata, partition) for partition in partitions]
    pending = [await begin_transfer(metadata, lease) for lease in leases[:2]]
    accepted = await accepted_transfer(metadata, leases[2])
    await metadata_kind.pass_time(TIMEOUT_MS)
    await metadata.accept_transfers(OTHER, [pending[0].transfer_id])
    await metadata.reject_transfers(OTHER, [pending[1].transfer_id], "no room")
    assert isinstance(await complete(metadata, accepted, leases[2]), StaleEpoch)
    states = await metadata_kind.query("SELECT state FROM partition_transfers")
    assert states == [("failed",)] * 3


async def test_transfers_under_way_are_listed_oldest_first_and_all_of_them_newest_first(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 4)
    leases = [await acquire(metadata, partition) for partition in partitions]
    begun = []
    for lease, to_agent_id in zip(leases, (OTHER, THIRD, OTHER, OTHER), strict=True):
        begun.append(await begin_transfer(metadata, lease, to_agent_id))
        await metadata_kind.pass_time(1_000)
    await metadata.reject_transfers(OTHER, [begun[2].transfer_id], "no")
    ids = [transfer.transfer_id for transfer in begun]
    assert [one.transfer_id for one in await metadata.list_transfers(OTHER)] == [ids[0], ids[3]]
    assert [one.transfer_id for one in await metadata.list_transfers(AGENT)] == [ids[0], ids[1], ids[3]]
    assert [one.transfer_id for one in await metadata.list_transfers(AGENT, 2)] == [ids[0], ids[1]]
    assert [one.transfer_id for one in await metadata.list_transfers()] == ids[::-1]
    assert [one.transfer_id for one in await metadata.list_transfers(None, 2)] == [ids[3], ids[2]]


async def test_what_does_not_get_handed_over_is_listed_until_it_does_or_is_long_ago(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    failing, done, begun, long_ago = await make_topic(metadata, 4)

    async def failed(partition: TopicPartition) -> Transfer:
        transfer = await begin_transfer(metadata, await acquire(metadata, partition))
        await metadata.reject_transfers(OTHER, [transfer.transfer_id], "no")
        await metadata_kind.pass_time(10)
        return transfer

    await failed(long_ago)
    await metadata_kind.pass_time(2 * HOUR_MS)
    tries = [await failed(failing) for _ in range(3)]
    await failed(done)
    lease = await acquire(metadata, done)
    assert await complete(metadata, await accepted_transfer(metadata, lease), lease) is None
    pending = await begin_transfer(metadata, await acquire(metadata, begun))

    found = await metadata.list_unresolved_transfers(HOUR_MS)

    assert [one.transfer_id for one in found] == [one.transfer_id for one in (pending, *reversed(tries))]
    assert [one.reason for one in found] == ["", "no", "no", "no"]


async def test_transfers_that_ended_long_ago_are_forgotten(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    first, second = await make_topic(metadata, 2)
    old = await begin_transfer(metadata, await acquire(metadata, first))
    await metadata_kind.pass_time(WEEK_MS - 5_000)
    kept = await begin_transfer(metadata, await acquire(metadata, second))
    assert len(await metadata.list_transfers()) == 2
    await metadata_kind.pass_time(5_000)
    new = await begin_transfer(metadata, await acquire(metadata, first))
    assert [one.transfer_id for one in await metadata.list_transfers()] == [new.transfer_id, kept.transfer_id]
    assert old.transfer_id not in {new.transfer_id, kept.transfer_id}


async def test_the_transfers_of_a_deleted_topic_go_with_it(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    await metadata.delete_topic(partition.topic_id)
    assert await metadata.list_transfers() == []
    assert await metadata_kind.query("SELECT count(*) FROM partition_transfers") == [(0,)]
    assert isinstance(await complete(metadata, transfer, lease), StaleEpoch)


async def test_a_completion_and_a_takeover_at_once_leave_one_leader(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    for number in range(10):
        (partition,) = await make_topic(metadata, name=f"race-{number}")
        lease = await acquire(metadata, partition)
        transfer = await accepted_transfer(metadata, lease)
        answer, (taken,) = await asyncio.gather(
            complete(metadata, transfer, lease),
            # The same agent's new process: the only one that may take a live lease.
            other_process.acquire_leases(AGENT, [partition], TTL_MS),
        )
        placement = await placement_of(metadata, partition)
        assert placement.epoch == 2
        assert (answer is None) != (taken is not None)
        assert placement.agent_id == (OTHER if answer is None else AGENT)


async def test_a_completion_waits_for_a_takeover_and_is_then_refused(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    async with rival(metadata_kind, f"UPDATE partition_leases SET leader_agent_id = '{THIRD}', epoch = epoch + 1"):
        completing = asyncio.create_task(complete(metadata, transfer, lease))
        await until_waiting(metadata_kind, completing)
    assert isinstance(await completing, StaleEpoch)
    assert (await placement_of(metadata, partition)).agent_id == THIRD


async def test_a_completion_waits_for_a_commit_and_is_then_refused_as_the_log_went_on(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    async with rival(metadata_kind, "UPDATE partitions SET wal_end = 5"):
        completing = asyncio.create_task(complete(metadata, transfer, lease))
        await until_waiting(metadata_kind, completing)
    assert isinstance(await completing, StaleEpoch)
    assert (await placement_of(metadata, partition)).agent_id == AGENT


async def test_a_completion_waits_for_a_rejection_and_is_then_refused(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    transfer = await accepted_transfer(metadata, lease)
    async with rival(metadata_kind, "UPDATE partition_transfers SET state = 'rejected'"):
        completing = asyncio.create_task(complete(metadata, transfer, lease))
        await until_waiting(metadata_kind, completing)
    assert isinstance(await completing, StaleEpoch)
    assert (await placement_of(metadata, partition)).agent_id == AGENT


async def test_everything_at_once_in_any_order_does_not_block(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 20)
    acquired = await metadata.acquire_leases(AGENT, partitions, TTL_MS)
    leases = {lease.partition: lease for lease in acquired if lease is not None}
    end_offsets = dict.fromkeys(partitions, 0)
    for _ in range(5):
        begun = await metadata.begin_transfers(AGENT, [(partition, OTHER) for partition in partitions], TIMEOUT_MS)
        transfers = [transfer for transfer in begun if transfer is not None]
        ids = [transfer.transfer_id for transfer in transfers]
        completions = [
            (transfer.transfer_id, leases[transfer.partition].epoch, end_offsets[transfer.partition])
            for transfer in transfers
        ]
        commits = [
            segment_commit(leases[partition], end_offsets[partition], end_offsets[partition] + 10)
            for partition in partitions[::3]
        ]
        await asyncio.gather(
            metadata.accept_transfers(OTHER, ids),
            other_process.reject_transfers(OTHER, ids[::-2], "no room"),
            other_process.complete_transfers(AGENT, completions[::-1], TTL_MS),
            metadata.complete_transfers(AGENT, completions, TTL_MS),
            metadata.renew_leases(AGENT, list(leases.values())[::-1], TTL_MS),
            other_process.begin_transfers(AGENT, [(partition, THIRD) for partition in partitions], TIMEOUT_MS),
            metadata.list_transfers(),
            other_process.commit_segments(commits),
            other_process.acquire_leases(THIRD, partitions, TTL_MS),
        )
        # Back to the start, whoever has them now.
        for row in await metadata.list_placements():
            held = Lease(partition=row.partition, agent_id=row.agent_id, epoch=row.epoch, expires_at_ms=0)
            await metadata.release_leases(row.agent_id, [held], drained=True)
            end_offsets[row.partition] = row.durable_end
        under_way = [transfer.transfer_id for transfer in await metadata.list_transfers(AGENT)]
        await metadata.reject_transfers(AGENT, under_way, "next round")
        acquired = await metadata.acquire_leases(AGENT, partitions, TTL_MS)
        leases = {lease.partition: lease for lease in acquired if lease is not None}
        assert len(leases) == 20


async def test_nothing_asked_is_nothing_answered(metadata: MetadataStore) -> None:
    assert await metadata.begin_transfers(AGENT, [], TIMEOUT_MS) == []
    assert await metadata.complete_transfers(AGENT, [], TTL_MS) == []
    await metadata.accept_transfers(AGENT, [])
    await metadata.reject_transfers(AGENT, [], "")
    assert await metadata.list_transfers() == []


async def test_what_makes_no_sense_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    transfer = await begin_transfer(metadata, await acquire(metadata, partition))
    for moves, timeout_ms in (([(partition, AGENT)], 1000), ([(partition, "a\0b")], 1000), ([(partition, OTHER)], 0)):
        with pytest.raises(InvalidInput):
            await metadata.begin_transfers(AGENT, moves, timeout_ms)
    with pytest.raises(InvalidInput):
        await metadata.reject_transfers(AGENT, [transfer.transfer_id], "\0")
    with pytest.raises(InvalidInput):
        await metadata.complete_transfers(AGENT, [(transfer.transfer_id, 1, -1)], TTL_MS)
    with pytest.raises(InvalidInput):
        await metadata.complete_transfers(AGENT, [(transfer.transfer_id, 1, 0)], 0)
    with pytest.raises(InvalidInput):
        await metadata.list_transfers(limit=0)
