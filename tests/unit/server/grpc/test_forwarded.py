"""A node asked by another over a real socket about partitions with real storage."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from log_parts.batches import real, sent
from log_parts.compaction import store_rewritten
from log_parts.engines import finishes
from log_parts.waiting import until
from peers.node import StoringNode, storing_node
from peers.scripted import HUNG_MS, asking, connected, forever, listening
from services.proxy import Proxy, proxy_before
from streamhouse.broker.forwarding import Forwarder
from streamhouse.client.peer import EARLIEST, LATEST, NewSegment, Peers, Produced
from streamhouse.format.batch import iter_headers
from streamhouse.format.records import decode_records
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidInput,
    InvalidRecords,
    NotLeader,
    OffsetOutOfRange,
    OutcomeUnknown,
    StaleEpoch,
)
from streamhouse.model.names import TopicPartition

EVERYTHING = 2**31


def values(content: bytes) -> list[bytes | None]:
    return [
        record.value
        for position, header in iter_headers(content)
        for record in decode_records(content[position : position + header.size_bytes])
    ]


async def test_a_produce_is_stored_where_it_says_and_read_back_as_it_was(tmp_path: Path) -> None:
    async with storing_node(tmp_path / "wal") as node, asking(node.local) as client:
        produced = [
            await client.produce(node.partition, real(b"a", b"b"), timeout_ms=HUNG_MS),
            await client.produce(node.partition, real(b"c"), leader_epoch=node.leader.epoch, timeout_ms=HUNG_MS),
        ]
        fetched = await client.fetch(node.partition, 0, max_bytes=EVERYTHING, timeout_ms=HUNG_MS)

        assert [item.base_offset for item in produced] == [0, 2]
        assert {item.leader_epoch for item in produced} == {fetched.leader_epoch} == {node.leader.epoch}
        assert values(fetched.batches) == [b"a", b"b", b"c"]
        assert (fetched.high_watermark, fetched.log_start_offset) == (3, 0)
        assert fetched.batches == await node.running.read("orders", 1)


async def test_an_append_time_comes_back() -> None:
    async with storing_node() as node, asking(node.local) as client:
        stamped = await node.running.create("stamped", message_timestamp_type="LogAppendTime")
        produced = await client.produce(TopicPartition(stamped.topic_id, 0), real(b"a"), timeout_ms=HUNG_MS)

        assert abs(produced.append_time_ms - node.running.bench.clock.now_ms()) < HUNG_MS


@pytest.mark.parametrize(
    "partition", [TopicPartition(UUID(int=99), 0), TopicPartition(UUID(int=99), -1)], ids=["topic", "negative"]
)
async def test_what_this_node_has_not_heard_of_it_does_not_lead(partition: TopicPartition) -> None:
    async with storing_node() as node, asking(node.local) as client:
        with pytest.raises(NotLeader):
            await client.produce(partition, real(b"a"), timeout_ms=HUNG_MS)
        with pytest.raises(NotLeader):
            await client.fetch(partition, 0, max_bytes=1, timeout_ms=HUNG_MS)
        with pytest.raises(NotLeader):
            await client.flush(partition, timeout_ms=HUNG_MS)


async def test_a_partition_whose_lease_is_lost_is_not_led_and_nothing_is_stored() -> None:
    async with storing_node() as node, asking(node.local) as client:
        node.leader.writable_until_ms = 0
        with pytest.raises(NotLeader):
            await client.produce(node.partition, real(b"a"), timeout_ms=HUNG_MS)

        assert node.leader.next_offset == 0


async def test_a_caller_that_knows_another_epoch_hears_so() -> None:
    async with storing_node() as node, asking(node.local) as client:
        with pytest.raises(StaleEpoch):
            await client.produce(node.partition, real(b"a"), leader_epoch=node.leader.epoch - 1, timeout_ms=HUNG_MS)
        with pytest.raises(NotLeader):
            await client.produce(node.partition, real(b"a"), leader_epoch=node.leader.epoch + 1, timeout_ms=HUNG_MS)


async def test_records_are_judged_unless_they_were_when_a_sinks_batch_was_begun() -> None:
    async with storing_node() as node, asking(node.local) as client:
        compacted = await node.running.create("compacted", cleanup_policy="compact")
        partition = TopicPartition(compacted.topic_id, 0)
        with pytest.raises(InvalidRecords):
            await client.produce(partition, real(b"keyless"), timeout_ms=HUNG_MS)
        produced = await client.produce(partition, real(b"begun"), is_admitted=True, timeout_ms=HUNG_MS)

        assert produced.base_offset == 0
        assert values(await node.running.read("compacted")) == [b"begun"]


async def test_what_kafkas_door_refuses_is_refused_here_as_well() -> None:
    async with storing_node(max_message_bytes=1_000) as node, asking(node.local) as client:
        damaged = sent()
        damaged[70] ^= 1
        with pytest.raises(CorruptBatch):
            await client.produce(node.partition, damaged, timeout_ms=HUNG_MS)
        with pytest.raises(BatchTooLarge):
            await client.produce(node.partition, sent(1_001), timeout_ms=HUNG_MS)

        assert node.leader.next_offset == 0


@pytest.mark.parametrize("offset", [-1, 1, 2**40])
async def test_an_offset_outside_the_log_is_out_of_range(offset: int) -> None:
    async with storing_node() as node, asking(node.local) as client:
        with pytest.raises(OffsetOutOfRange):
            await client.fetch(node.partition, offset, max_bytes=1, timeout_ms=HUNG_MS)


async def test_a_fetch_gives_as_much_as_was_asked_for_but_always_a_batch() -> None:
    async with storing_node() as node, asking(node.local) as client:
        for _ in range(5):
            await client.produce(node.partition, sent(100), timeout_ms=HUNG_MS)

        small = await client.fetch(node.partition, 1, max_bytes=0, timeout_ms=HUNG_MS)
        larger = await client.fetch(node.partition, 1, max_bytes=250, timeout_ms=HUNG_MS)

    assert [header.base_offset for _, header in iter_headers(small.batches)] == [1]
    assert [header.base_offset for _, header in iter_headers(larger.batches)] == [1, 2]


async def test_a_fetch_waits_for_what_is_not_there_yet() -> None:
    async with storing_node() as node, asking(node.local) as client:
        fetch = asyncio.ensure_future(
            client.fetch(node.partition, 0, max_bytes=1_000, min_bytes=1, max_wait_ms=HUNG_MS, timeout_ms=HUNG_MS)
        )
        await until(lambda: node.leader._watchers, "the fetch waits")
        await client.produce(node.partition, real(b"a"), timeout_ms=HUNG_MS)

        assert values((await finishes(fetch, "the fetch")).batches) == [b"a"]


async def test_a_fetch_that_waits_in_vain_is_answered_with_nothing() -> None:
    async with storing_node() as node, asking(node.local) as client:
        fetched = await client.fetch(
            node.partition, 0, max_bytes=1_000, min_bytes=1, max_wait_ms=50, timeout_ms=HUNG_MS
        )

        assert (fetched.batches, fetched.high_watermark) == (b"", 0)
        assert not node.leader._watchers


async def test_a_time_is_looked_for_in_segments_and_in_what_is_in_none_yet() -> None:
    async with storing_node() as node, asking(node.local) as client:
        for timestamp_ms in (1_000, 2_000):
            await client.produce(node.partition, real(b"a", b"b", timestamps=(timestamp_ms,) * 2), timeout_ms=HUNG_MS)
            if timestamp_ms == 1_000:
                await client.flush(node.partition, timeout_ms=HUNG_MS)
        found = {
            time: await client.offset_at(node.partition, time, timeout_ms=HUNG_MS)
            for time in (EARLIEST, LATEST, 0, 1_001, 2_001)
        }

    assert {time: one.offset for time, one in found.items()} == {EARLIEST: 0, LATEST: 4, 0: 0, 1_001: 2, 2_001: None}
    (ends,) = {(one.log_start_offset, one.committed_end, one.high_watermark) for one in found.values()}
    assert ends == (0, 2, 4)
    assert 60 < found[0].uncommitted_bytes < 200


async def test_an_end_that_may_not_be_the_end_any_more_is_not_told() -> None:
    async with storing_node() as node, asking(node.local) as client:
        node.leader.is_local = False
        node.leader.writable_until_ms = 0
        for time in (EARLIEST, LATEST, 0):
            with pytest.raises(NotLeader):
                await client.offset_at(node.partition, time, timeout_ms=HUNG_MS)


async def test_a_time_that_is_none_is_refused() -> None:
    async with storing_node() as node, asking(node.local) as client:
        with pytest.raises(InvalidInput, match="-3 is not a time"):
            await client.offset_at(node.partition, -3, timeout_ms=HUNG_MS)


async def test_segments_are_replaced_and_the_commit_id_tells_a_repeat() -> None:
    async with storing_node() as node, asking(node.local) as client:
        for value in (b"a", b"b"):
            await client.produce(node.partition, real(value, value), timeout_ms=HUNG_MS)
            await client.flush(node.partition, timeout_ms=HUNG_MS)
        old = list(node.leader.segments)
        row = await store_rewritten(node.running, old, lambda record: record.offset % 2 == 1, leader=node.leader)
        new = NewSegment(**{name: value for name, value in asdict(row).items() if name != "created_at_ms"})
        keys, commit_id = [segment.object_key for segment in old], uuid4()
        for _ in range(2):
            await client.replace_segments(node.partition, commit_id, keys, [new], timeout_ms=HUNG_MS)
        with pytest.raises(StaleEpoch):
            await client.replace_segments(node.partition, uuid4(), keys, [new], timeout_ms=HUNG_MS)

        assert [segment.object_key for segment in node.leader.segments] == [row.object_key]


async def test_a_flush_puts_everything_into_segments() -> None:
    async with storing_node() as node, asking(node.local) as client:
        await client.produce(node.partition, real(b"a", b"b"), timeout_ms=HUNG_MS)

        assert await client.flush(node.partition, timeout_ms=HUNG_MS) == 2
        assert node.leader.committed_end == 2
        assert await client.flush(node.partition, timeout_ms=HUNG_MS) == 2


async def test_a_nudge_wakes_whoever_looks_at_transfers() -> None:
    async with storing_node() as node, asking(node.local) as client:
        await client.nudge_transfers(timeout_ms=HUNG_MS)

        assert node.nudges == 1


# --- lost answers ---


class AnswerLost:
    """A peer that stores what it is sent, and whose first answers are lost with their connections."""

    def __init__(self, node: StoringNode, times: int) -> None:
        self._node = node
        self._times = times
        self.proxy: Proxy

    async def produce(
        self, partition: TopicPartition, batch: Buffer, *, leader_epoch: int, is_admitted: bool, timeout_ms: int
    ) -> Produced:
        produced = await self._node.local.produce(
            partition, batch, leader_epoch=leader_epoch, is_admitted=is_admitted, timeout_ms=timeout_ms
        )
        if self._times:
            self._times -= 1
            self.proxy.cut()
            await forever()
        return produced


async def forward(node: StoringNode, batch: memoryview, *, lost_answers: int) -> Produced:
    """Through another node's forwarder and a network that loses answers."""
    peer = AnswerLost(node, lost_answers)
    async with listening(peer) as port, proxy_before(port) as proxy, connected(proxy.port) as client:
        peer.proxy = proxy

        async def nothing_changes() -> None:
            return

        forwarder = Forwarder(
            agent_id="agent-2",
            local=None,
            peers=Peers(lambda _: client),
            leader_address=lambda *_: ("agent-1", f"127.0.0.1:{proxy.port}"),
            refresh_routes=nothing_changes,
            clock=node.running.bench.clock,
        )
        return await finishes(forwarder.produce(node.topic, 1, batch, timeout_ms=HUNG_MS), "the produce", timeout=25)


async def test_an_idempotent_batch_whose_answers_are_lost_is_stored_once() -> None:
    async with storing_node() as node:
        first = await forward(node, real(b"a", producer=(9, 0, 0)), lost_answers=0)
        second = await forward(node, real(b"b", producer=(9, 0, 1)), lost_answers=2)

        assert (first.base_offset, second.base_offset) == (0, 1)
        assert values(await node.running.read("orders", 1)) == [b"a", b"b"]


async def test_a_plain_batch_whose_answer_is_lost_is_stored_once_and_its_outcome_is_unknown() -> None:
    async with storing_node() as node:
        with pytest.raises(OutcomeUnknown):
            await forward(node, real(b"a"), lost_answers=1)

        assert values(await node.running.read("orders", 1)) == [b"a"]
