"""From a URL to an object store that is ready: there, and checked to be usable."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from streamhouse.model.errors import InvalidConfig, InvalidInput
from streamhouse.objects.checks import check_prefix
from streamhouse.objects.local import LocalStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.s3 import S3Options, S3Store
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock

_HINT = "use s3://bucket/prefix, file:///absolute/dir, file:relative/dir or memory:"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")


async def open_store(url: str, clock: Clock, s3: S3Options | None = None, *, probe: bool = True) -> ObjectStore:
    """`s3` is needed by s3:// URLs alone. `probe`: find out now if the store can be written and keeps its promises."""
    s3 = s3 or S3Options()
    check_store_url(url, s3)
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            return MemoryStore(clock)
        case "file":
            return LocalStore(_directory(url, rest), clock)
        case _:
            store = S3Store(*_bucket_and_prefix(url, rest), s3)
            if probe:
                await store.check()
            return store


def check_store_url(url: str, s3: S3Options) -> None:
    """InvalidConfig unless it names something that could be opened; nothing is asked or made."""
    scheme, separator, rest = url.partition(":")
    match scheme if separator else "":
        case "memory" if not rest.strip("/"):
            pass
        case "file":
            _directory(url, rest)
        case "s3":
            _bucket_and_prefix(url, rest)
            _check_s3_options(s3)
        case _:
            raise InvalidConfig(f"{url[:100]!r} is not an object store", hint=_HINT)


def objects_directory(url: str) -> Path | None:
    """Where a store of files keeps them."""
    scheme, _, rest = url.partition(":")
    return Path(_directory(url, rest)) if scheme == "file" else None


def _directory(url: str, rest: str) -> str:
    path = unquote(rest.removeprefix("//"))
    if not path or "\0" in path or (rest.startswith("//") and not path.startswith("/")):
        raise InvalidConfig(f"{url[:100]!r} does not name a directory", hint=_HINT)
    return path


def _bucket_and_prefix(url: str, rest: str) -> tuple[str, str]:
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not _BUCKET.fullmatch(bucket):
        raise InvalidConfig(f"{url[:100]!r} does not name an S3 bucket", hint=_HINT)
    try:
        return bucket, check_prefix(prefix).removesuffix("/")
    except InvalidInput as problem:
        raise InvalidConfig(
            f"the prefix of {url[:100]!r} is not usable: {problem.message}", hint=problem.hint
        ) from None


def _check_s3_options(options: S3Options) -> None:
    if not options.endpoint.startswith(("http://", "https://")) and options.endpoint:
        raise InvalidConfig(
            f"{options.endpoint[:100]!r} is not an S3 endpoint", hint="it starts with http:// or https://"
        )
    if options.access_key_id and not options.secret_access_key:
        raise InvalidConfig("the S3 access key has no secret", hint="give the secret access key too")
