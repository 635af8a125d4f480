"""What a node was told stays true after a crash and after an orderly end: producers, groups, topics, identities."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from faults.sweep import BRISK
from faults.workload import create_topic
from node.process import Node
from node.raw import RawConnection, build_batch, read_values
from node.storage import Storage, committed_records
from node.wait import HUNG_SECONDS, eventually

IN_WAL = ("--segment-age", "10m", "--wal-file-bytes", "1MiB")
OUT_OF_ORDER, STALE_EPOCH = 45, 47

Restart = Callable[[Node, Storage], None]


def crash_with_everything_in_the_wal(node: Node, storage: Storage) -> None:
    node.kill9()
    node.start(*IN_WAL)


def crash_with_everything_stored(node: Node, storage: Storage) -> None:
    with RawConnection(node.address) as raw:
        end = raw.list_offset("kept", -1).offset
    node.kill9()
    node.start(*BRISK)
    eventually(lambda: committed_records(storage, "kept") == end, "everything in the object store")
    node.kill9()
    node.start(*IN_WAL)


def drain_and_lose_the_wal(node: Node, storage: Storage) -> None:
    assert node.terminate() == 0
    shutil.rmtree(node.data_dir / "wal")
    node.start(*IN_WAL)


RESTARTS = [crash_with_everything_in_the_wal, crash_with_everything_stored, drain_and_lose_the_wal]


@pytest.mark.long_form("postgres+s3")
@pytest.mark.parametrize("restart", RESTARTS)
def test_a_producers_retry_after_a_restart_gets_its_first_offset(
    storage: Storage, data_dir: Path, restart: Restart
) -> None:
    with Node(data_dir, *storage.options) as node:
        node.kill9()
        node.start(*IN_WAL)
        create_topic(node.bootstrap, "kept", 1)
        with RawConnection(node.address) as raw:
            producer_id = raw.init_producer_id().producer_id

        def send(sequence: int, epoch: int = 1) -> tuple[int, int]:
            batch = build_batch(
                f"{sequence}".encode(), producer_id=producer_id, producer_epoch=epoch, sequence=sequence
            )
            with RawConnection(node.address) as raw:
                answer = raw.produce("kept", batch)
            return answer.error_code, answer.base_offset

        with RawConnection(node.address) as raw:
            assert raw.produce("kept", build_batch(b"others", b"others")).error_code == 0
        for sequence in range(6):
            assert send(sequence) == (0, sequence + 2)
        restart(node, storage)
        for sequence in range(1, 6):
            assert send(sequence) == (0, sequence + 2), "a retry was written again or refused"
        assert send(8)[0] == OUT_OF_ORDER
        assert send(6, epoch=0)[0] == STALE_EPOCH
        assert send(6) == (0, 8)
        with RawConnection(node.address) as raw:
            assert read_values(raw.fetch("kept", 8).records) == {8: b"6"}
            assert raw.list_offset("kept", -1).offset == 9
            assert raw.init_producer_id().producer_id != producer_id


def test_topics_configs_offsets_and_identities_survive_a_crash(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *BRISK, *storage.options) as node:
        create_topic(node.bootstrap, "kept", 3, retention_ms="123456789")
        target = TopicPartition("kept", 1, 42)
        reader = {"bootstrap.servers": node.bootstrap, "group.id": "readers", "log_level": 0}
        consumer = confluent_kafka.Consumer(reader)
        consumer.commit(offsets=[target], asynchronous=False)
        consumer.close()

        def identities() -> tuple[object, ...]:
            with RawConnection(node.address) as raw:
                answer = raw.metadata("kept")
            (topic,) = answer.topics
            return answer.cluster_id, topic.name, len(topic.partitions), [broker.node_id for broker in answer.brokers]

        before = identities()
        node.kill9()
        node.start()
        assert identities() == before
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        resource = ConfigResource(ResourceType.TOPIC, "kept")
        config = admin.describe_configs([resource])[resource].result(HUNG_SECONDS)
        assert config["retention.ms"].value == "123456789"
        consumer = confluent_kafka.Consumer(reader)
        (committed,) = consumer.committed([TopicPartition("kept", 1)], HUNG_SECONDS)
        consumer.close()
        assert committed.offset == 42


def test_a_deleted_topic_does_not_come_back_from_the_wal(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *IN_WAL, *storage.options) as node:
        create_topic(node.bootstrap, "gone", 1)
        create_topic(node.bootstrap, "kept", 1)
        with RawConnection(node.address) as raw:
            assert raw.produce("gone", build_batch(b"old")).error_code == 0
            assert raw.produce("kept", build_batch(b"kept")).error_code == 0
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.delete_topics(["gone"])["gone"].result(HUNG_SECONDS)
        node.kill9()
        node.start()
        with RawConnection(node.address) as raw:
            assert raw.metadata("gone").topics[0].error_code == 3
            assert read_values(raw.fetch("kept", 0).records) == {0: b"kept"}
        create_topic(node.bootstrap, "gone", 1)
        with RawConnection(node.address) as raw:
            assert raw.list_offset("gone", -1).offset == 0
        assert node.terminate() == 0
