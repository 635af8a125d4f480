"""A TCP proxy before a real server that loses requests or answers, stalls, or cuts its connections when told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Proxy:
    """Forwards bytes both ways. A loss closes the connection, and happens once for each time that it was asked for."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._lost_requests: list[bytes] = []
        self._lost_answers: list[bytes] = []
        self.losses = 0

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

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.resume()
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
        self._open |= {answers, requests}
        try:
            await asyncio.gather(
                self._send_requests(client, requests, answers, swallow),
                self._send_answers(server, requests, answers, swallow),
            )
        finally:
            self._open -= {answers, requests}

    async def _send_requests(
        self,
        client: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        answers: asyncio.StreamWriter,
        swallow: asyncio.Event,
    ) -> None:
        while chunk := await self._read(client):
            if _take(self._lost_requests, chunk):
                self.losses += 1
                break
            if _take(self._lost_answers, chunk):
                swallow.set()
            requests.write(chunk)
        requests.transport.abort()
        answers.transport.abort()

    async def _send_answers(
        self,
        server: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        answers: asyncio.StreamWriter,
        swallow: asyncio.Event,
    ) -> None:
        while chunk := await self._read(server):
            if swallow.is_set():
                self.losses += 1
                break
            answers.write(chunk)
        requests.transport.abort()
        answers.transport.abort()

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            chunk = await reader.read(65_536)
        except OSError:
            return b""
        await self._flowing.wait()
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
