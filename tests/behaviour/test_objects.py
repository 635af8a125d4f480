"""What every object store does, line by line of the protocol."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from behaviour.object_stores import ObjectStoreKind
from streamhouse.model.errors import AlreadyExists, CorruptData, InvalidInput, NotFound
from streamhouse.objects import patience
from streamhouse.objects.store import ObjectInfo, ObjectStore

KEY = "topics/orders/0/00000000000000000000-1.strm"
HOSTILE_KEYS = ["", "/", "/etc/passwd", "a//b", "a/", "../x", "a/../b", "a/./b", ".", "..", "a\0b", ".uploads/x", "a b",
                "a\\b", "ключ", "a" * 300, "a/" * 500 + "a", "a%2e%2e", "a?b", "a#b", "a\nb"]  # fmt: skip


@pytest.fixture(autouse=True)
def no_second_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try beside a first one that a busy S3 server is slow to answer would find its own key taken."""
    monkeypatch.setattr(patience, "_SECOND_TRY_S", 60.0)


async def keys_under(store: ObjectStore, prefix: str) -> list[str]:
    return [info.key async for info in store.list(prefix)]


async def test_an_object_comes_back_as_it_was_stored(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"hello ", b"world"])
    assert await objects.get(KEY) == b"hello world"


async def test_parts_of_every_kind_of_buffer_are_joined_in_order(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b""])
    assert await objects.get(KEY) == b"abcdef"


async def test_one_part_that_is_a_view_of_a_larger_buffer_is_stored_alone(objects: ObjectStore) -> None:
    await objects.create(KEY, [memoryview(bytearray(b"0123456789"))[2:5]])
    assert await objects.get(KEY) == b"234"


@pytest.mark.parametrize("parts", [[], [b""]], ids=["no part", "an empty part"])
async def test_an_empty_object_is_an_object(objects: ObjectStore, parts: list[bytes]) -> None:
    await objects.create(KEY, parts)
    assert await objects.get(KEY) == b""
    assert (await objects.head(KEY)).size_bytes == 0
    assert await objects.get_suffix(KEY, 10) == (b"", 0)
    assert await objects.get_range(KEY, 0, 0) == b""


async def test_a_large_object_of_many_parts_comes_back_whole(objects: ObjectStore) -> None:
    parts = [bytes([number]) * 65_536 for number in range(256)]
    await objects.create(KEY, parts)
    assert await objects.get(KEY) == b"".join(parts)
    assert await objects.get_range(KEY, 65_535, 131_073) == b"\0" + b"\1" * 65_536 + b"\2"


async def test_a_key_that_is_taken_is_refused_and_keeps_its_content(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"first"])
    with pytest.raises(AlreadyExists):
        await objects.create(KEY, [b"second"])
    assert await objects.get(KEY) == b"first"


async def test_of_twelve_creators_of_one_key_exactly_one_wins(object_kind: ObjectStoreKind) -> None:
    stores = [await object_kind.open() for _ in range(3)]
    contents = [f"writer {number}".encode() * 1000 for number in range(12)]
    outcomes = await asyncio.gather(
        *(stores[number % 3].create(KEY, [content]) for number, content in enumerate(contents)), return_exceptions=True
    )
    assert Counter(map(type, outcomes)) == {type(None): 1, AlreadyExists: 11}
    assert await stores[0].get(KEY) == contents[outcomes.index(None)]
    for store in stores:
        await store.close()


async def test_objects_are_there_for_a_store_that_is_opened_later(object_kind: ObjectStoreKind) -> None:
    first = await object_kind.open()
    await first.create(KEY, [b"kept"])
    await first.close()
    second = await object_kind.open()
    assert await second.get(KEY) == b"kept"
    with pytest.raises(AlreadyExists):
        await second.create(KEY, [b"again"])
    assert await keys_under(second, "") == [KEY]
    await second.close()


async def test_every_read_of_a_missing_object_says_so(objects: ObjectStore) -> None:
    await objects.create("a/b", [b"x"])
    for missing in ("a/c", "a", "a/b/c", "z/z/z"):
        for read in (
            objects.get(missing),
            objects.get_range(missing, 0, 1),
            objects.get_range(missing, 0, 0),
            objects.get_suffix(missing, 1),
            objects.get_suffix(missing, 0),
            objects.head(missing),
        ):
            with pytest.raises(NotFound):
                await read


async def test_a_range_gives_exactly_its_bytes(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"0123456789"])
    assert await objects.get_range(KEY, 0, 10) == b"0123456789"
    assert await objects.get_range(KEY, 2, 5) == b"234"
    assert await objects.get_range(KEY, 9, 10) == b"9"
    assert await objects.get_range(KEY, 10, 10) == b""


async def test_a_range_that_is_not_wholly_inside_is_corrupt_data(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"0123456789"])
    for start, end in ((0, 11), (9, 11), (10, 11), (50, 60), (11, 11)):
        with pytest.raises(CorruptData):
            await objects.get_range(KEY, start, end)


async def test_a_range_that_makes_no_sense_is_refused(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"0123456789"])
    for start, end in ((-1, 2), (3, 2)):
        with pytest.raises(InvalidInput):
            await objects.get_range(KEY, start, end)


async def test_a_suffix_gives_the_last_bytes_and_the_whole_size(objects: ObjectStore) -> None:
    await objects.create(KEY, [b"0123456789"])
    assert await objects.get_suffix(KEY, 3) == (b"789", 10)
    assert await objects.get_suffix(KEY, 10) == (b"0123456789", 10)
    assert await objects.get_suffix(KEY, 1000) == (b"0123456789", 10)
    assert await objects.get_suffix(KEY, 0) == (b"", 10)
    with pytest.raises(InvalidInput):
        await objects.get_suffix(KEY, -1)


async def test_head_gives_the_size_and_the_time(objects: ObjectStore, object_kind: ObjectStoreKind) -> None:
    await objects.create(KEY, [b"12345"])
    info = await objects.head(KEY)
    assert (info.key, info.size_bytes) == (KEY, 5)
    if object_kind.clock_is_ours:
        assert info.modified_at_ms == object_kind.clock.now_ms()
    else:
        assert info.modified_at_ms > 1_700_000_000_000


async def test_a_list_is_in_key_order_with_what_head_says(objects: ObjectStore) -> None:
    keys = [
        f"topics/{topic}/{partition}/{offset:020}.strm"
        for topic in "ab"
        for partition in (0, 10, 9)
        for offset in (5, 0)
    ]
    for key in keys:
        await objects.create(key, [key.encode()])
    listed: list[ObjectInfo] = [info async for info in objects.list("topics")]
    assert [info.key for info in listed] == sorted(keys)
    assert listed == [await objects.head(key) for key in sorted(keys)]


async def test_a_list_longer_than_a_page_is_complete(objects: ObjectStore) -> None:
    keys = [f"many/{number:05}" for number in range(1500)]
    for start in range(0, len(keys), 50):
        await asyncio.gather(*(objects.create(key, [b"x"]) for key in keys[start : start + 50]))
    assert await keys_under(objects, "many") == keys


async def test_a_prefix_is_a_directory_and_not_the_start_of_a_name(objects: ObjectStore) -> None:
    for key in ("a/1", "a/b/2", "ab/3", "c"):
        await objects.create(key, [b"x"])
    assert await keys_under(objects, "a") == ["a/1", "a/b/2"]
    assert await keys_under(objects, "a/") == ["a/1", "a/b/2"]
    assert await keys_under(objects, "a/b") == ["a/b/2"]
    assert await keys_under(objects, "") == ["a/1", "a/b/2", "ab/3", "c"]
    assert await keys_under(objects, "nothing") == []
    assert await keys_under(objects, "c") == []


async def test_what_is_deleted_is_gone_and_its_key_is_free(objects: ObjectStore) -> None:
    for key in ("a/1", "a/2", "a/3"):
        await objects.create(key, [b"x"])
    await objects.delete(["a/1", "a/3"])
    assert await keys_under(objects, "") == ["a/2"]
    with pytest.raises(NotFound):
        await objects.get("a/1")
    await objects.create("a/1", [b"new"])
    assert await objects.get("a/1") == b"new"


async def test_deleting_what_is_not_there_is_no_error(objects: ObjectStore) -> None:
    await objects.create("a/1", [b"x"])
    await objects.delete(["nothing", "a/2", "a/1", "a/1", "a"])
    await objects.delete([])
    assert await keys_under(objects, "") == []


async def test_a_hostile_key_is_refused_by_every_call(objects: ObjectStore) -> None:
    for key in HOSTILE_KEYS:
        for call in (
            objects.create(key, [b"x"]),
            objects.get(key),
            objects.get_range(key, 0, 1),
            objects.get_suffix(key, 1),
            objects.head(key),
            objects.delete([key]),
        ):
            with pytest.raises(InvalidInput):
                await call
    assert await keys_under(objects, "") == []


async def test_a_hostile_prefix_is_refused(objects: ObjectStore) -> None:
    for prefix in ("..", "/etc", "a/../..", "a\0", "//"):
        with pytest.raises(InvalidInput):
            await keys_under(objects, prefix)


async def test_the_names_that_topics_may_have_are_good_keys(objects: ObjectStore) -> None:
    keys = ["topics/.hidden/0", "topics/...dots/0", "topics/A-b_c.9/0", f"topics/{'n' * 249}/0", "part=1/x"]
    for key in keys:
        await objects.create(key, [key.encode()])
        assert await objects.get(key) == key.encode()
    assert sorted(await keys_under(objects, "")) == sorted(keys)
