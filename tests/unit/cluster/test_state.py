"""The cluster as a look at the metadata store shows it."""

from __future__ import annotations

from behaviour.cluster import TIMEOUT_MS
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, make_topic
from streamhouse.cluster.state import read_cluster_health
from streamhouse.core.placement.attempts import STUCK_AFTER
from streamhouse.metadata.open import open_metadata
from streamhouse.testing.clock import MovableClock


async def test_all_hand_overs_that_are_stuck_are_seen_however_many_others_there_are() -> None:
    clock = MovableClock()
    store = await open_metadata("sqlite::memory:", clock)
    stuck, moved = await make_topic(store, 700, "stuck"), await make_topic(store, 700, "moved")
    for _ in range(STUCK_AFTER):
        await store.acquire_leases(AGENT, stuck, TTL_MS)
        begun = await store.begin_transfers(AGENT, [(partition, OTHER) for partition in stuck], TIMEOUT_MS)
        await store.reject_transfers(OTHER, [transfer.transfer_id for transfer in begun if transfer], "no room")
        clock.pass_time(10)
    leases = await store.acquire_leases(AGENT, moved, TTL_MS)
    begun = await store.begin_transfers(AGENT, [(partition, OTHER) for partition in moved], TIMEOUT_MS)
    transfers = [transfer for transfer in begun if transfer]
    await store.accept_transfers(OTHER, [transfer.transfer_id for transfer in transfers])
    completions = [
        (transfer.transfer_id, lease.epoch, 0) for transfer, lease in zip(transfers, leases, strict=True) if lease
    ]
    assert await store.complete_transfers(AGENT, completions, TTL_MS) == [None] * len(moved)

    state = await read_cluster_health(store, liveness_ms=TTL_MS)

    found = state.stuck_hand_overs(clock.now_ms())
    assert {each.placement.partition for each in found} == set(stuck)
    assert {(each.failures, each.reason) for each in found} == {(STUCK_AFTER, "no room")}
    await store.close()
