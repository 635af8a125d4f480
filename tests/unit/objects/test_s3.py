"""The S3 store's own faults: a bucket that is not there, keys that are refused, a server that goes away or cheats."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from behaviour.object_stores import s3_options
from services.clock import ManualClock
from services.proxy import Proxy, proxy_before
from services.seaweed import SECRET_ACCESS_KEY, S3Bucket, SeaweedServer
from streamhouse.model.errors import AlreadyExists, InvalidConfig, NotFound, StorageUnavailable
from streamhouse.objects import patience
from streamhouse.objects.open import open_store
from streamhouse.objects.s3 import S3Options, S3Store
from streamhouse.objects.store import ObjectStore

T = TypeVar("T")

FORMER_TIMEOUT_S = 60
"""What any request waited when its connection was dead."""


async def test_a_bucket_that_does_not_exist_is_said_at_open(s3_bucket: S3Bucket) -> None:
    with pytest.raises(StorageUnavailable, match=r"^there is no bucket 'no-such-bucket' at http://.* \(cannot list ''"):
        await open_store("s3://no-such-bucket/x", ManualClock(), s3_options(s3_bucket))


async def test_keys_that_are_refused_are_said_at_open_without_the_secret(s3_bucket: S3Bucket) -> None:
    for wrong in (
        replace(s3_options(s3_bucket), access_key_id="nobody"),
        replace(s3_options(s3_bucket), secret_access_key="hunter2-wrong"),
    ):
        with pytest.raises(StorageUnavailable, match=r"^S3 refuses these keys: ") as caught:
            await open_store(s3_bucket.url, ManualClock(), wrong)
        for secret in (SECRET_ACCESS_KEY, "hunter2"):
            assert secret not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


async def test_nobody_at_the_endpoint_is_said_at_open(s3_bucket: S3Bucket) -> None:
    options = replace(s3_options(s3_bucket), endpoint="http://127.0.0.1:1")
    with pytest.raises(StorageUnavailable, match=r"^nobody answers at http://127\.0\.0\.1:1: is S3 running"):
        await open_store(s3_bucket.url, ManualClock(), options)


async def test_opening_leaves_nothing_in_the_bucket(s3_bucket: S3Bucket) -> None:
    store = await open_store(s3_bucket.url, ManualClock(), s3_options(s3_bucket))
    assert [info.key async for info in store.list("")] == []


async def test_stores_of_different_prefixes_do_not_see_one_another(s3_bucket: S3Bucket) -> None:
    options = s3_options(s3_bucket)
    one = await open_store(f"{s3_bucket.url}/one", ManualClock(), options)
    two = await open_store(f"{s3_bucket.url}/two/deep/", ManualClock(), options)
    whole = await open_store(s3_bucket.url, ManualClock(), options)
    await one.create("key", [b"1"])
    await two.create("key", [b"2"])
    assert (await one.get("key"), await two.get("key")) == (b"1", b"2")
    assert [info.key async for info in one.list("")] == ["key"]
    assert [info.key async for info in whole.list("")] == ["one/key", "two/deep/key"]
    await one.delete(["key"])
    assert await two.get("key") == b"2"


async def test_a_bucket_that_vanishes_is_not_a_missing_object(s3_server: SeaweedServer) -> None:
    bucket = s3_server.create_bucket()
    store = await open_store(bucket.url, ManualClock(), s3_options(bucket))
    s3_server.delete_bucket(bucket)
    for call in (store.get("a"), store.create("a", [b"x"])):
        with pytest.raises(StorageUnavailable):
            await call


async def until_available(call: Callable[[], Awaitable[T]]) -> T:
    """As callers do: a server that has just started may refuse a little longer."""
    while True:
        try:
            return await call()
        except StorageUnavailable:
            await asyncio.sleep(0.05)


async def test_a_server_that_goes_away_is_unavailable_and_then_back(stoppable_s3: SeaweedServer) -> None:
    bucket = stoppable_s3.create_bucket()
    store = await open_store(bucket.url, ManualClock(), s3_options(bucket))
    await store.create("a", [b"kept"])
    stoppable_s3.stop()
    for call in (
        store.create("b", [b"x"]),
        store.get("a"),
        store.get_range("a", 0, 1),
        store.get_suffix("a", 1),
        store.head("a"),
        store.delete(["a"]),
    ):
        with pytest.raises(StorageUnavailable):
            await call
    with pytest.raises(StorageUnavailable):
        [info async for info in store.list("")]
    stoppable_s3.start()
    assert await until_available(lambda: store.get("a")) == b"kept"
    await until_available(lambda: store.create("b", [b"x"]))
    assert await store.get("b") == b"x"


async def test_a_server_that_does_not_answer_is_unavailable_in_bounded_time(
    s3_bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy_before(urlsplit(s3_bucket.endpoint).port or 80) as proxy:
        options = replace(s3_options(s3_bucket), endpoint=f"http://127.0.0.1:{proxy.port}")
        store = await open_store(s3_bucket.url, ManualClock(), options)
        monkeypatch.setattr(patience, "_SECOND_TRY_S", 0.1)
        monkeypatch.setattr(patience, "_LIMIT_S", 0.3)
        proxy.pause()
        with pytest.raises(StorageUnavailable):
            await store.create("a", [b"x"])
        proxy.resume()


@asynccontextmanager
async def store_behind_proxy(s3_bucket: S3Bucket) -> AsyncIterator[tuple[ObjectStore, Proxy]]:
    """A store whose pool has a few connections, and what they lead through."""
    async with proxy_before(urlsplit(s3_bucket.endpoint).port or 80) as proxy:
        options = replace(s3_options(s3_bucket), endpoint=f"http://127.0.0.1:{proxy.port}")
        store = await open_store(s3_bucket.url, ManualClock(), options)
        await store.create("before", [b"content"])
        await asyncio.gather(*(store.get("before") for _ in range(4)))
        yield store, proxy


@pytest.mark.parametrize("operation", ["create", "get", "get_range", "get_suffix", "head", "list", "delete"])
async def test_connections_that_died_without_a_word_cost_seconds_once(s3_bucket: S3Bucket, operation: str) -> None:
    async with store_behind_proxy(s3_bucket) as (store, proxy):
        proxy.hold()
        begun = time.monotonic()
        match operation:
            case "create":
                await store.create("new", [b"a", b"b"])
                assert await store.get("new") == b"ab"
            case "get":
                assert await store.get("before") == b"content"
            case "get_range":
                assert await store.get_range("before", 1, 3) == b"on"
            case "get_suffix":
                assert await store.get_suffix("before", 3) == (b"ent", 7)
            case "head":
                assert (await store.head("before")).size_bytes == 7
            case "list":
                assert [info.key async for info in store.list("")] == ["before"]
            case "delete":
                await store.delete(["before"])
                assert [info.key async for info in store.list("")] == []
        # None of the other dead connections is met after that.
        await asyncio.gather(*(store.create(f"after-{number}", [b"x"]) for number in range(8)))
        assert time.monotonic() - begun < FORMER_TIMEOUT_S / 2


async def test_a_list_goes_on_where_its_connection_died(s3_bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    async with store_behind_proxy(s3_bucket) as (store, proxy):
        keys = [f"many/{number:04}" for number in range(1_010)]  # S3 gives a thousand at a time
        with monkeypatch.context() as patient:
            # A second try beside a slow first one would find its own key taken.
            patient.setattr(patience, "_SECOND_TRY_S", 60.0)
            for start in range(0, len(keys), 100):
                await asyncio.gather(*(store.create(key, [b"x"]) for key in keys[start : start + 100]))
        found = []
        async for info in store.list("many"):
            if not found:
                proxy.hold()
            found.append(info.key)
        assert found == keys


async def test_a_put_that_arrived_over_a_connection_that_died_then_is_known_as_taken(s3_bucket: S3Bucket) -> None:
    """The second try finds the key taken, by the first: whoever creates compares, as after any lost answer."""
    async with store_behind_proxy(s3_bucket) as (store, proxy):
        proxy.hold_answers()
        with pytest.raises(AlreadyExists):
            await store.create("new", [b"content"])
        assert await store.get("new") == b"content"


async def test_as_long_as_the_store_answers_nothing_is_asked_twice(
    s3_bucket: S3Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_SECOND_TRY_S", 60.0)  # it answers in time, however busy the machine is
    async with store_behind_proxy(s3_bucket) as (store, proxy):
        proxy.chunks.clear()
        connections = proxy.connections
        for number in range(20):
            await store.create(f"key-{number}", [b"x" * 1_000])
            assert await store.get_range(f"key-{number}", 0, 1_000) == b"x" * 1_000
        requests = [chunk.split(b" ", 1)[0] for chunk in proxy.chunks if chunk.startswith((b"PUT ", b"GET "))]
        assert requests == [b"PUT", b"GET"] * 20
        assert proxy.connections == connections


async def test_a_put_whose_answer_is_lost_has_stored_the_object_whole(s3_bucket: S3Bucket) -> None:
    content = b"x" * 100_000
    async with proxy_before(urlsplit(s3_bucket.endpoint).port or 80) as proxy:
        options = replace(s3_options(s3_bucket), endpoint=f"http://127.0.0.1:{proxy.port}")
        store = await open_store(s3_bucket.url, ManualClock(), options)
        proxy.lose_answer_to(b"PUT ")
        # The client may have tried again by itself: then the key is taken, by ourselves.
        with pytest.raises((AlreadyExists, StorageUnavailable)):
            await store.create("a", [content])
        assert proxy.losses == 1
        assert await store.get("a") == content


async def test_a_put_that_is_cut_off_in_the_middle_leaves_nothing(s3_bucket: S3Bucket) -> None:
    async with proxy_before(urlsplit(s3_bucket.endpoint).port or 80) as proxy:
        options = replace(s3_options(s3_bucket), endpoint=f"http://127.0.0.1:{proxy.port}")
        store = await open_store(s3_bucket.url, ManualClock(), options)
        for _ in range(2):
            proxy.lose_request(b"MIDDLE")
        with pytest.raises(StorageUnavailable):
            await store.create("a", [b"x" * 1_000_000, b"MIDDLE", b"y" * 1_000_000])
        with pytest.raises(NotFound):
            await store.get("a")
        await store.create("a", [b"whole"])
        assert await store.get("a") == b"whole"


class CheatingServer(BaseHTTPRequestHandler):
    """Says yes to every PUT, as S3 servers do that do not know conditional writes."""

    def do_GET(self) -> None:
        self._answer(b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer(b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._answer(b"<DeleteResult><Deleted><Key>probe</Key></Deleted></DeleteResult>")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def cheating_endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), CheatingServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_a_server_that_ignores_conditions_is_refused_at_open(cheating_endpoint: str) -> None:
    options = S3Options(endpoint=cheating_endpoint, access_key_id="a", secret_access_key="b")
    with pytest.raises(InvalidConfig, match="ignores If-None-Match"):
        await open_store("s3://bucket", ManualClock(), options)


def test_options_do_not_show_their_secrets() -> None:
    options = S3Options(access_key_id="id", secret_access_key="hunter2", session_token="token-hunter3")
    assert "hunter" not in repr(options)
    assert "id" in repr(options)
    assert "hunter" not in repr(S3Store("bucket", "", options))
