"""The fixture that other projects use, with and without its marker."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
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


# --- projects of others, each with a pytest of its own ---


def run_project(directory: Path, files: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    for name, content in files.items():
        (directory / name).write_text(textwrap.dedent(content))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *options, str(directory)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
    )


def check_passed(ended: subprocess.CompletedProcess[str], count: int) -> None:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{count} passed" in ended.stdout


def test_a_project_needs_no_more_than_the_installed_package(tmp_path: Path) -> None:
    """Fixture and marker are found by the entry point, with strict markers."""
    project = """
        import pytest

        @pytest.mark.streamhouse(default_partitions=2)
        def test_it(streamhouse_broker):
            assert streamhouse_broker.node.settings.default_partitions == 2

        def test_each_test_has_its_own(streamhouse_broker):
            assert len(streamhouse_broker.node.broker.topics) == 0
            streamhouse_broker.create_topic("orders")

        def test_and_another(streamhouse_broker):
            assert len(streamhouse_broker.node.broker.topics) == 0
    """

    check_passed(run_project(tmp_path, {"test_it.py": project}), 3)


SHARED = """
    import os
    from pathlib import Path
    import pytest

    @pytest.fixture(autouse=True)
    def note(streamhouse_session_broker):
        yield
        with open(Path(__file__).with_name("seen"), "a") as seen:
            print(os.environ.get("PYTEST_XDIST_WORKER", "alone"), streamhouse_session_broker.bootstrap, file=seen)

    @pytest.mark.parametrize("number", range(8))
    def test_it(streamhouse_shared_broker, number):
        broker = streamhouse_shared_broker
        assert len(broker.node.broker.topics) == 0
        assert broker.node.settings.default_partitions == 3
        broker.produce_all("orders", [str(number)] * 3)
        broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=None)
        assert len(broker.read("orders", count=3)) == 3
"""
SETTINGS = """
    import pytest

    @pytest.fixture(scope="session")
    def streamhouse_settings():
        return {"default_partitions": 3}
"""


@pytest.mark.parametrize(("options", "brokers"), [((), 1), (("-n", "2"), 2)])
def test_tests_share_a_broker_that_each_finds_as_new_one_for_a_worker(
    tmp_path: Path, options: tuple[str, ...], brokers: int
) -> None:
    check_passed(run_project(tmp_path, {"test_it.py": SHARED, "conftest.py": SETTINGS}, *options), 8)

    by_worker = {tuple(line.split()) for line in (tmp_path / "seen").read_text().splitlines()}
    assert len(by_worker) == brokers
    assert len({bootstrap for _, bootstrap in by_worker}) == brokers


ASYNC = """
    import asyncio
    import pytest
    import pytest_asyncio
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    pytestmark = MARK

    @pytest_asyncio.fixture
    async def producer(streamhouse_shared_broker):
        async with AIOKafkaProducer(bootstrap_servers=streamhouse_shared_broker.bootstrap) as producer:
            yield producer

    async def test_a_service_and_its_test_share_a_loop(streamhouse_shared_broker, producer):
        broker = streamhouse_shared_broker
        broker.create_topic("orders")
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap, group_id="service", auto_offset_reset="earliest"
        )
        await consumer.start()

        async def service():
            record = await consumer.getone()
            await producer.send_and_wait("answers", record.value.upper())
            await consumer.commit()

        working = asyncio.create_task(service())
        await broker.aio.produce("orders", "hello")
        (answer,) = await broker.aio.read("answers", count=1, format="text")
        assert answer.value == "HELLO"
        await broker.aio.wait(group="service", lag=0)
        await working
        await consumer.stop()

    async def test_blocking_is_refused_where_it_would_wait_for_this_loop(streamhouse_broker):
        with pytest.raises(RuntimeError, match="await broker.aio.wait"):
            streamhouse_broker.wait(topic="orders", records=1)
        await asyncio.to_thread(streamhouse_broker.produce, "orders", "a")
        await asyncio.to_thread(streamhouse_broker.wait, topic="orders", records=1)
"""


@pytest.mark.parametrize(
    ("mode", "mark", "options"),
    [("auto", "[]", ("-n", "2")), ("strict", "pytest.mark.asyncio", ())],
    ids=["auto, on workers", "strict"],
)
def test_tests_that_are_coroutines_use_it(tmp_path: Path, mode: str, mark: str, options: tuple[str, ...]) -> None:
    ended = run_project(tmp_path, {"test_it.py": ASYNC.replace("MARK", mark)}, "-o", f"asyncio_mode={mode}", *options)

    check_passed(ended, 2)


WRONG = """
    import pytest

    @pytest.mark.streamhouse(defualt_partitions=1)
    def test_a_misspelled_setting(streamhouse_broker):
        pass

    @pytest.mark.streamhouse({"default_partitions": 1})
    def test_a_setting_without_a_name(streamhouse_broker):
        pass

    @pytest.mark.streamhouse(default_partitions=1)
    def test_a_setting_of_a_broker_that_runs(streamhouse_shared_broker):
        pass
"""


def test_what_is_wrong_with_a_marker_is_explained_in_a_line(tmp_path: Path) -> None:
    ended = run_project(tmp_path, {"test_it.py": WRONG})

    assert "3 errors" in ended.stdout
    assert "@pytest.mark.streamhouse: a broker has no setting 'defualt_partitions'" in ended.stdout
    assert "did you mean default_partitions?" in ended.stdout
    assert "has no name; write SETTING=VALUE" in ended.stdout
    assert "the shared broker runs already" in ended.stdout
    assert "Traceback" not in ended.stdout


def test_a_run_that_does_not_use_the_fixture_does_not_load_the_broker() -> None:
    code = "import sys, streamhouse.testing.pytest_plugin; sys.exit('streamhouse.app' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
