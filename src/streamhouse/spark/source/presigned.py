"""Ranges of objects from presigned URLs, for executors without keys of their own."""

from __future__ import annotations

from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from streamhouse.model.errors import CorruptData, InvalidInput, NotFound, StorageUnavailable

_TIMEOUT_SECONDS = 60.0
_PARTIAL_CONTENT = 206
# An URL that has expired is as good as an object that is gone: both are found again by planning again.
_GONE = (403, 404, 410)


def get_url_range(url: str, start: int, end: int) -> bytes:
    """Bytes [start, end); NotFound if the URL leads nowhere, or no longer."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url[:40]!r} is not a URL that can be read from", hint="read without presign")
    request = Request(url, headers={"Range": f"bytes={start}-{end - 1}"})
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
            is_partial = answer.status == _PARTIAL_CONTENT
    except HTTPError as problem:
        if problem.code in _GONE:
            raise NotFound(f"a presigned URL cannot be read: {problem}") from None
        raise StorageUnavailable(f"a presigned URL cannot be read: {problem}") from None
    except (OSError, HTTPException) as problem:
        raise StorageUnavailable(f"a presigned URL cannot be read: {problem}") from None
    # A server may ignore the range and send everything.
    content = content if is_partial else content[start:end]
    if len(content) != end - start:
        raise CorruptData(f"a presigned URL gave {len(content)} bytes of [{start}, {end})")
    return content
