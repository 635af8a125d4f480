"""Proxies that break things on the way: one that speaks HTTP before an S3 server, one for any TCP server."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from node.wait import HUNG_SECONDS

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_CHUNK = 64 * 1024


class Fault(Enum):
    REFUSED_500 = "answered with 500, not done"
    REFUSED_503 = "answered with 503 SlowDown, not done"
    CUT_UPLOAD = "half of the body reaches the store, then both connections end"
    LOST_ANSWER = "done, but the connection ends instead of an answer"
    WRONG_ANSWER = "done, but answered with 500"
    HANG = "nothing is done and nothing is answered until the faults end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str


Rule = Callable[[Request], Fault | None]


class S3Proxy:
    """Stands before an S3 server; `rule` decides the fate of each request, None lets it pass."""

    def __init__(self, upstream: str) -> None:
        target = urlsplit(upstream)
        self.upstream = (target.hostname or "", target.port or 80)
        self.rule: Rule = lambda _: None
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._faults: list[tuple[Request, Fault]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def fail_next(self, fault: Fault, *, method: str = "PUT", count: int = 1) -> None:
        """The next `count` requests of that method meet the fault, all others pass."""
        left = iter(range(count))

        def rule(request: Request) -> Fault | None:
            return fault if request.method == method and next(left, None) is not None else None

        self.rule = rule

    def fail_all(self, fault: Fault, *, method: str = "PUT") -> None:
        self.released.clear()
        self.rule = lambda request: fault if request.method == method else None

    def heal(self) -> None:
        self.rule = lambda _: None
        self.released.set()

    @property
    def faults(self) -> list[tuple[Request, Fault]]:
        """What was broken so far."""
        with self._lock:
            return list(self._faults)

    def judge(self, request: Request) -> Fault | None:
        with self._lock:
            fault = self.rule(request)
            if fault is not None:
                self._faults.append((request, fault))
            return fault


def _handler_of(proxy: S3Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Without this, Nagle's algorithm adds 40 ms to each answer.
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: tests read `faults`."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, TimeoutError):
                self.close_connection = True

        def _serve(self) -> None:
            fault = proxy.judge(Request(method=self.command, path=self.path))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            match fault:
                case Fault.REFUSED_500:
                    self._answer(500, b"<Error><Code>InternalError</Code></Error>")
                case Fault.REFUSED_503:
                    self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
                case Fault.CUT_UPLOAD:
                    self._cut(body)
                case Fault.LOST_ANSWER:
                    self._forward(body)
                    self.close_connection = True
                case Fault.WRONG_ANSWER:
                    self._forward(body)
                    self._answer(500, b"<Error><Code>InternalError</Code></Error>")
                case Fault.HANG:
                    proxy.released.wait()
                    self.close_connection = True
                case None:
                    self._pass(*self._forward(body))

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def _forward(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
            upstream = http.client.HTTPConnection(*proxy.upstream, timeout=HUNG_SECONDS)
            try:
                self._send_head(upstream)
                upstream.send(body)
                response = upstream.getresponse()
                return response, response.read()
            finally:
                upstream.close()

        def _send_head(self, upstream: http.client.HTTPConnection) -> None:
            """Exactly as it came: the signature covers the headers, the host among them."""
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "expect":
                    upstream.putheader(name, value)
            upstream.endheaders()

        def _cut(self, body: bytes) -> None:
            upstream = http.client.HTTPConnection(*proxy.upstream, timeout=HUNG_SECONDS)
            self._send_head(upstream)
            upstream.send(body[: len(body) // 2])
            upstream.close()
            self.close_connection = True

        def _pass(self, response: http.client.HTTPResponse, content: bytes) -> None:
            self.send_response_only(response.status, response.reason)
            for name, value in response.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            # The answer to HEAD tells the size of a body that it does not have.
            size = response.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            if response.status != 204:
                self.send_header("Content-Length", size)
            self.end_headers()
            self.wfile.write(content)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response_only(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Type", "application/xml")
            self.end_headers()
            self.wfile.write(content)

    return Handler


class TcpProxy:
    """Carries bytes both ways until told otherwise."""

    def __init__(self, upstream: tuple[str, int], *, host: str = "127.0.0.1") -> None:
        self._upstream = upstream
        self._listener = socket.create_server((host, 0))
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._open = True
        self._refusing = False
        self._flowing = threading.Event()
        self._flowing.set()
        self._ways: set[threading.Event] = set()
        self._marker = b""
        self._answers_to_lose = 0
        self.lost_answers = 0

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._open = False
        self._listener.close()
        self.freeze(False)
        self.cut()

    def cut(self) -> None:
        """End every connection, as a network that goes away."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            for side in pair:
                _shut(side)

    def refuse(self, refusing: bool) -> None:
        """While refusing, connections end as they are made."""
        self._refusing = refusing

    def freeze(self, frozen: bool) -> None:
        """While frozen, connections are made and stay, and nothing comes through: what a lost network looks like."""
        if frozen:
            self._flowing.clear()
            return
        self._flowing.set()
        with self._lock:
            ways = list(self._ways)
        for flowing in ways:
            flowing.set()

    def hold(self) -> None:
        """Connections that are there stay and carry nothing more, without a word, until `freeze(False)`; new ones work:
        a peer, or something on the way to it, that has forgotten them."""
        with self._lock:
            for flowing in self._ways:
                flowing.clear()

    def lose_answers_to(self, marker: bytes, count: int) -> None:
        """What contains the marker still reaches the server; its answer does not come back, the connection ends."""
        with self._lock:
            self._marker = marker
            self._answers_to_lose = count

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                _end(client)
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._upstream, timeout=HUNG_SECONDS)
        except OSError:
            _end(client)
            return
        pair = (client, server)
        flowing = threading.Event()
        flowing.set()
        with self._lock:
            self._pairs.add(pair)
            self._ways.add(flowing)
        try:
            while self._carry_once(client, server, flowing):
                pass
        except OSError:
            pass
        finally:
            for side in pair:
                _end(side)
            with self._lock:
                self._pairs.discard(pair)
                self._ways.discard(flowing)

    def _carry_once(self, client: socket.socket, server: socket.socket, flowing: threading.Event) -> bool:
        # Not select(): a test process may have more than a thousand files open.
        poller = select.poll()
        for side in (client, server):
            poller.register(side, select.POLLIN)
        readable = {descriptor for descriptor, _ in poller.poll()}
        self._flowing.wait()
        flowing.wait()
        if client.fileno() in readable:
            sent = client.recv(_CHUNK)
            server.sendall(sent)
            if sent and self._loses_answer_to(sent):
                # Waiting for the answer makes sure that the server did what it was asked.
                server.recv(_CHUNK)
                return False
            return bool(sent)
        received = server.recv(_CHUNK)
        client.sendall(received)
        return bool(received)

    def _loses_answer_to(self, sent: bytes) -> bool:
        with self._lock:
            lost = self._answers_to_lose > 0 and self._marker in sent
            self._answers_to_lose -= lost
            self.lost_answers += lost
            return lost


def _shut(side: socket.socket) -> None:
    """Both directions end now; the thread that carries its bytes sees that and closes it."""
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _end(side: socket.socket) -> None:
    _shut(side)
    side.close()
