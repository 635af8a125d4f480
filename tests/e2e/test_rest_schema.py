"""The REST API against its own OpenAPI document: schemathesis makes requests that it allows and requests that it does
not, and looks whether the answers are what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case, CheckContext, GenerationMode, Response
from schemathesis.checks import load_all_checks, positive_data_acceptance
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from node.wait import HUNG_SECONDS
from rest_parts.caller import RestCaller
from rest_parts.sending import send
from streamhouse.testing import Broker

EXAMPLES = 6
SEED = 20_260_101
# Each may take as long as it is asked to, and as there is room for: not what is looked at here.
LIMITS = {"max_wait_ms": 20, "partition_count": 8}
ENDLESS = "/api/v1/topics/{topic}/stream"
"""It answers for as long as somebody listens, and has tests of its own."""

Operation = APIOperation[Any, Any, Any, Any]

load_all_checks()


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Without topics: what is made up is not there by chance, to be waited for."""
    with Broker(http=True, auto_create_topics=False, group_initial_rebalance_delay=0) as broker:
        yield broker


@pytest.fixture
def operations(broker: Broker) -> list[Operation]:
    document = RestCaller(broker.endpoint).get("/openapi.json")
    found = [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations() if _is_ok(result)]
    described = sum(len(methods) for methods in document["paths"].values())
    assert len(found) == described > 25
    return [operation for operation in found if operation.path != ENDLESS]


def _is_ok(result: object) -> bool:
    assert isinstance(result, Ok), result
    return True


def what_is_allowed_is_understood(ctx: CheckContext, response: Response, case: Case) -> None:
    """It may still ask for what cannot be, such as an unknown config or an offset that is gone: there are other codes
    for that."""
    del ctx
    meta = case.meta
    if meta is not None and meta.generation.mode is GenerationMode.POSITIVE and response.status_code == 400:
        assert response.json()["code"] != "malformed-request", (case.as_curl_command(), response.text)


def test_requests_about_anything_are_answered_as_described(broker: Broker, operations: list[Operation]) -> None:
    for operation in operations:
        _ask(broker, operation, GenerationMode.POSITIVE, {})


def test_requests_about_what_there_is_are_answered_as_described(broker: Broker, operations: list[Operation]) -> None:
    rest = RestCaller(broker.endpoint)
    for operation in operations:
        if len(operation.path_parameters):
            _ask(broker, operation, GenerationMode.POSITIVE, _known(operation, broker, rest))


def test_requests_that_are_not_allowed_are_refused_as_described(broker: Broker, operations: list[Operation]) -> None:
    """For what they ask in their query or body: any text is allowed as a name in a path."""
    rest = RestCaller(broker.endpoint)
    for operation in operations:
        if len(operation.query) or len(operation.body):
            _ask(broker, operation, GenerationMode.NEGATIVE, _known(operation, broker, rest))


def test_the_examples_are_requests_that_are_understood(broker: Broker, operations: list[Operation]) -> None:
    rest = RestCaller(broker.endpoint)
    shown = 0
    for operation in operations:
        raw = operation.definition.raw
        content = raw.get("requestBody", {}).get("content", {}).get("application/json", {})
        if "requestBody" in raw:
            assert "example" in content, f"{operation.label} shows no example"
            path = operation.path.format_map(_something_of_each(broker, rest))
            answer = rest.call(operation.method.upper(), path, content["example"])
            assert answer.status < 500, (operation.label, answer)
            assert answer.status != 400 or answer.json["code"] != "malformed-request", (operation.label, answer)
            shown += 1
    assert shown >= 8


def _ask(broker: Broker, operation: Operation, mode: GenerationMode, path: dict[str, object]) -> None:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode, path_parameters=path or None))
    def ask(case: Case) -> None:
        if mode is GenerationMode.POSITIVE:
            case.query = _as_people_write_it(case.query)
            case.body = _as_people_write_it(case.body)
        case.call_and_validate(
            base_url=broker.endpoint,
            additional_checks=[what_is_allowed_is_understood],
            excluded_checks=[positive_data_acceptance],
            timeout=HUNG_SECONDS,
        )

    ask()


def _as_people_write_it(value: Any) -> Any:
    """Within the limits; and with 3 for the 3.0 that JSON Schema calls an integer, too, and that nothing writes."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_as_people_write_it(each) for each in value]
        case dict():
            written = {name: _as_people_write_it(each) for name, each in value.items()}
            return written | {name: min(written[name], most) for name, most in LIMITS.items() if _is_int(written, name)}
    return value


def _is_int(values: dict[str, Any], name: str) -> bool:
    return isinstance(values.get(name), int)


def _known(operation: Operation, broker: Broker, rest: RestCaller) -> dict[str, object]:
    known = _something_of_each(broker, rest)
    return {parameter.name: known[parameter.name] for parameter in operation.path_parameters}


def _something_of_each(broker: Broker, rest: RestCaller) -> dict[str, object]:
    """New ones each time: what is asked may be to delete them."""
    topic, group = f"topic-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    send(broker, topic, partition=0, count=3)
    broker.flush()
    member = rest.post(f"groups/{group}/members", {"topics": [topic], "reset": "earliest"}, status=201)
    return {
        "topic": topic,
        "partition": 0,
        "base_offset": 0,
        "group": group,
        "member": member["member_id"],
        # Not the broker's own: once that is drained nobody leads what the other operations are about.
        "agent_id": "nobody",
    }
