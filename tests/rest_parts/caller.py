"""Calls of the REST API, each on a connection of its own, with the answers as they came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from node.wait import HUNG_SECONDS

API = "/api/v1"
MEMBER_SECRET = "Streamhouse-Member-Secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    content_type: str
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RestCaller:
    """Keeps the secrets of the members that it joined with, as callers must."""

    def __init__(self, endpoint: str) -> None:
        self._netloc = urlsplit(endpoint).netloc
        self._secrets: dict[str, str] = {}

    def call(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        """A path without a leading slash is below /api/v1; a body is sent as JSON."""
        connection = HTTPConnection(self._netloc, timeout=HUNG_SECONDS)
        try:
            data = None if body is None else json.dumps(body).encode()
            given = self.secret_for(path) | ({} if body is None else {"Content-Type": "application/json"})
            connection.request(
                method, path if path.startswith("/") else f"{API}/{path}", data, given | dict(headers or {})
            )
            response = connection.getresponse()
            return Answer(
                status=response.status,
                content_type=response.headers.get("Content-Type", ""),
                headers=response.headers,
                body=response.read(),
            )
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        return self._expect(200, "GET", path)

    def post(self, path: str, body: object, *, status: int = 200) -> Any:
        return self._expect(status, "POST", path, body)

    def patch(self, path: str, body: object) -> Any:
        return self._expect(200, "PATCH", path, body)

    def delete(self, path: str) -> None:
        self._expect(204, "DELETE", path)

    def refused(self, status: int, code: str, method: str, path: str, body: object = None) -> Any:
        """The problem document, which must be one."""
        answer = self.call(method, path, body)
        assert (answer.status, answer.content_type) == (status, "application/problem+json"), answer
        problem = answer.json
        assert (problem["status"], problem["code"]) == (status, code), problem
        assert problem["title"]
        assert problem["detail"]
        return problem

    def secret_for(self, path: str) -> dict[str, str]:
        """The header for a path of a member."""
        secrets = [secret for member, secret in self._secrets.items() if f"/members/{member}" in path]
        return {MEMBER_SECRET: secrets[0]} if secrets else {}

    def _expect(self, status: int, method: str, path: str, body: object = None) -> Any:
        answer = self.call(method, path, body)
        assert answer.status == status, answer
        said = answer.json if answer.body else None
        if isinstance(said, dict) and said.get("member_secret"):
            self._secrets[said["member_id"]] = said["member_secret"]
        return said
