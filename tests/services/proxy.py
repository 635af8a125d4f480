"""A TCP proxy before a real server that loses requests or answers, stalls, or cuts its connections when told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class _Way:
    """Whether bytes of one connection flow to the server, and back from it."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self.there.set()
        self.back = asyncio.Event()
        self.back.set()


class Proxy:
    """Forwards bytes both ways. A loss closes the connection, and happens once for each time that it was asked for."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ways: set[_Way] = set()
        self._lost_requests: list[bytes] = []
        self._lost_answers: list[bytes] = []
        self.losses = 0
        self.connections = 0
        """Those that were ever made."""
        self.chunks: list[bytes] = []
        """What was sent to the server."""

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def before(self, url: str) -> str:
        """The same URL, but through this proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    def lose_request(self, containing: bytes) -> None:
        """The next one with these bytes never arrives."""
        self._lost_requests.append(containing)

    def lose_answer_to(self, containing: bytes) -> None:
        """The next request with these bytes arrives and is answered; the answer is not delivered."""
        self._lost_answers.append(containing)

    def pause(self) -> None:
        """Connections stay, bytes stop."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def hold(self) -> None:
        """Connections that are there stay and carry nothing more, without a word; new ones work."""
        for way in self._ways:
            way.there.clear()
            way.back.clear()

    def hold_answers(self) -> None:
        """The same, but what is sent over them still arrives."""
        for way in self._ways:
            way.back.clear()

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.resume()
        for way in self._ways:
            way.there.set()
            way.back.set()
        self.cut()
        await asyncio.gather(*self._tasks)

    async def _serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            server, requests = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            answers.transport.abort()
            return
        swallow = asyncio.Event()
        way = _Way()
        self._ways.add(way)
        self.connections += 1
        self._open |= {answers, requests}
        try:
            await asyncio.gather(
                self._send_requests(client, requests, answers, swallow, way),
                self._send_answers(server, requests, answers, swallow, way),
            )
        finally:
            self._open -= {answers, requests}
            self._ways.discard(way)

    async def _send_requests(
        self,
        client: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        answers: asyncio.StreamWriter,
        swallow: asyncio.Event,
        way: _Way,
    ) -> None:
        while chunk := await self._read(client, way.there):
            if _take(self._lost_requests, chunk):
                self.losses += 1
                break
            if _take(self._lost_answers, chunk):
                swallow.set()
            self.chunks.append(chunk)
            requests.write(chunk)
        requests.transport.abort()
        answers.transport.abort()

    async def _send_answers(
        self,
        server: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        answers: asyncio.StreamWriter,
        swallow: asyncio.Event,
        way: _Way,
    ) -> None:
        while chunk := await self._read(server, way.back):
            if swallow.is_set():
                self.losses += 1
                break
            answers.write(chunk)
        requests.transport.abort()
        answers.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, flowing: asyncio.Event) -> bytes:
        try:
            chunk = await reader.read(65_536)
        except OSError:
            return b""
        await self._flowing.wait()
        if not flowing.is_set():
            await flowing.wait()
            return b""
        return chunk


@asynccontextmanager
async def proxy_before(target_port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(target_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


def _take(wanted: list[bytes], chunk: bytes) -> bool:
    for pattern in wanted:
        if pattern in chunk:
            wanted.remove(pattern)
            return True
    return False
