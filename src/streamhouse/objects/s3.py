"""Objects in an S3 bucket, through obstore, which must run on uvloop: on asyncio's own loop it can abort at exit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store as ObstoreS3

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, CorruptData, InvalidConfig, NotFound, StorageUnavailable
from streamhouse.objects.checks import check_key, check_prefix, check_range, check_suffix
from streamhouse.objects.patience import SLOWEST_RECEIVING, SLOWEST_SENDING, Patience
from streamhouse.objects.s3_refusals import S3Place, brief, explain
from streamhouse.objects.second_try import SecondTries
from streamhouse.objects.store import ObjectInfo
from streamhouse.runtime.entropy import new_uuid

if TYPE_CHECKING:
    from obstore import ListStream, SuffixRange
    from obstore.store import ClientConfig, RetryConfig, S3Config

    _Stream = ListStream[Sequence[obstore.ObjectMeta]]

T = TypeVar("T")

_LIST_BATCH = 1000
# The work of removing one object, in bytes that would take as long.
_DELETE_BYTES = 16 * 2**10
# Callers retry with a backoff of their own and must hear soon: one quick second try covers a dropped connection.
_RETRIES: RetryConfig = {"max_retries": 1, "retry_timeout": timedelta(seconds=10)}
_CONNECT_TIMEOUT = timedelta(seconds=5)
# How long a request may take is a matter of what is under way (patience.py); this is beyond it.
_REQUEST_TIMEOUT = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """How to reach the bucket's server; an empty text leaves it to AWS's defaults."""

    endpoint: str = ""
    region: str = "us-east-1"
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    path_style: bool = True


class S3Store:
    """Requests go over kept connections. One that takes longer than it should is tried again beside itself, over a
    connection of its own: those that are kept may all have died with the first one's."""

    def __init__(self, bucket: str, prefix: str, options: S3Options) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._options = options
        self._place = S3Place(
            bucket=bucket, endpoint=options.endpoint, region=options.region, has_keys=bool(options.access_key_id)
        )
        self._pooled = self._connect()
        self._fresh = self._connect(keeps_connections=False)
        self._sending = SecondTries(SLOWEST_SENDING)
        self._receiving = SecondTries(SLOWEST_RECEIVING)

    def _connect(self, *, keeps_connections: bool = True) -> ObstoreS3:
        options = self._options
        config: S3Config = {
            "region": options.region,
            "virtual_hosted_style_request": not options.path_style,
            "conditional_put": "etag",
        }
        if options.endpoint:
            config["endpoint"] = options.endpoint
        if options.access_key_id:
            config["access_key_id"] = options.access_key_id
            config["secret_access_key"] = options.secret_access_key
        if options.session_token:
            config["session_token"] = options.session_token
        client: ClientConfig = {
            "allow_http": options.endpoint.startswith("http://"),
            "connect_timeout": _CONNECT_TIMEOUT,
            "timeout": _REQUEST_TIMEOUT,
        }
        if not keeps_connections:
            client["pool_max_idle_per_host"] = "0"
        try:
            return ObstoreS3(
                self._bucket, prefix=self._prefix or None, config=config, client_options=client, retry_config=_RETRIES
            )
        except (BaseError, ValueError) as problem:
            raise InvalidConfig(f"cannot use the S3 bucket {self._bucket!r}: {brief(str(problem))}") from None

    async def check(self) -> None:
        """That the bucket is there, that we may use it, and that its server keeps what we build on: create-only."""
        try:
            async for _ in self._list_chunks("", chunk_size=1):
                break
        except StorageUnavailable as problem:
            raise StorageUnavailable(
                problem.message,
                hint=problem.hint
                or f"is {self._place.server} the right endpoint, does bucket {self._bucket!r} exist, and may these "
                "keys use it?",
                is_unanswered=problem.is_unanswered,
            ) from None
        probe = f"probe/{new_uuid()}"
        try:
            for _ in range(2):
                await self.create(probe, [b"streamhouse"])
        except AlreadyExists:
            pass
        else:
            raise InvalidConfig(
                f"the S3 server of bucket {self._bucket!r} ignores If-None-Match, so objects could be overwritten",
                hint="use a server with conditional writes",
            )
        finally:
            await self.delete([probe])

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        # Create-only exists for single PUTs alone, and those want one buffer.
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        check_key(key)

        async def put(client: ObstoreS3, _: Patience) -> None:
            await obstore.put_async(client, key, content, mode="create", use_multipart=False)

        try:
            await self._ask(f"cannot store object {key!r}", put, len(content), self._sending)
        except NotFound as problem:
            raise StorageUnavailable(f"cannot store object {key!r}", hint="does the bucket exist?") from problem

    async def get(self, key: str) -> bytes:
        check_key(key)

        async def read(client: ObstoreS3, patience: Patience) -> bytes:
            answer = await obstore.get_async(client, key)
            patience.expect(answer.meta["size"])
            return (await answer.bytes_async()).to_bytes()

        return await self._ask(f"cannot read object {key!r}", read)

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        check_range(start, end)
        if start == end:  # which HTTP cannot ask for
            if (await self.head(key)).size_bytes >= end:
                return b""
        else:
            try:
                content, _ = await self._get_part(key, (start, end), end - start)
                if len(content) == end - start:
                    return content
            except StorageUnavailable:
                # A start beyond the end is an error to S3, and to obstore it is like any other.
                if (await self.head(key)).size_bytes >= end:
                    raise
        raise CorruptData(f"object {key!r} does not have the range [{start}, {end})")

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        check_suffix(size_bytes)
        if size_bytes == 0:
            return b"", (await self.head(key)).size_bytes
        try:
            return await self._get_part(key, {"suffix": size_bytes}, size_bytes)
        except StorageUnavailable:
            # An empty object has no last byte, which is an error to S3.
            if (await self.head(key)).size_bytes:
                raise
            return b"", 0

    async def head(self, key: str) -> ObjectInfo:
        check_key(key)

        async def look(client: ObstoreS3, _: Patience) -> ObjectInfo:
            return _describe(await obstore.head_async(client, key))

        return await self._ask(f"cannot look at object {key!r}", look)

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        async for chunk in self._list_chunks(prefix, _LIST_BATCH):
            for found in chunk:
                yield _describe(found)

    async def delete(self, keys: Sequence[str]) -> None:
        checked = [check_key(key) for key in keys]

        async def remove(client: ObstoreS3, _: Patience) -> None:
            await obstore.delete_async(client, checked)

        await self._ask("cannot delete objects", remove, len(checked) * _DELETE_BYTES)

    async def sign(self, method: Literal["GET", "PUT"], keys: Sequence[str], lifetime_s: int) -> Sequence[str]:
        """See `store.Presigner`."""
        with _our_errors("cannot sign URLs", self._place):
            return await obstore.sign_async(
                self._pooled, method, [check_key(key) for key in keys], timedelta(seconds=lifetime_s)
            )

    async def close(self) -> None:
        """obstore closes its idle connections by itself."""

    async def _get_part(self, key: str, part: tuple[int, int] | SuffixRange, size_bytes: int) -> tuple[bytes, int]:
        """The bytes that are there, and the object's whole size."""
        check_key(key)

        async def read(client: ObstoreS3, _: Patience) -> tuple[bytes, int]:
            answer = await obstore.get_async(client, key, options={"range": part})
            return (await answer.bytes_async()).to_bytes(), answer.meta["size"]

        return await self._ask(f"cannot read object {key!r}", read, size_bytes)

    async def _list_chunks(self, prefix: str, chunk_size: int) -> AsyncIterator[Sequence[obstore.ObjectMeta]]:
        """A second try for the next page begins behind the last one, and is what goes on if it is sooner."""
        inside = check_prefix(prefix) or None
        last: str | None = None
        stream = obstore.list(self._pooled, inside, chunk_size=chunk_size)

        async def turn_page(client: ObstoreS3, _: Patience) -> tuple[_Stream, Sequence[obstore.ObjectMeta]]:
            is_second = client is self._fresh
            pages = obstore.list(client, inside, offset=last, chunk_size=chunk_size) if is_second else stream
            try:
                return pages, await anext(pages)
            except StopAsyncIteration:
                return pages, ()

        while True:
            stream, chunk = await self._ask(f"cannot list {prefix!r}", turn_page)
            if not chunk:
                return
            last = chunk[-1]["path"]
            yield chunk

    async def _ask(
        self,
        what: str,
        request: Callable[[ObstoreS3, Patience], Coroutine[Any, Any, T]],
        size_bytes: int = 0,
        direction: SecondTries | None = None,
    ) -> T:
        """`what`: how an error begins."""

        async def attempt(client: ObstoreS3, patience: Patience) -> T:
            with _our_errors(what, self._place):
                return await request(client, patience)

        pooled = self._pooled
        with _our_errors(what, self._place):
            return await (direction or self._receiving).ask(
                partial(attempt, pooled),
                partial(attempt, self._fresh),
                size_bytes,
                outrun=partial(self._abandon, pooled),
            )

    def _abandon(self, pooled: ObstoreS3) -> None:
        """Whatever it keeps may be as dead as the connection that was outrun."""
        if self._pooled is pooled:
            self._pooled = self._connect()


def _describe(found: obstore.ObjectMeta) -> ObjectInfo:
    modified_at_ms = round(found["last_modified"].timestamp() * 1000)
    return ObjectInfo(key=found["path"], size_bytes=found["size"], modified_at_ms=modified_at_ms)


@contextmanager
def _our_errors(what: str, place: S3Place) -> Iterator[None]:
    """What an operator can mend is said first, and what S3 said behind it."""
    try:
        yield
    except AlreadyExistsError as problem:
        raise AlreadyExists(f"{what}: it exists") from problem
    except FileNotFoundError as problem:
        # A missing bucket is the operator's trouble, not an object that is gone.
        if "NoSuchBucket" in str(problem):
            raise _refusal(problem, what, place) from problem
        raise NotFound(f"{what}: there is none") from problem
    except (BaseError, OSError) as problem:
        raise _refusal(problem, what, place) from problem


def _refusal(problem: Exception, what: str, place: S3Place) -> StorageUnavailable:
    said = str(problem) or type(problem).__name__
    reason = explain(said, place)
    if reason is None:
        return StorageUnavailable(f"{what}: {brief(said)}", is_unanswered=isinstance(problem, TimeoutError))
    return StorageUnavailable(reason, hint=f"{what}: {brief(said)}")
