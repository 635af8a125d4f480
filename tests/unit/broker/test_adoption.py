"""What a sink has staged gets into the log once: whoever dies, whoever else is at it, whatever is tried again."""

from __future__ import annotations

import asyncio
import random

import pytest
from msgspec.structs import replace

from log_parts.engines import finishes
from log_parts.waiting import until
from sink_parts.nodes import GARBAGE_GRACE_MS, Adopting, Leaders, adopting
from sink_parts.staging import SINK, stage
from streamhouse.broker.adoption import CLAIM_MS, Adoption
from streamhouse.broker.sink_upkeep import STAGING_GRACES
from streamhouse.format.batch import iter_headers
from streamhouse.format.compression import Codec
from streamhouse.format.object_keys import staged_object_key
from streamhouse.format.staging import StagedObject, StagedRun, decode_manifest, encode_manifest
from streamhouse.model.errors import (
    CorruptBatch,
    CorruptData,
    InvalidInput,
    InvalidRecords,
    MetadataUnavailable,
    NotFound,
    SequenceRefused,
    StreamHouseError,
    Unavailable,
)
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import Moment, Operation
from streamhouse.runtime.entropy import new_uuid

# More than a leader remembers of a producer, in either partition.
FIRST = [[b"a%d" % number, b"b%d" % number] for number in range(9)]
SECOND = [[b"c%d" % number] for number in range(7)]
THIRD = [[b"d%d" % number] * 3 for number in range(4)]


def values(*batches: list[list[bytes]]) -> list[bytes]:
    return [value for batch in batches for some in batch for value in some]


async def two_tasks(cluster: Adopting, batch_id: int = 0) -> list[StagedObject]:
    objects = cluster.bench.objects
    return [
        await stage(objects, {("orders", 0): FIRST, ("orders", 1): THIRD}, batch_id=batch_id, task=0),
        await stage(objects, {("orders", 0): SECOND}, batch_id=batch_id, task=1),
    ]


async def assert_once(cluster: Adopting) -> None:
    assert await cluster.values(0) == values(FIRST, SECOND)
    assert await cluster.values(1) == values(THIRD)


async def until_done(adoption: Adoption, staged: list[StagedObject], batch_id: int = 0) -> None:
    """As a driver does that asks again and again."""
    for _ in range(1000):
        try:
            await finishes(adoption.adopt(SINK, batch_id, staged), "the adoption")
            return
        except Unavailable:
            pass
    raise AssertionError("it is never done")


async def test_staged_batches_are_in_the_log_in_the_order_of_the_tasks() -> None:
    async with adopting() as cluster:
        adopted = await cluster.node().adopt(SINK, 0, await two_tasks(cluster))
        assert (adopted.is_repeat, adopted.record_count) == (False, 37)
        await assert_once(cluster)


async def test_staged_objects_are_gone_when_they_are_adopted() -> None:
    async with adopting() as cluster:
        await stage(cluster.bench.objects, {("orders", 0): SECOND}, task=7)  # of a task that failed after all
        await stage(cluster.bench.objects, {("orders", 0): SECOND}, batch_id=1)
        await cluster.node().adopt(SINK, 0, await two_tasks(cluster))

        await cluster.until_staged(1)


async def test_the_same_call_again_adds_nothing() -> None:
    async with adopting() as cluster:
        node, staged = cluster.node(), await two_tasks(cluster)
        await node.adopt(SINK, 0, staged)
        adopted = await node.adopt(SINK, 0, staged)
        assert (adopted.is_repeat, adopted.record_count) == (False, 37)
        await assert_once(cluster)


async def test_a_later_try_of_a_batch_gets_what_the_first_one_stored() -> None:
    async with adopting() as cluster:
        node = cluster.node()
        await node.adopt(SINK, 0, await two_tasks(cluster))
        again = await stage(cluster.bench.objects, {("orders", 0): [[b"other"]]})
        adopted = await node.adopt(SINK, 0, [again])
        assert (adopted.is_repeat, adopted.record_count) == (True, 37)
        await assert_once(cluster)


async def test_what_was_staged_before_the_topic_grew_is_adopted_as_it_was_staged() -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        topics = cluster.storing.running.topics
        await topics.grow(topics.get("orders"), 5)

        await cluster.node().adopt(SINK, 0, staged)

        await assert_once(cluster)


async def test_what_was_staged_for_a_partition_that_this_node_has_not_heard_of_is_adopted() -> None:
    async with adopting() as cluster:
        running = cluster.storing.running
        grown = await cluster.bench.metadata.grow_topic(running.topics.get("orders"), 3)
        await running.engine.lead({TopicPartition(grown.topic_id, 2): grown})
        staged = await stage(cluster.bench.objects, {("orders", 2): [[b"new"]]})

        await cluster.node().adopt(SINK, 0, [staged])

        assert await cluster.values(2) == [b"new"]


async def test_a_batch_with_a_partition_that_another_node_has_not_heard_of_is_finished_by_it() -> None:
    async with adopting() as cluster:
        running = cluster.storing.running
        topic = running.topics.get("orders")
        grown = await cluster.bench.metadata.grow_topic(topic, 3)
        await running.engine.lead({TopicPartition(grown.topic_id, 2): grown})
        staged = await stage(cluster.bench.objects, {("orders", 2): [[b"new"]]})
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=0)).adopt(SINK, 0, [staged])
        running.topics._remember(topic)

        assert not (await cluster.node().adopt(SINK, 0, [staged])).is_repeat

        assert await cluster.values(2) == [b"new"]


async def test_what_a_topic_does_not_take_is_never_begun() -> None:
    """The sink's next try, with keys, is the one that counts."""
    async with adopting() as cluster:
        node = cluster.node()
        compacted = await cluster.storing.running.create("compacted", 1, cleanup_policy="compact")
        staged = await stage(cluster.bench.objects, {(compacted.name, 0): SECOND, ("orders", 0): SECOND})

        with pytest.raises(InvalidRecords, match="no key"):
            await node.adopt(SINK, 0, [staged])

        assert await cluster.bench.metadata.find_sink_batch(SINK, 0) is None
        assert await cluster.values(0) == []
        await node.adopt(SINK, 0, await two_tasks(cluster))
        await assert_once(cluster)


async def half_stored(cluster: Adopting, *, at_ms: int) -> None:
    """A batch of which partition 0 has something and partition 1 nothing, left by a node that died."""
    content = {("orders", 0): SECOND, ("orders", 1): SECOND}
    staged = await stage(cluster.bench.objects, content, at_ms=at_ms)
    with pytest.raises(Unavailable):
        await cluster.node(Leaders(cluster.storing, breaks_after=1)).adopt(SINK, 0, [staged])
    assert (await cluster.values(0), await cluster.values(1)) == ([b"c0"], [])


async def test_what_was_young_enough_when_it_was_begun_is_finished_whenever_that_is() -> None:
    async with adopting() as cluster:
        topics, clock = cluster.storing.running.topics, cluster.bench.clock
        await topics.configure(topics.get("orders"), {"message.timestamp.before.max.ms": "3600000"})
        await half_stored(cluster, at_ms=clock.now_ms() - 3_590_000)

        clock.jump(CLAIM_MS)
        await cluster.upkeep(cluster.node()).finish_left_batches()

        assert await cluster.values(0) == await cluster.values(1) == values(SECOND)


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ("cleanup.policy", "compact"),
        ("message.timestamp.before.max.ms", "1800000"),
        ("message.timestamp.after.max.ms", "1800000"),
    ],
)
async def test_a_topic_that_is_altered_meanwhile_takes_the_rest_of_what_was_begun(config: str, value: str) -> None:
    async with adopting() as cluster:
        topics, clock = cluster.storing.running.topics, cluster.bench.clock
        hour_ms = 3_600_000 if "after" in config else -3_600_000
        await half_stored(cluster, at_ms=clock.now_ms() + hour_ms)

        await topics.configure(topics.get("orders"), {config: value})
        clock.jump(CLAIM_MS)
        await cluster.upkeep(cluster.node()).finish_left_batches()

        assert await cluster.values(0) == await cluster.values(1) == values(SECOND)
        later = await stage(cluster.bench.objects, {("orders", 0): SECOND}, batch_id=1, at_ms=clock.now_ms() + hour_ms)
        with pytest.raises(InvalidRecords):
            await cluster.node().adopt(SINK, 1, [later])


async def test_what_was_begun_is_stored_with_the_codec_that_the_topic_has_by_then() -> None:
    async with adopting() as cluster:
        running = cluster.storing.running
        await half_stored(cluster, at_ms=1_000)

        await running.topics.configure(running.topics.get("orders"), {"compression.type": "zstd"})
        cluster.bench.clock.jump(CLAIM_MS)
        await cluster.upkeep(cluster.node()).finish_left_batches()

        assert await cluster.values(0) == await cluster.values(1) == values(SECOND)
        assert {header.codec for _, header in iter_headers(await running.read("orders", 1))} == {Codec.ZSTD}


async def test_batches_of_a_sink_follow_one_another() -> None:
    async with adopting() as cluster:
        node = cluster.node()
        for batch_id in range(3):
            staged = await stage(cluster.bench.objects, {("orders", 0): [[b"%d" % batch_id]] * 7}, batch_id=batch_id)
            assert not (await node.adopt(SINK, batch_id, [staged])).is_repeat
        assert await cluster.values() == [b"0"] * 7 + [b"1"] * 7 + [b"2"] * 7


@pytest.mark.parametrize("stores_last", [False, True], ids=["lost", "stored but not heard"])
@pytest.mark.parametrize("breaks_after", [0, 1, 2, 5, 6, 9, 13, 19])
async def test_what_a_dead_node_left_is_finished_by_another(breaks_after: int, stores_last: bool) -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        dying = cluster.node(Leaders(cluster.storing, breaks_after=breaks_after, stores_last=stores_last))
        with pytest.raises(Unavailable):
            await dying.adopt(SINK, 0, staged)
        assert not (await cluster.node().adopt(SINK, 0, staged)).is_repeat
        await assert_once(cluster)


async def test_a_batch_that_was_begun_counts_also_if_it_is_run_again_with_other_objects() -> None:
    async with adopting() as cluster:
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=4)).adopt(SINK, 0, await two_tasks(cluster))
        again = await two_tasks(cluster)
        assert (await cluster.node().adopt(SINK, 0, again)).is_repeat
        await assert_once(cluster)


async def test_a_batch_whose_driver_is_gone_is_finished_in_the_background() -> None:
    async with adopting() as cluster:
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=4)).adopt(SINK, 0, await two_tasks(cluster))
        upkeep = cluster.upkeep(cluster.node())
        await upkeep.finish_left_batches()
        assert await cluster.values(1) != values(THIRD)  # its node may still be at it
        cluster.bench.clock.jump(CLAIM_MS)
        await upkeep.finish_left_batches()
        await assert_once(cluster)
        assert await cluster.staged() == []


@pytest.mark.parametrize("seed", range(12))
async def test_nodes_that_are_at_it_together_store_everything_once(seed: int) -> None:
    """Batches overtake one another on the way, answers get lost, and two drivers run the same batch."""
    async with adopting() as cluster:
        chance = random.Random(seed)
        tries = [await two_tasks(cluster) for _ in range(2)]
        nodes = [cluster.node(Leaders(cluster.storing, chance=chance, lost_answers=0.1)) for _ in range(3)]
        await asyncio.gather(
            *(until_done(node, tries[number % 2]) for number, node in enumerate(nodes)),
        )
        await assert_once(cluster)


async def test_it_survives_a_restart_of_the_leader() -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=8)).adopt(SINK, 0, staged)
        running = cluster.storing.running
        await running.engine.stop()
        async with running.bench.engine() as restarted:
            cluster.storing.running = restarted
            cluster.storing.__post_init__()
            await cluster.node().adopt(SINK, 0, staged)
            await assert_once(cluster)


@pytest.mark.parametrize("lost_answer", [False, True])
@pytest.mark.parametrize("method", ["find_sink_batch", "begin_sink_batch", "finish_sink_batch"])
async def test_a_metadata_store_that_fails_for_a_while_changes_nothing(method: str, lost_answer: bool) -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        cluster.bench.metadata.fail(method, lost_answer=lost_answer)
        with pytest.raises(MetadataUnavailable):
            await cluster.node().adopt(SINK, 0, staged)
        await cluster.node().adopt(SINK, 0, staged)
        await assert_once(cluster)


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("operation", [Operation.LIST, Operation.CREATE, Operation.READ])
async def test_an_object_store_that_fails_for_a_while_changes_nothing(operation: Operation, moment: Moment) -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        cluster.bench.objects.fail(operation, moment=moment)
        with pytest.raises(Unavailable):
            await cluster.node().adopt(SINK, 0, staged)
        await cluster.node().adopt(SINK, 0, staged)
        await assert_once(cluster)


async def test_what_cannot_be_adopted_is_refused_before_anything_is_begun() -> None:
    async with adopting() as cluster:
        node = cluster.node()
        good = await stage(cluster.bench.objects, {("orders", 0): [[b"x"]]})
        (run,) = good.runs

        def changed(**changes: object) -> list[StagedObject]:
            facts = {name: getattr(run, name) for name in run.__struct_fields__}
            return [StagedObject(key=good.key, runs=[StagedRun(**{**facts, **changes})])]

        missing = StagedObject(key=staged_object_key(SINK, 0, 0, new_uuid()), runs=[run])
        refused: list[tuple[list[StagedObject], type[StreamHouseError]]] = [
            (changed(topic="elsewhere"), NotFound),
            (changed(partition=2), NotFound),
            (changed(partition=-1), NotFound),
            (changed(end_byte=run.end_byte + 1), InvalidInput),
            (changed(start_byte=run.end_byte), InvalidInput),
            (changed(record_count=0), InvalidInput),
            ([good, good], InvalidInput),
            ([missing], NotFound),
            ([StagedObject(key="segments/x", runs=[run])], InvalidInput),
        ]
        for staged, error in refused:
            with pytest.raises(error):
                await node.adopt(SINK, 0, staged)
        with pytest.raises(InvalidInput):
            await node.adopt(SINK, 1, [good])
        with pytest.raises(InvalidInput):
            await node.adopt("../sink", 0, [good])
        assert await cluster.bench.metadata.find_sink_batch(SINK, 0) is None
        assert await cluster.values() == []
        await node.adopt(SINK, 0, [good])
        assert await cluster.values() == [b"x"]


async def test_staged_bytes_that_were_damaged_are_not_stored() -> None:
    async with adopting() as cluster:
        good = await stage(cluster.bench.objects, {("orders", 0): [[b"value"]]})
        data = bytearray(await cluster.bench.inner.get(good.key))
        data[-3] ^= 1
        await cluster.bench.inner.delete([good.key])
        await cluster.bench.inner.create(good.key, [bytes(data)])
        with pytest.raises(CorruptBatch):
            await cluster.node().adopt(SINK, 0, [good])
        assert await cluster.values() == []


async def test_garbage_is_given_up_and_does_not_hold_up_others() -> None:
    """Many a batch of it: each would be tried again every few seconds, before those that can be finished."""
    async with adopting() as cluster:
        node = cluster.node()
        for number in range(6):
            rubbish = staged_object_key("rubbish", number, 0, new_uuid())
            await cluster.bench.objects.create(rubbish, [bytes(200)])
            run = StagedRun(topic="orders", partition=0, start_byte=0, end_byte=200, record_count=1)
            with pytest.raises(CorruptData):
                await node.adopt("rubbish", number, [StagedObject(key=rubbish, runs=[run])])
            with pytest.raises(InvalidInput, match="given up"):
                await node.adopt("rubbish", number, [StagedObject(key=rubbish, runs=[run])])
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=4)).adopt(SINK, 0, await two_tasks(cluster))
        cluster.bench.clock.jump(CLAIM_MS)
        await cluster.upkeep(node).finish_left_batches()
        await assert_once(cluster)
        assert await cluster.bench.metadata.claim_sink_batches(0, 10) == []


def _is_staged(key: str) -> bool:
    return key.endswith(".stage")


async def test_what_was_damaged_on_its_way_is_read_again() -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        cluster.bench.objects.fail(Operation.READ, matches=_is_staged, error=lambda: CorruptData("too short"))
        await cluster.node().adopt(SINK, 0, staged)
        await assert_once(cluster)


@pytest.mark.parametrize("names", ["another sink's object", "another topic"])
async def test_a_manifest_that_no_node_has_written_is_not_followed(names: str) -> None:
    async with adopting() as cluster:
        secret = await stage(cluster.bench.objects, {("orders", 1): [[b"secret"]]}, sink_id="other")
        staged = await stage(cluster.bench.objects, {("orders", 0): [[b"x"]]})
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=0)).adopt(SINK, 0, [staged])
        (key,) = [key for key in await cluster.staged() if key.endswith(".manifest")]
        manifest = decode_manifest(await cluster.bench.inner.get(key))
        forged = replace(manifest, topics={}) if names == "another topic" else replace(manifest, objects=[secret])
        await cluster.bench.inner.delete([key])
        await cluster.bench.inner.create(key, [encode_manifest(forged)])
        with pytest.raises(CorruptData, match="not what a node has written"):
            await cluster.node().adopt(SINK, 0, [staged])
        assert await cluster.values(0) == await cluster.values(1) == []


async def test_batches_larger_than_a_read_are_put_together() -> None:
    async with adopting() as cluster:
        large = [[bytes([65 + number]) * 700_000] for number in range(7)]
        staged = await stage(cluster.bench.objects, {("orders", 1): [[b"small"]], ("orders", 0): large})
        await cluster.node().adopt(SINK, 0, [staged])
        assert await cluster.values() == values(large)


async def test_a_topic_that_was_deleted_meanwhile_does_not_hold_up_the_others() -> None:
    async with adopting() as cluster:
        running = cluster.storing.running
        doomed = await running.create("doomed")
        staged = await stage(cluster.bench.objects, {("doomed", 0): [[b"x"]], ("orders", 0): SECOND})
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=0)).adopt(SINK, 0, [staged])
        await running.topics.delete(doomed)
        await running.create("doomed")  # another topic, of that name
        await cluster.node().adopt(SINK, 0, [staged])
        assert await cluster.values() == values(SECOND)
        assert await cluster.values(topic="doomed") == []


async def test_a_batch_that_lay_for_longer_than_leaders_remember_is_not_guessed_at() -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=4)).adopt(SINK, 0, staged)
        cluster.bench.clock.jump(13 * 3_600_000)
        before = await cluster.values()
        with pytest.raises(SequenceRefused, match="13 hours"):
            await cluster.node().adopt(SINK, 0, staged)
        with pytest.raises(InvalidInput, match="given up"):
            await cluster.node().adopt(SINK, 0, staged)
        assert await cluster.values() == before


async def test_a_batch_that_another_node_gives_up_meanwhile_is_not_reported_as_done() -> None:
    """Its objects are gone then, as they are when another node has finished it."""
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        reading = cluster.bench.objects.hold(Operation.READ, matches=lambda key: not _is_staged(key))
        slow = asyncio.ensure_future(cluster.node().adopt(SINK, 0, staged))
        await until(reading.reached.is_set, "it is begun, and about to be read")

        await cluster.bench.metadata.fail_sink_batch(SINK, 0)
        await cluster.bench.objects.delete(await cluster.staged())
        reading.release()

        with pytest.raises(InvalidInput, match="given up"):
            await finishes(slow, "the adoption")
        assert await cluster.values() == []


async def test_abandoned_objects_are_removed_and_cannot_be_adopted() -> None:
    async with adopting() as cluster:
        node, staged = cluster.node(), await two_tasks(cluster)
        await node.abandon([item.key for item in staged])
        assert await cluster.staged() == []
        with pytest.raises(NotFound):
            await node.adopt(SINK, 0, staged)
        again = await two_tasks(cluster)
        await node.adopt(SINK, 0, again)
        await assert_once(cluster)


async def test_what_a_batch_that_was_begun_needs_cannot_be_abandoned() -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=3)).adopt(SINK, 0, staged)
        await cluster.node().abandon([item.key for item in staged])
        await cluster.node().adopt(SINK, 0, staged)
        await assert_once(cluster)


@pytest.mark.parametrize("key", ["segments/x.strm", "staging/sink/x.stage", "staging/../segments/x"])
async def test_only_staged_objects_can_be_abandoned(key: str) -> None:
    async with adopting() as cluster:
        with pytest.raises(InvalidInput):
            await cluster.node().abandon([key])


async def test_objects_that_nobody_adopts_are_removed_when_they_are_old() -> None:
    async with adopting() as cluster:
        upkeep = cluster.upkeep(cluster.node())
        await two_tasks(cluster)
        cluster.bench.clock.jump(STAGING_GRACES * GARBAGE_GRACE_MS // 2)
        await cluster.bench.objects.create("staging/notes.txt", [b"not ours"])
        await upkeep.remove_abandoned()
        assert len(await cluster.staged()) == 3
        cluster.bench.clock.jump(STAGING_GRACES * GARBAGE_GRACE_MS // 2)
        await upkeep.remove_abandoned()
        assert await cluster.staged() == ["staging/notes.txt"], "younger, and of nobody"
        cluster.bench.clock.jump(STAGING_GRACES * GARBAGE_GRACE_MS // 2)
        await upkeep.remove_abandoned()
        assert await cluster.staged() == []


async def test_old_objects_of_a_batch_that_was_begun_stay() -> None:
    async with adopting() as cluster:
        staged = await two_tasks(cluster)
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=3)).adopt(SINK, 0, staged)
        cluster.bench.clock.jump(STAGING_GRACES * GARBAGE_GRACE_MS)
        await cluster.upkeep(cluster.node()).remove_abandoned()
        await cluster.node().adopt(SINK, 0, staged)
        await assert_once(cluster)


async def test_the_chores_run_by_themselves() -> None:
    async with adopting() as cluster:
        upkeep = cluster.upkeep(cluster.node())
        staged = await two_tasks(cluster)
        with pytest.raises(Unavailable):
            await cluster.node(Leaders(cluster.storing, breaks_after=3)).adopt(SINK, 0, staged)
        upkeep.start()
        cluster.bench.clock.jump(CLAIM_MS)

        await cluster.until_staged(0)
        await upkeep.close()
        await assert_once(cluster)
