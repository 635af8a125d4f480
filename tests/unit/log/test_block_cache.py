"""A cache that loads each thing once, however many want it, and keeps what was used last."""

from __future__ import annotations

import asyncio
import gc

import pytest

from streamhouse.log.block_cache import LoadingCache


def put(cache: LoadingCache[str], key: str, size_bytes: int) -> None:
    cache.begin(key)
    cache.finish(key, key.upper(), size_bytes)


async def test_who_asks_while_it_is_loaded_gets_what_was_loaded() -> None:
    cache: LoadingCache[str] = LoadingCache(100)
    future = cache.begin("a")
    waiting = [asyncio.shield(found) for _ in range(3) if (found := cache.loading("a")) is not None]

    cache.finish("a", "A", 1)

    assert await asyncio.gather(*waiting) == ["A", "A", "A"]
    assert await future == "A"
    assert cache.get("a") == "A"
    assert cache.loading("a") is None


async def test_a_failed_load_fails_for_all_who_wait_and_is_tried_again_by_the_next() -> None:
    cache: LoadingCache[str] = LoadingCache(100)
    future = cache.begin("a")
    others = asyncio.shield(future)

    cache.fail("a", ValueError("broken"))

    for waiting in (future, others):
        with pytest.raises(ValueError, match="broken"):
            await waiting
    assert cache.get("a") is None
    assert cache.loading("a") is None
    put(cache, "a", 1)
    assert cache.get("a") == "A"


async def test_a_failed_load_that_nobody_waits_for_is_not_complained_about() -> None:
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    cache: LoadingCache[str] = LoadingCache(100)

    cache.begin("a")
    cache.fail("a", ValueError("broken"))
    await asyncio.sleep(0)
    gc.collect()

    assert complaints == []


async def test_what_was_used_longest_ago_goes_first() -> None:
    cache: LoadingCache[str] = LoadingCache(30)
    for key in ("a", "b", "c"):
        put(cache, key, 10)
    cache.get("a")

    put(cache, "d", 10)

    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    assert cache.used_bytes == 30


async def test_what_is_larger_than_the_cache_is_given_to_who_waits_and_not_kept() -> None:
    cache: LoadingCache[str] = LoadingCache(30)
    put(cache, "small", 10)
    waiting = asyncio.shield(cache.begin("large"))

    cache.finish("large", "LARGE", 31)

    assert await waiting == "LARGE"
    assert cache.get("large") is None
    assert cache.used_bytes == 0


async def test_what_is_put_again_is_counted_once() -> None:
    cache: LoadingCache[str] = LoadingCache(100)

    cache.put("a", "A", 40)
    cache.put("a", "B", 50)

    assert cache.get("a") == "B"
    assert cache.used_bytes == 50


async def test_what_is_loaded_although_it_was_put_meanwhile_is_counted_once() -> None:
    cache: LoadingCache[str] = LoadingCache(100)
    cache.begin("a")

    cache.put("a", "A", 40)
    cache.finish("a", "A", 40)

    assert cache.used_bytes == 40


async def test_hits_and_misses_are_counted() -> None:
    cache: LoadingCache[str] = LoadingCache(100)
    assert cache.get("a") is None
    put(cache, "a", 1)

    cache.get("a")
    cache.get("a")

    assert (cache.hits, cache.misses) == (2, 1)
