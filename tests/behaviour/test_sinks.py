"""What every metadata store does with the batches of exactly-once sinks, line by line of the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from behaviour.metadata_stores import MetadataStoreKind, PostgresKind
from streamhouse.metadata.sinks import NewSinkBatch, SinkBatch
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidInput

SINK = "orders-to-topic"
KEEP_MS = 7 * 86_400_000
KEEP_LAST_MS = 365 * 86_400_000


def new_batch(batch_id: int = 0, *, sink_id: str = SINK, attempt: str = "a") -> NewSinkBatch:
    prefix = f"staging/{sink_id}/{batch_id:020d}"
    return NewSinkBatch(
        sink_id=sink_id,
        batch_id=batch_id,
        manifest_key=f"{prefix}/{attempt}.manifest",
        object_keys=(f"{prefix}/00000-{attempt}.stage", f"{prefix}/00001-{attempt}.stage"),
        record_count=7,
    )


async def done(store: MetadataStore, batch_id: int, *, sink_id: str = SINK) -> SinkBatch:
    batch = await store.begin_sink_batch(new_batch(batch_id, sink_id=sink_id))
    await store.finish_sink_batch(sink_id, batch_id)
    return batch


async def pass_time(kind: MetadataStoreKind, duration_ms: int) -> None:
    await kind.pass_time(duration_ms)
    if isinstance(kind, PostgresKind):
        for table, column in (
            ("sinks", "used_at"),
            ("sink_batches", "begun_at"),
            ("sink_batches", "claimed_at"),
            ("sink_batches", "done_at"),
            ("abandoned_objects", "abandoned_at"),
        ):
            await kind.query(f"UPDATE {table} SET {column} = {column} - {duration_ms}")


async def test_a_batch_that_nobody_began_is_not_found(metadata: MetadataStore) -> None:
    assert await metadata.find_sink_batch(SINK, 0) is None


async def test_a_batch_is_begun_once_and_later_tries_get_the_first_ones_manifest(metadata: MetadataStore) -> None:
    first = await metadata.begin_sink_batch(new_batch())
    second = await metadata.begin_sink_batch(replace(new_batch(attempt="b"), record_count=99))
    assert (second.manifest_key, second.record_count) == (first.manifest_key, 7)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch)
    assert not second.is_done


async def test_tries_that_begin_at_once_agree_on_one(metadata: MetadataStore, other_process: MetadataStore) -> None:
    tries = [
        store.begin_sink_batch(new_batch(attempt=f"{number}"))
        for number, store in enumerate([metadata, other_process] * 4)
    ]
    begun = await asyncio.gather(*tries)
    assert len({(batch.manifest_key, batch.producer_id, batch.producer_epoch) for batch in begun}) == 1


async def test_a_finished_batch_is_done_for_ever(metadata: MetadataStore) -> None:
    await done(metadata, 0)
    await metadata.finish_sink_batch(SINK, 0)
    again = await metadata.begin_sink_batch(new_batch(attempt="b"))
    assert again.is_done
    assert again.manifest_key == new_batch().manifest_key


async def test_a_batch_that_failed_is_nobodys_to_finish(metadata: MetadataStore) -> None:
    begun = await metadata.begin_sink_batch(new_batch())
    assert not begun.has_failed
    await metadata.fail_sink_batch(SINK, 0)

    again = await metadata.begin_sink_batch(new_batch(attempt="b"))
    assert (again.is_done, again.has_failed) == (True, True)
    assert await metadata.claim_sink_batches(0, 10) == []
    assert await metadata.abandon_staged_objects(SINK, 0, ["staging/x"])


async def test_what_is_done_cannot_fail(metadata: MetadataStore) -> None:
    await done(metadata, 0)
    await metadata.fail_sink_batch(SINK, 0)

    batch = await metadata.find_sink_batch(SINK, 0)
    assert batch is not None
    assert not batch.has_failed


async def test_each_batch_of_a_sink_has_the_next_epoch_of_one_producer(metadata: MetadataStore) -> None:
    batches = [await done(metadata, number) for number in range(3)]
    assert {batch.producer_id for batch in batches} == {batches[0].producer_id}
    assert [batch.producer_epoch for batch in batches] == [0, 1, 2]


async def test_sinks_have_producers_of_their_own_that_no_client_gets(metadata: MetadataStore) -> None:
    one = await done(metadata, 0, sink_id="one")
    two = await done(metadata, 0, sink_id="two")
    assert len({one.producer_id, two.producer_id, await metadata.allocate_producer_ids(1)}) == 3


async def test_a_batch_that_is_not_done_keeps_its_producer_to_itself(metadata: MetadataStore) -> None:
    unfinished = await metadata.begin_sink_batch(new_batch(0))
    later = await done(metadata, 1)
    assert later.producer_id != unfinished.producer_id
    assert later.producer_epoch == 0
    still_later = await metadata.begin_sink_batch(new_batch(2))
    assert still_later.producer_id not in (unfinished.producer_id, later.producer_id)


async def test_a_producer_without_epochs_left_is_followed_by_another(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    first = await done(metadata, 0)
    await metadata_kind.query("UPDATE sinks SET producer_epoch = 32767")
    following = await metadata.begin_sink_batch(new_batch(1))
    assert following.producer_id != first.producer_id
    assert following.producer_epoch == 0


async def test_a_batch_that_was_begun_is_left_to_who_began_it_until_that_one_is_silent(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    begun = await metadata.begin_sink_batch(new_batch())
    assert await other_process.claim_sink_batches(10_000, 10) == []
    await pass_time(metadata_kind, 6_000)
    await metadata.keep_sink_batch(SINK, 0)
    await pass_time(metadata_kind, 6_000)
    assert await other_process.claim_sink_batches(10_000, 10) == []
    await pass_time(metadata_kind, 6_000)
    (claimed,) = await other_process.claim_sink_batches(10_000, 10)
    assert replace(claimed, age_ms=0) == replace(begun, age_ms=0)
    assert claimed.age_ms >= 18_000


async def test_a_claimed_batch_is_claimed_by_nobody_else(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for number in range(4):
        await metadata.begin_sink_batch(new_batch(number))
    await pass_time(metadata_kind, 20_000)
    claims = await asyncio.gather(metadata.claim_sink_batches(10_000, 3), other_process.claim_sink_batches(10_000, 3))
    claimed = sorted(batch.batch_id for batches in claims for batch in batches)
    assert claimed == sorted(set(claimed))
    claimed += [batch.batch_id for batch in await metadata.claim_sink_batches(10_000, 10)]
    assert sorted(claimed) == [0, 1, 2, 3]


async def test_a_done_batch_is_not_claimed(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    await done(metadata, 0)
    await pass_time(metadata_kind, 20_000)
    assert await metadata.claim_sink_batches(10_000, 10) == []


async def test_abandoned_objects_are_never_begun_with(metadata: MetadataStore) -> None:
    batch = new_batch()
    assert await metadata.abandon_staged_objects(SINK, 0, batch.object_keys[1:])
    with pytest.raises(InvalidInput, match="abandoned"):
        await metadata.begin_sink_batch(batch)
    assert await metadata.find_sink_batch(SINK, 0) is None
    assert (await metadata.begin_sink_batch(new_batch(attempt="b"))).manifest_key == new_batch(attempt="b").manifest_key


async def test_what_a_begun_batch_needs_is_not_abandoned_until_it_is_done(metadata: MetadataStore) -> None:
    batch = new_batch()
    await metadata.begin_sink_batch(batch)
    assert not await metadata.abandon_staged_objects(SINK, 0, batch.object_keys)
    await metadata.finish_sink_batch(SINK, 0)
    assert await metadata.abandon_staged_objects(SINK, 0, batch.object_keys)


async def test_to_abandon_and_to_begin_at_once_cannot_both_succeed(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    for number in range(10):
        batch = new_batch(number)
        begun, may_remove = await asyncio.gather(
            metadata.begin_sink_batch(batch),
            other_process.abandon_staged_objects(SINK, number, batch.object_keys),
            return_exceptions=True,
        )
        assert isinstance(begun, InvalidInput if may_remove is True else SinkBatch)


async def test_old_batches_are_forgotten_but_the_last_one_of_each_sink(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for number in range(3):
        await done(metadata, number)
    await pass_time(metadata_kind, KEEP_MS + 1)
    await done(metadata, 0, sink_id="recent")
    await metadata.prune_sink_batches(KEEP_MS, KEEP_LAST_MS)
    left = await metadata_kind.query("SELECT sink_id, batch_id FROM sink_batches ORDER BY sink_id")
    assert [tuple(row) for row in left] == [(SINK, 2), ("recent", 0)]
    assert (await metadata.begin_sink_batch(new_batch(2, attempt="b"))).is_done


async def test_a_batch_that_may_have_been_forgotten_is_refused(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for number in range(3):
        await done(metadata, number)
    await pass_time(metadata_kind, KEEP_MS + 1)
    await metadata.prune_sink_batches(KEEP_MS, KEEP_LAST_MS)
    with pytest.raises(InvalidInput, match="forgotten"):
        await metadata.begin_sink_batch(new_batch(1, attempt="b"))
    following = await metadata.begin_sink_batch(new_batch(3))
    assert (following.producer_epoch, following.is_done) == (3, False)


async def test_unfinished_batches_and_their_sinks_are_never_forgotten(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    await metadata.begin_sink_batch(new_batch(0))
    await done(metadata, 1)
    await pass_time(metadata_kind, KEEP_LAST_MS + 1)
    await metadata.prune_sink_batches(KEEP_MS, KEEP_LAST_MS)
    assert await metadata.find_sink_batch(SINK, 0) is not None


async def test_sinks_that_were_not_used_for_long_are_forgotten_whole(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    await done(metadata, 0)
    await metadata.abandon_staged_objects("other", 5, ["staging/other/x.stage"])
    await pass_time(metadata_kind, KEEP_LAST_MS + 1)
    await metadata.prune_sink_batches(KEEP_MS, KEEP_LAST_MS)
    for table in ("sinks", "sink_batches", "abandoned_objects"):
        assert await metadata_kind.query(f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("batch", [replace(new_batch(), batch_id=-1), replace(new_batch(), sink_id="a\0b")])
async def test_a_batch_that_cannot_be_stored_is_refused(metadata: MetadataStore, batch: NewSinkBatch) -> None:
    with pytest.raises(InvalidInput):
        await metadata.begin_sink_batch(batch)
