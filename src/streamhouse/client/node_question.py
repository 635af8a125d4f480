"""One question to what may be a node's HTTP port, and in words what is there instead if it is none."""

from __future__ import annotations

import asyncio
import re
import ssl
from urllib.parse import quote, urlsplit

import msgspec

from streamhouse.client.connection import silent_at
from streamhouse.model.errors import StreamHouseError, Unavailable
from streamhouse.wire.http.rest.cluster import NodeAnswer
from streamhouse.wire.http.rest.problems import CODES, Problem

HOW = "give --bootstrap with a node's Kafka or HTTP address; `streamhouse serve` starts one"
_PATH = "/api/v1/node"
_HTTP = b"HTTP/1."
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")
_MOST_BYTES = 2**20
_SHOWN_BYTES = 200


async def ask_node(url: str, timeout_ms: int) -> NodeAnswer:
    """What the node at a valid URL says of itself. Unavailable if none does: others may."""
    reader, writer = await _connected(url, timeout_ms)
    answer = bytearray()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            writer.write(_request(url))
            while chunk := await reader.read(_MOST_BYTES):
                answer += chunk
                if not answer.startswith(_HTTP[: len(answer)]) or len(answer) > _MOST_BYTES:
                    break
    except TimeoutError:
        if not answer:
            raise silent_at(url, timeout_ms) from None
    except OSError:
        pass  # what was said before tells enough
    finally:
        writer.close()
    return _understood(url, bytes(answer))


def nothing_at(address: object, why: str) -> Unavailable:
    return Unavailable(f"nothing answers at {address}{f': {why}' if why else ''}", hint=HOW)


async def _connected(url: str, timeout_ms: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            port = parts.port or (443 if is_secure else 80)
            return await asyncio.open_connection(parts.hostname, port, ssl=is_secure or None)
    except TimeoutError:
        raise nothing_at(url, f"no connection within {timeout_ms} ms") from None
    except ssl.SSLCertVerificationError as problem:
        raise Unavailable(
            f"{url} shows a certificate that this machine does not trust: {problem.verify_message}", hint=HOW
        ) from None
    except ssl.SSLError:
        raise Unavailable(f"what answers at {url} does not speak TLS", hint="write http://") from None
    except (OSError, UnicodeError) as problem:
        raise nothing_at(url, getattr(problem, "strerror", None) or str(problem)) from None


def _request(url: str) -> bytes:
    """Of HTTP 1.0, as then the end of the connection is the end of the answer."""
    parts = urlsplit(url)
    host, colon, port = parts.netloc.partition(":")
    host = host.encode("idna").decode() + colon + port
    return f"GET {quote(parts.path.rstrip('/'), safe='/%')}{_PATH} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()


def _understood(url: str, answer: bytes) -> NodeAnswer:
    head, _, content = answer.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        raise Unavailable(f"what answers at {url} is no HTTP server", hint=HOW)
    if status[1] != b"200":
        raise _refusal(url, status[1].decode(), content)
    try:
        return msgspec.json.decode(content, type=NodeAnswer)
    except msgspec.DecodeError as problem:
        raise _no_node(url, str(problem)) from None


def _refusal(url: str, status: str, content: bytes) -> StreamHouseError:
    """A node's own words as they are: it may be called by another name only, or be about to stop."""
    try:
        told = msgspec.json.decode(content, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = None
    if told is not None and told.code in CODES:
        return Unavailable(f"the node at {url}: {told.detail}", hint=told.hint)
    shown = content[:_SHOWN_BYTES].decode("utf-8", "replace").strip()
    return _no_node(url, f"it answered {status}: {shown}")


def _no_node(url: str, why: str) -> Unavailable:
    return Unavailable(f"what answers at {url} is an HTTP server and no StreamHouse node: {why}", hint=HOW)
