"""The Python that the pages show runs, against a broker of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamhouse.testing import Broker

REPOSITORY = Path(__file__).parents[3]
_DEFAULT_ADDRESS = "127.0.0.1:9092"


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (REPOSITORY / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


README = python_blocks("README.md")
GETTING_STARTED = python_blocks("docs/getting-started.md")


def run(code: str, bootstrap: str = _DEFAULT_ADDRESS) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(code.replace(_DEFAULT_ADDRESS, bootstrap), "example", "exec"), names)
    return names


def test_the_pages_have_the_examples_that_are_run_here() -> None:
    assert [sorted(set(re.findall(r"confluent_kafka|aiokafka|Broker|spark|Client", code))) for code in README] == [
        ["confluent_kafka"],
        ["aiokafka"],
        ["Client"],
        ["spark"],  # run in tests/spark/test_readme.py
        ["Broker", "confluent_kafka"],
    ]
    assert len(GETTING_STARTED) == 2


@pytest.mark.parametrize(
    ("code", "printed"),
    [(README[0], "b'alice' b'hello'"), (README[1], "b'P-1' b'sent'"), (README[2], "alice 12.5")],
)
def test_the_clients_of_the_readme_read_what_they_wrote(
    code: str, printed: str, streamhouse_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    run(code, streamhouse_broker.bootstrap)
    assert capsys.readouterr().out.strip() == printed


def test_the_tests_of_the_readme_pass(streamhouse_broker: Broker) -> None:
    tests = run(README[4])
    tests["test_my_service_sends_an_order"](streamhouse_broker)  # type: ignore[operator]
    tests["test_my_service_survives_a_crash_of_the_broker"]()  # type: ignore[operator]


def test_the_broker_of_getting_started_keeps_what_it_was_sent() -> None:
    run(GETTING_STARTED[0])


def test_the_marker_of_getting_started_gives_its_settings() -> None:
    test = run(GETTING_STARTED[1])["test_large_orders_are_refused"]
    (marker,) = test.pytestmark  # type: ignore[attr-defined]
    with Broker(**marker.kwargs) as broker:
        assert broker.node.settings.max_message_bytes == 1000
        test(broker)  # type: ignore[operator]
