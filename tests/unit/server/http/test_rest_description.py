"""The OpenAPI document and the docs page: what they say is what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from rest_parts.caller import RestCaller
from streamhouse.model import errors
from streamhouse.model.errors import StreamHouseError
from streamhouse.server.http.errors import JSON
from streamhouse.server.http.rest.docs_page import docs_page
from streamhouse.server.http.rest.openapi import openapi_document
from streamhouse.server.http.rest.registry import Operation
from streamhouse.testing import Broker
from streamhouse.wire.http.rest.problems import CODES, problem_of

METHODS = {"get", "post", "patch", "put", "delete"}


@pytest.fixture
def document(rest: RestCaller) -> Any:
    return rest.get("/openapi.json")


@pytest.fixture
def operations(broker: Broker) -> tuple[Operation, ...]:
    http = broker.node.doors.http
    assert http is not None
    assert http._rest is not None
    return http._rest.operations


def described(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def every_reference(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from every_reference(value)
    elif isinstance(part, list):
        for value in part:
            yield from every_reference(value)


def test_all_that_is_referred_to_is_there_and_all_that_is_there_is_referred_to(document: Any) -> None:
    names = {reference.removeprefix("#/components/schemas/") for reference in every_reference(document)}

    assert names == set(document["components"]["schemas"])


def test_every_operation_is_described(document: Any) -> None:
    found = list(described(document))

    assert {method for _, method, _ in found} <= METHODS
    assert len({operation["operationId"] for _, _, operation in found}) == len(found)
    for path, _, operation in found:
        assert operation["summary"]
        in_path = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))
        assert all(each["description"] for each in operation["parameters"]), (path, operation["parameters"])
        assert "application/problem+json" in operation["responses"]["default"]["content"]


def test_every_message_has_an_example(document: Any) -> None:
    """But for the document itself."""
    without = [
        (path, media_type)
        for path, method, operation in described(document)
        for part in (operation.get("requestBody", {}), *operation["responses"].values())
        for media_type, content in part.get("content", {}).items()
        if media_type == JSON and "example" not in content and path != "/openapi.json"
    ]

    assert without == []


def test_every_example_is_a_message_of_its_kind(operations: tuple[Operation, ...]) -> None:
    for operation in operations:
        for kind, example in ((operation.body, operation.body_example), (operation.answer, operation.answer_example)):
            if kind is not None and example is not None:
                assert msgspec.json.decode(msgspec.json.encode(example), type=kind) is not None


def test_every_path_there_is_answers_and_no_other(rest: RestCaller, document: Any) -> None:
    for path, methods in document["paths"].items():
        answer = rest.call("PROPFIND", path.replace("{partition}", "0").replace("{", "").replace("}", ""))
        assert answer.status == 405, path
        for method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
            assert (method in answer.headers["Allow"]) == (method.lower() in methods), (path, method)


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/topics/a/b/c", "/api", "/nothing"])
def test_a_path_there_is_not_is_a_problem(rest: RestCaller, path: str) -> None:
    rest.refused(404, "not-found", "GET", path)


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StreamHouseError)],
)
def test_every_error_is_a_problem_whose_kind_the_docs_page_explains(
    rest: RestCaller, kind: type[StreamHouseError]
) -> None:
    problem = problem_of(kind("it broke \ud800", hint="mend it"))

    assert problem.code in CODES
    assert (problem.detail, problem.hint) == ("it broke ?", "mend it")
    page, _, anchor = problem.type.partition("#")
    assert f'id="{anchor}"' in rest.call("GET", page).body.decode()


def test_the_docs_page_has_every_operation_and_loads_and_runs_nothing(rest: RestCaller, document: Any) -> None:
    answer = rest.call("GET", "/docs")
    page = answer.body.decode()

    assert answer.content_type == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for path, _, operation in described(document):
        assert path in page
        assert f'id="{operation["operationId"]}"' in page
    tags = _Tags()
    tags.feed(page)
    assert not tags.names & {"script", "link", "img", "iframe", "form"}
    assert tags.links == {"/openapi.json"}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str | None] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links |= {value for name, value in attrs if name in ("href", "src")}


def test_nothing_in_a_description_can_become_a_tag() -> None:
    async def nothing(_: object) -> None: ...

    hostile = "</pre><script>alert(1)</script>"
    page = docs_page(
        openapi_document(
            [
                Operation(
                    method="GET",
                    path=f"/{hostile}",
                    handle=nothing,
                    summary=hostile,
                    tag=hostile,
                    description=hostile,
                    answer=dict[str, str],
                    answer_example={hostile: hostile},
                )
            ]
        )
    )

    assert "<script" not in page


def test_a_fault_of_the_nodes_own_is_a_problem_that_tells_nothing_of_its_insides(
    broker: Broker, rest: RestCaller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a secret of the node")

    monkeypatch.setattr(type(broker.node.broker.topics), "look_up", fail)

    problem = rest.refused(500, "internal", "GET", "topics/orders/messages")

    assert "secret" not in str(problem)
    assert "a secret of the node" in caplog.text
