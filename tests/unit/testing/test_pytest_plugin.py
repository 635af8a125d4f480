"""The fixture that other projects use, with and without its marker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from log_parts.kafka import Kafka
from streamhouse.testing import Broker


def test_the_fixture_is_a_broker_that_runs(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders")
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        assert kafka.produce_values("orders", b"hello") == 0


@pytest.mark.streamhouse(durable=True, default_partitions=7)
def test_the_marker_gives_settings_to_the_broker(streamhouse_broker: Broker) -> None:
    assert streamhouse_broker.node.settings.default_partitions == 7
    streamhouse_broker.create_topic("orders")
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        kafka.produce_values("orders", b"survives")
    streamhouse_broker.kill()
    streamhouse_broker.start()
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        assert [record.value for record in kafka.read("orders")] == [b"survives"]


@pytest.mark.streamhouse(auto_create_topics=False)
class TestAMarkerOnAClass:
    def test_applies_to_its_tests(self, streamhouse_broker: Broker) -> None:
        assert not streamhouse_broker.node.settings.auto_create_topics


def test_a_project_needs_no_more_than_the_installed_package(tmp_path: Path) -> None:
    """A pytest of its own, with strict markers, finds fixture and marker by the entry point."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.streamhouse(default_partitions=2)\n"
        "def test_it(streamhouse_broker):\n"
        "    assert streamhouse_broker.node.settings.default_partitions == 2\n"
        "def test_each_test_has_its_own(streamhouse_broker):\n"
        "    assert len(streamhouse_broker.node.broker.topics) == 0\n"
        "    streamhouse_broker.create_topic('orders')\n"
        "def test_and_another(streamhouse_broker):\n"
        "    assert len(streamhouse_broker.node.broker.topics) == 0\n"
    )

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 passed" in ended.stdout


def test_a_run_that_does_not_use_the_fixture_does_not_load_the_broker() -> None:
    code = "import sys, streamhouse.testing.pytest_plugin; sys.exit('streamhouse.app' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
