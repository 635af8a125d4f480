"""What every metadata store does with consumer groups, line by line of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from behaviour.coordinators import GROUP, acquire_shard, at, contents, coordinate, group, names_in_shard, pass_time
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind, make_topic
from streamhouse.core.placement.shards import SHARD_COUNT, shard_of
from streamhouse.metadata.groups import ShardLease
from streamhouse.metadata.migrations import load_migrations
from streamhouse.metadata.postgres import database as postgres_database
from streamhouse.metadata.sqlite import database as sqlite_database
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidInput, NotFound, StaleEpoch
from streamhouse.model.names import TopicPartition

HOSTILE_IDS = [
    "o'; DROP TABLE consumer_groups; --",
    'double "quotes" and \\backslashes\\',
    "größe-日本-🙈",
    "%_$1 ? :shard {0}",
    "\n\t\x01\x7f",
    "x" * 249,
    "é" * 124,
]


async def test_a_saved_group_is_loaded_as_it_was(metadata: MetadataStore) -> None:
    lease = await coordinate(metadata)
    saved = group(generation=7, state=bytes(range(256)) * 100, empty_since_ms=1_750_000_000_123)
    await metadata.save_group(lease, saved)
    assert await metadata.load_groups(lease.shard) == [saved]


async def test_groups_are_loaded_by_their_shard_and_by_name(metadata: MetadataStore) -> None:
    for shard in (3, 4):
        lease = await acquire_shard(metadata, shard)
        for name in names_in_shard(shard, 3)[::-1]:
            await metadata.save_group(lease, group(name))
    for shard in (3, 4):
        assert [row.group_id for row in await metadata.load_groups(shard)] == sorted(names_in_shard(shard, 3))
    assert await metadata.load_groups(5) == []


async def test_all_groups_are_listed_by_name_and_without_their_state(metadata: MetadataStore) -> None:
    rows = [
        group("Zoo", state=b"secret", protocol="consumer", protocol_type="", generation=3),
        group("ab", state=b"secret", empty_since_ms=5),
        group("ä", protocol="", protocol_type="", generation=0, empty_since_ms=9),
    ]
    for row in rows[::-1]:
        await metadata.save_group(await coordinate(metadata, row.group_id), row)
    assert await metadata.list_groups() == [replace(row, state=b"") for row in rows]


async def test_a_group_is_replaced_as_a_whole(metadata: MetadataStore) -> None:
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=1, state=b"one", empty_since_ms=5))
    later = group(generation=2, protocol="consumer", protocol_type="x", state=b"two")
    await metadata.save_group(lease, later)
    assert await metadata.load_groups(lease.shard) == [later]


async def test_a_generation_never_goes_back(metadata: MetadataStore) -> None:
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=5, state=b"five"))
    with pytest.raises(InvalidInput):
        await metadata.save_group(lease, group(generation=4, state=b"four"))
    assert await metadata.load_groups(lease.shard) == [group(generation=5, state=b"five")]
    for state in (b"five again", b"five again"):
        await metadata.save_group(lease, group(generation=5, state=state))
    assert await metadata.load_groups(lease.shard) == [group(generation=5, state=b"five again")]


@pytest.mark.parametrize(
    "row",
    [
        group(generation=-1),
        group(generation=2**31),
        group(protocol="share"),
        group(protocol_type="a\0b"),
        group("a\0b"),
        group("\ud800"),
    ],
    ids=["negative", "too large", "unknown protocol", "NUL in the type", "NUL in the id", "not UTF-8"],
)
async def test_what_is_not_a_group_is_refused(metadata: MetadataStore, row: object) -> None:
    lease = await coordinate(metadata, row.group_id)  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput):
        await metadata.save_group(lease, row)  # type: ignore[arg-type]
    assert await metadata.list_groups() == []


async def test_a_deleted_group_is_gone_with_its_offsets_and_the_others_stay(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    lease = await acquire_shard(metadata, 3)
    deleted, other = names_in_shard(3, 2)
    for name in (deleted, other):
        await metadata.save_group(lease, group(name))
        await metadata.commit_group_offsets(lease, name, 1, {first: at(1), second: at(2)})
    await metadata.delete_group(lease, deleted)
    assert [row.group_id for row in await metadata.list_groups()] == [other]
    assert await metadata.fetch_group_offsets(deleted) == {}
    assert list(await metadata.fetch_group_offsets(other)) == [first, second]
    with pytest.raises(NotFound):
        await metadata.delete_group(lease, deleted)


async def test_a_deleted_group_may_be_made_again_from_the_first_generation(metadata: MetadataStore) -> None:
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=9))
    await metadata.delete_group(lease, GROUP)
    await metadata.save_group(lease, group(generation=1))
    assert await metadata.load_groups(lease.shard) == [group(generation=1)]


Change = Callable[[MetadataStore, ShardLease, TopicPartition], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "save": lambda store, lease, _: store.save_group(lease, group(generation=9, state=b"late")),
    "save a new one": lambda store, lease, _: store.save_group(lease, group(names_in_shard(lease.shard, 1)[0])),
    "delete": lambda store, lease, _: store.delete_group(lease, GROUP),
    "commit": lambda store, lease, partition: store.commit_group_offsets(lease, GROUP, 1, {partition: at(9)}),
    "commit of no generation": lambda store, lease, partition: store.commit_group_offsets(
        lease, GROUP, None, {partition: at(9)}
    ),
    "delete offsets": lambda store, lease, partition: store.delete_group_offsets(lease, GROUP, [partition]),
    "expire": lambda store, lease, _: store.expire_group_offsets(lease, 0),
}


async def expire(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> ShardLease:
    await pass_time(kind, TTL_MS)
    return lease


async def release(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> ShardLease:
    await store.release_shards(AGENT, [lease])
    return lease


async def take_over(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> ShardLease:
    await pass_time(kind, TTL_MS)
    await acquire_shard(store, lease.shard, OTHER)
    return lease


async def take_again(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> ShardLease:
    await acquire_shard(store, lease.shard, AGENT)
    return lease


async def claim_for_another_agent(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> ShardLease:
    return replace(lease, agent_id=OTHER)


async def claim_a_later_epoch(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> ShardLease:
    return replace(lease, epoch=lease.epoch + 1)


@pytest.mark.parametrize(
    "lose",
    [expire, release, take_over, take_again, claim_for_another_agent, claim_a_later_epoch],
    ids=lambda lose: lose.__name__.replace("_", " "),
)
async def test_who_does_not_hold_the_lease_changes_nothing(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, lose: Callable[..., Awaitable[ShardLease]]
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(empty_since_ms=1))
    await metadata.commit_group_offsets(lease, GROUP, 1, {partition: at(1)})
    late = await lose(metadata, metadata_kind, lease)
    before = await contents(metadata_kind)
    for name, change in CHANGES.items():
        with pytest.raises(StaleEpoch):
            await change(metadata, late, partition)
        assert await contents(metadata_kind) == before, name


async def test_a_lease_allows_nothing_in_another_shard(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(empty_since_ms=1))
    await metadata.commit_group_offsets(lease, GROUP, 1, {partition: at(1)})
    elsewhere = await acquire_shard(metadata, (lease.shard + 1) % SHARD_COUNT)
    before = await contents(metadata_kind)
    for name in ("save", "delete", "commit", "commit of no generation", "delete offsets"):
        with pytest.raises(InvalidInput):
            await CHANGES[name](metadata, elsewhere, partition)
        assert await contents(metadata_kind) == before, name
    assert await metadata.expire_group_offsets(elsewhere, 0) == 0
    assert await contents(metadata_kind) == before


@pytest.mark.parametrize("group_id", HOSTILE_IDS, ids=range(len(HOSTILE_IDS)))
async def test_a_group_id_may_be_any_text(metadata: MetadataStore, group_id: str) -> None:
    first, second = await make_topic(metadata, 2)
    lease = await coordinate(metadata, group_id)
    bystander = group(names_in_shard(lease.shard, 1)[0])
    await metadata.save_group(lease, bystander)
    await metadata.save_group(lease, group(group_id, generation=3))
    answers = await metadata.commit_group_offsets(lease, group_id, 3, {first: at(1, group_id), second: at(2)})
    assert answers == {first: None, second: None}
    assert group(group_id, generation=3) in await metadata.load_groups(lease.shard)
    assert (await metadata.fetch_group_offsets(group_id))[first].metadata == group_id
    assert await metadata.delete_group_offsets(lease, group_id, [first]) == {first: None}
    assert list(await metadata.fetch_group_offsets(group_id)) == [second]
    await metadata.delete_group(lease, group_id)
    assert await metadata.list_groups() == [bystander]


async def test_saves_of_one_group_at_once_end_at_the_newest_generation(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    lease = await coordinate(metadata)
    answers = await asyncio.gather(
        *(
            store.save_group(lease, group(generation=generation, state=str(generation).encode()))
            for generation in range(12)
            for store in (metadata, other_process)
        ),
        return_exceptions=True,
    )
    assert {type(answer) for answer in answers} <= {type(None), InvalidInput}
    assert await metadata.load_groups(lease.shard) == [group(generation=11, state=b"11")]


async def test_groups_of_a_database_from_before_there_were_any_are_found_by_their_offsets(
    metadata_kind: MetadataStoreKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        for database in (sqlite_database, postgres_database):
            before.setattr(database, "load_migrations", lambda package: load_migrations(package)[:1])
        old = await metadata_kind.open()
        (partition,) = await make_topic(old)
        await old.close()
    names = [f"old-{number}" for number in range(40)]
    for name in names:
        await metadata_kind.query(
            "INSERT INTO group_offsets VALUES"
            f" ('{name}', '{partition.topic_id}', {partition.partition}, 5, 1, 'note', 1750000000000)"
        )
    store = await metadata_kind.open()
    assert [row.group_id for row in await store.list_groups()] == sorted(names)
    for shard in range(SHARD_COUNT):
        rows = await store.load_groups(shard)
        assert rows == [
            group(name, protocol="", protocol_type="", generation=0, empty_since_ms=1750000000000)
            for name in sorted(names)
            if shard_of(name) == shard
        ]
    assert (await store.fetch_group_offsets("old-7"))[partition].offset == 5
    await store.close()
