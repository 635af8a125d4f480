"""The broker for tests: in memory or on disk, stopped, killed and started again, with faults on demand."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from log_parts.batches import real, sent
from log_parts.kafka import Kafka
from node.wait import eventually
from streamhouse.model.errors import InvalidConfig
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_configs

BROKER_RESOURCE = 4
HOUR_MS = 3_600_000
FAST_LEASES = {"lease_ttl": 2_000, "lease_renewal": 50}


def values(broker: Broker, topic: str = "orders") -> list[bytes | None]:
    with Kafka(broker.bootstrap) as kafka:
        return [record.value for record in kafka.read(topic)]


def produce(broker: Broker, *sent_values: bytes, topic: str = "orders") -> None:
    """One batch for each value."""
    with Kafka(broker.bootstrap) as kafka:
        for value in sent_values:
            kafka.produce_values(topic, value)


# --- living and dying ---


def test_a_broker_in_memory_takes_records_and_gives_them_back() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=3, config={"retention.ms": "1000"})
        produce(broker, b"a", b"b")

        assert values(broker) == [b"a", b"b"]


def test_a_topics_configs_may_have_units() -> None:
    with Broker() as broker:
        broker.create_topic("orders", config={"retention.ms": "7d", "retention.bytes": "1GiB"})

        stored = broker.node.broker.topics.get("orders").config

    assert stored == {"retention.ms": "604800000", "retention.bytes": "1073741824"}


def test_two_brokers_live_beside_one_another() -> None:
    with Broker() as first, Broker() as second:
        assert first.bootstrap != second.bootstrap
        first.create_topic("orders")
        second.create_topic("orders")
        produce(first, b"first")
        produce(second, b"second")

        assert (values(first), values(second)) == ([b"first"], [b"second"])


@pytest.mark.parametrize("durable", [False, True])
def test_a_restart_keeps_port_topics_and_records(durable: bool) -> None:
    with Broker(durable=durable) as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        bootstrap = broker.bootstrap

        broker.restart()
        produce(broker, b"b")

        assert broker.bootstrap == bootstrap
        assert values(broker) == [b"a", b"b"]


def test_what_was_acknowledged_survives_a_kill_on_disk() -> None:
    with Broker(durable=True) as broker:
        broker.create_topic("orders")
        for round_number in range(4):
            produce(broker, b"%d" % round_number)
            broker.kill()
            broker.start()

        assert values(broker) == [b"0", b"1", b"2", b"3"]


def test_uploaded_and_not_uploaded_records_survive_a_kill_on_disk() -> None:
    with Broker(durable=True) as broker:
        broker.create_topic("orders")
        produce(broker, b"uploaded")
        broker.flush()
        produce(broker, b"only in the wal")
        broker.kill()
        broker.start()

        assert values(broker) == [b"uploaded", b"only in the wal"]


def test_a_kill_in_memory_loses_what_was_not_uploaded_and_the_broker_starts_again() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker, b"uploaded")
        broker.flush()
        produce(broker, b"lost")
        broker.kill()
        broker.start()

        assert values(broker) == [b"uploaded"]
        produce(broker, b"new")
        assert values(broker) == [b"uploaded", b"new"]


def test_a_directory_of_ones_own_is_kept_and_can_be_opened_again(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "with space") as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
    with Broker(data_dir=tmp_path / "with space") as broker:
        assert values(broker) == [b"a"]


def test_a_temporary_directory_goes_with_its_broker() -> None:
    broker = Broker(durable=True)
    broker.start()
    directory = broker._data_dir
    assert directory is not None
    assert directory.exists()

    broker.close()

    assert not directory.exists()


@pytest.mark.parametrize("durable", [False, True])
def test_a_broker_that_runs_is_not_started_again_and_goes_on(durable: bool) -> None:
    with Broker(durable=durable) as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        with pytest.raises(RuntimeError, match="runs already"):
            broker.start()
        produce(broker, b"b")
        assert values(broker) == [b"a", b"b"]
        broker.kill()
        broker.start()
        broker.reset()


def test_stopping_killing_and_closing_twice_does_nothing_more() -> None:
    broker = Broker()
    broker.start()
    broker.kill()
    broker.kill()
    broker.stop()
    broker.close()
    broker.close()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap


def test_faults_of_a_broker_that_was_not_started_say_so() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        _ = Broker().faults


def test_a_closed_broker_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with Broker(durable=True):
        pass

    eventually(lambda: not [t for t in set(threading.enumerate()) - before if "streamhouse" in t.name], "it is gone")


def test_settings_are_checked_and_a_broker_that_could_not_start_leaves_nothing_behind() -> None:
    before = {thread.ident for thread in threading.enumerate()}

    with pytest.raises(InvalidConfig, match="default_partitions"), Broker(durable=True, default_partitions=0):
        pytest.fail("it started")

    left = [thread for thread in threading.enumerate() if thread.ident not in before]
    assert [thread.name for thread in left if thread.name == "streamhouse-broker"] == []


def test_a_port_can_be_asked_for() -> None:
    with Broker() as first:
        port = int(first.bootstrap.rpartition(":")[2])
    with Broker(kafka_port=port) as second:
        assert second.bootstrap.endswith(f":{port}")


# --- faults ---


def test_uploads_that_fail_are_tried_again() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        broker.faults.fail_puts(2)

        broker.flush()

        assert values(broker) == [b"a"]


def test_an_upload_whose_answer_was_lost_leaves_one_copy() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        broker.faults.fail_puts(1, lost_answer=True)

        broker.flush()
        broker.restart()

        assert values(broker) == [b"a"]


def test_while_uploads_fail_records_are_taken_and_read_and_a_heal_lets_them_go() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        broker.faults.fail_puts(None)
        produce(broker, b"a", b"b")
        assert values(broker) == [b"a", b"b"]

        broker.faults.heal()
        broker.flush()

        assert broker.node.engine.buffer.used_bytes == 0


def test_slow_uploads_are_slow_and_arrive() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        broker.faults.slow_puts(100)

        broker.flush()

        assert values(broker) == [b"a"]


def test_reads_from_a_store_that_fails_are_errors_and_then_succeed() -> None:
    with Broker(tail_bytes=0, segment_bytes=64 * 1024) as broker, Kafka(broker.bootstrap) as kafka:
        broker.create_topic("orders")
        for _ in range(6):
            kafka.produce("orders", sent(50_000))
        broker.flush()
        broker.restart()
        with Kafka(broker.bootstrap) as again:
            broker.faults.fail_reads(1)
            assert again.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert len(again.fetch("orders", 0).records) > 0


def test_expired_leases_refuse_records_until_they_are_renewed() -> None:
    with Broker(lease_ttl=60_000, lease_renewal=500) as broker, Kafka(broker.bootstrap) as kafka:
        broker.create_topic("orders")

        def is_refused() -> bool:
            broker.faults.expire_leases()  # once more, if a renewal came before the record
            return kafka.produce("orders", real(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

        eventually(is_refused, "records are refused")

        eventually(lambda: kafka.produce("orders", real(b"b")).error_code == 0, "the lease is renewed")

        assert values(broker)[-1] == b"b"


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_a_wall_clock_that_jumps_loses_nothing(jump_ms: int) -> None:
    with Broker(durable=True, **FAST_LEASES) as broker:
        broker.create_topic("orders")
        produce(broker, b"before")
        broker.faults.jump_clock(jump_ms)
        with Kafka(broker.bootstrap) as kafka:
            eventually(lambda: kafka.produce("orders", real(b"after")).error_code == 0, "records are taken")
        broker.flush()
        broker.kill()
        broker.start()

        assert values(broker) == [b"before", b"after"]


def test_retention_looks_once_a_day_unless_told_otherwise(streamhouse_broker: Broker) -> None:
    """A node looks half a minute after its start; a slow test outlasts that, and its samples are old."""
    asked = describe_configs.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(streamhouse_broker.node.broker.identity.node_id),
        configuration_keys=["log.retention.check.interval.ms"],
    )
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        (answer,) = kafka.call(describe_configs, describe_configs.DescribeConfigsRequest(resources=[asked]), 4).results

    assert [config.value for config in answer.configs] == [str(24 * HOUR_MS)]


def test_faults_end_with_the_broker_so_that_it_can_always_be_closed() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        broker.faults.fail_puts(None)
