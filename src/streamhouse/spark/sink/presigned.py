"""Objects to presigned URLs, for executors without keys of their own."""

from __future__ import annotations

from collections.abc import Sequence
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from streamhouse.client.planning import PlanningClient
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, InvalidInput, StorageUnavailable

_TIMEOUT_SECONDS = 60.0
_TAKEN = (409, 412)


def put_by_url(client: PlanningClient, key: str, parts: Sequence[Buffer]) -> None:
    """Ask a node for a URL to the object, and put it there."""
    (url,) = client.stage([key])
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url[:40]!r} is not a URL that can be written to", hint="write without presign")
    # Without a type of its own urllib says that it is a form, and S3 would hold that against the signature.
    headers = {"Content-Type": "application/octet-stream"}
    try:
        with urlopen(Request(url, b"".join(parts), headers, method="PUT"), timeout=_TIMEOUT_SECONDS) as answer:
            answer.read()
    except HTTPError as problem:
        if problem.code in _TAKEN:
            raise AlreadyExists(f"{key!r} exists") from None
        raise StorageUnavailable(f"a presigned URL cannot be written to: {problem}") from None
    except (OSError, HTTPException) as problem:
        raise StorageUnavailable(f"a presigned URL cannot be written to: {problem}") from None
