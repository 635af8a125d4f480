"""What a client needs of a generated message module: its key and one codec each way."""

from __future__ import annotations

from typing import Protocol, TypeVar

from streamhouse.model.buffer import Buffer

Request = TypeVar("Request", contravariant=True)
Response = TypeVar("Response", covariant=True)


class Messages(Protocol[Request, Response]):
    """Satisfied by the modules of `streamhouse.wire.kafka.messages`, so that a call's types follow from its module."""

    @property
    def API_KEY(self) -> int: ...

    def encode_request(self, message: Request, version: int, /) -> list[Buffer]: ...

    def decode_response(self, buf: memoryview, pos: int, end: int, version: int, /) -> Response: ...
