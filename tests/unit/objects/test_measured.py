"""What a measured store counts; that it is a store is for the behaviour suite to show."""

from __future__ import annotations

import pytest

from services.clock import ManualClock
from services.seaweed import S3Bucket
from streamhouse.model.errors import AlreadyExists, NotFound, StorageUnavailable
from streamhouse.objects.faulty import FaultyStore, Operation
from streamhouse.objects.measured import measured
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.open import open_store
from streamhouse.objects.s3 import S3Options
from streamhouse.objects.store import Presigner


async def test_requests_and_bytes_are_counted_by_what_was_asked() -> None:
    store = measured(MemoryStore(ManualClock()))
    await store.create("a/b", [b"12345", b"678"])
    await store.get("a/b")
    await store.get_range("a/b", 2, 4)
    await store.get_suffix("a/b", 3)
    await store.head("a/b")
    assert [info.key async for info in store.list("a")] == ["a/b"]
    await store.delete(["a/b"])
    measures = store.measures
    assert measures.answered == {"put": 1, "get": 3, "head": 1, "list": 1, "delete": 1}
    assert measures.failed.total() == 0
    assert (measures.put_bytes, measures.got_bytes) == (8, 8 + 2 + 3)
    assert {name: seconds.count for name, seconds in measures.seconds.items()} == {
        "put": 1,
        "get": 3,
        "head": 1,
        "list": 0,
        "delete": 1,
    }


async def test_a_refusal_is_an_answer_and_only_what_is_worth_a_retry_has_failed() -> None:
    faulty = FaultyStore(MemoryStore(ManualClock()), ManualClock())
    store = measured(faulty)
    await store.create("a", [b"1"])
    with pytest.raises(AlreadyExists):
        await store.create("a", [b"2"])
    with pytest.raises(NotFound):
        await store.get("missing")
    faulty.fail(Operation.CREATE)
    with pytest.raises(StorageUnavailable):
        await store.create("b", [b"3"])
    faulty.fail(Operation.LIST)
    with pytest.raises(StorageUnavailable):
        assert [info async for info in store.list("")]
    assert store.measures.answered == {"put": 2, "get": 1, "head": 0, "list": 0, "delete": 0}
    assert store.measures.failed == {"put": 1, "get": 0, "head": 0, "list": 1, "delete": 0}
    assert store.measures.put_bytes == 1


async def test_a_store_that_gives_out_urls_still_does_and_others_still_do_not(s3_bucket: S3Bucket) -> None:
    options = S3Options(
        endpoint=s3_bucket.endpoint,
        region=s3_bucket.region,
        access_key_id=s3_bucket.access_key_id,
        secret_access_key=s3_bucket.secret_access_key,
        path_style=True,
    )
    inner = await open_store(s3_bucket.url, ManualClock(), options)
    store = measured(inner)
    assert isinstance(store, Presigner)
    (url,) = await store.sign("GET", ["a/b"], 60)
    assert url.startswith(s3_bucket.endpoint)
    await store.close()
    assert not isinstance(measured(MemoryStore(ManualClock())), Presigner)
