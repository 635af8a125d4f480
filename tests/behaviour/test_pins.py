"""What every metadata store does with pins, which keep retention from what readers have yet to read."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from behaviour.metadata_stores import MetadataStoreKind, make_topic
from streamhouse.metadata.pins import LONGEST_PIN_ID, LONGEST_PIN_MS, MAX_PINNED_PARTITIONS, MAX_PINS
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition

TTL_MS = 60_000


async def test_the_smallest_offset_that_a_pin_keeps_is_found(metadata: MetadataStore) -> None:
    first, second, third = await make_topic(metadata, 3)
    await metadata.set_pins("a", TTL_MS, {first: 10, second: 5})
    await metadata.set_pins("b", TTL_MS, {first: 7})

    assert await metadata.load_pins([third, first, second, first]) == [None, 7, 5, 7]


async def test_a_pin_that_is_set_again_forgets_what_it_kept(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    first, second = await make_topic(metadata, 2)
    await metadata.set_pins("a", TTL_MS, {first: 1, second: 1})
    await metadata_kind.pass_time(TTL_MS - 1)

    await metadata.set_pins("a", TTL_MS, {first: 20})

    await metadata_kind.pass_time(TTL_MS - 1_000)
    assert await metadata.load_pins([first, second]) == [20, None]


async def test_a_pin_without_offsets_is_removed(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    (partition,) = await make_topic(metadata)
    await metadata.set_pins("a", TTL_MS, {partition: 1})

    await metadata.set_pins("a", 0, {})
    await metadata.set_pins("never there", 0, {})

    assert await metadata.load_pins([partition]) == [None]
    assert await metadata_kind.query("SELECT * FROM pins") == []
    assert await metadata_kind.query("SELECT * FROM pinned_offsets") == []


async def test_a_pin_ends_when_its_time_is_over_and_is_forgotten_when_another_is_set(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    await metadata.set_pins("a", TTL_MS, {partition: 1})
    await metadata_kind.pass_time(TTL_MS - 1_000)
    assert await metadata.load_pins([partition]) == [1]
    await metadata_kind.pass_time(1_000)
    assert await metadata.load_pins([partition]) == [None]

    await metadata.set_pins("b", TTL_MS, {partition: 2})

    assert await metadata_kind.query("SELECT pin_id FROM pins") == [("b",)]
    assert await metadata_kind.query("SELECT pin_id, pinned_offset FROM pinned_offsets") == [("b", 2)]


async def test_partitions_that_are_gone_are_passed_over_and_pins_go_with_their_topic(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (kept,) = await make_topic(metadata)
    (deleted,) = await make_topic(metadata, name="deleted")
    await metadata.set_pins("a", TTL_MS, {kept: 3, deleted: 4, TopicPartition(uuid4(), 0): 5})

    await metadata.delete_topic(deleted.topic_id)

    assert await metadata.load_pins([kept, deleted]) == [3, None]
    assert await metadata_kind.query("SELECT pinned_offset FROM pinned_offsets") == [(3,)]


async def test_a_pin_that_lasts_too_long_or_holds_too_much_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    many = {TopicPartition(uuid4(), number): 0 for number in range(MAX_PINNED_PARTITIONS + 1)}
    for pin_id, ttl_ms, offsets in (
        ("a", LONGEST_PIN_MS + 1, {partition: 1}),
        ("a", 0, {partition: 1}),
        ("a", TTL_MS, {partition: -1}),
        ("a", TTL_MS, many),
        ("", TTL_MS, {partition: 1}),
        ("x" * (LONGEST_PIN_ID + 1), TTL_MS, {partition: 1}),
        ("nul\0", TTL_MS, {partition: 1}),
    ):
        with pytest.raises(InvalidInput):
            await metadata.set_pins(pin_id, ttl_ms, offsets)
    assert await metadata.load_pins([partition]) == [None]

    await metadata.set_pins("x" * LONGEST_PIN_ID, LONGEST_PIN_MS, {partition: 2**63 - 1})

    assert await metadata.load_pins([partition]) == [2**63 - 1]


async def test_there_are_only_so_many_pins_at_once(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    (partition,) = await make_topic(metadata)
    await metadata.set_pins("first", TTL_MS, {partition: 1})
    (expires_at,) = (await metadata_kind.query("SELECT expires_at FROM pins"))[0]
    values = ", ".join(f"('pin-{number}', {expires_at})" for number in range(MAX_PINS - 1))
    await metadata_kind.query(f"INSERT INTO pins (pin_id, expires_at) VALUES {values}")
    with pytest.raises(InvalidInput, match="pins already"):
        await metadata.set_pins("one more", TTL_MS, {partition: 0})

    await metadata.set_pins("first", TTL_MS, {partition: 2})
    await metadata_kind.pass_time(TTL_MS)
    await metadata.set_pins("one more", TTL_MS, {partition: 0})

    assert await metadata.load_pins([partition]) == [0]
    assert await metadata_kind.query("SELECT count(*) FROM pins") == [(1,)]


async def test_a_pin_that_is_set_by_many_at_once_is_one_of_theirs(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 4)

    await asyncio.gather(
        *(
            store.set_pins("a", TTL_MS, dict.fromkeys(partitions, number))
            for number, store in enumerate((metadata, other_process) * 4)
        )
    )

    assert len(set(await metadata.load_pins(partitions))) == 1
    assert await metadata_kind.query("SELECT count(*) FROM pinned_offsets") == [(4,)]
