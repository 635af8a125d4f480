"""An acknowledgement follows the sync, and nothing is visible before it: a crash of the machine takes nothing back."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.workload import create_topic
from node.process import Node
from node.raw import RawConnection, build_batch, produce_request, read_values
from node.storage import ServiceStorage
from node.strace import delay
from node.wait import HUNG_SECONDS, eventually
from services.seaweed import S3Bucket

SYNC_SECONDS = 1.0
SYNCS = "streamhouse_wal_sync_seconds"


@pytest.fixture
def slow_sync(data_dir: Path, postgres_dsn: str, s3_bucket: S3Bucket) -> Iterator[Node]:
    """A node whose disk takes a second for each sync; its database and objects are elsewhere, so each is the WAL's."""
    storage = ServiceStorage(postgres_dsn, s3_bucket)
    with Node(data_dir, "--segment-age", "10m", *storage.options) as node:
        create_topic(node.bootstrap, "synced", 1)
        with RawConnection(node.address) as raw:
            assert raw.produce("synced", build_batch(b"first")).error_code == 0
        node.kill9()
        node.start(wrapper=delay("fdatasync", SYNC_SECONDS))
        yield node


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledgement_waits_for_the_sync(slow_sync: Node, acks: int) -> None:
    with RawConnection(slow_sync.address) as raw:
        started = time.monotonic()
        assert raw.produce("synced", build_batch(b"second"), acks=acks).error_code == 0
        assert time.monotonic() - started >= SYNC_SECONDS, "acknowledged before it was on disk"


def test_a_record_is_not_visible_before_it_is_durable(slow_sync: Node) -> None:
    with RawConnection(slow_sync.address) as producer, RawConnection(slow_sync.address) as reader:
        started = time.monotonic()
        producer.send(produce_request("synced", build_batch(b"second")))

        def seen() -> bool:
            answer = reader.fetch("synced", 0)
            assert answer.high_watermark == 1 + (1 in read_values(answer.records))
            assert reader.list_offset("synced", -1).offset <= answer.high_watermark + 1
            return answer.high_watermark == 2

        eventually(seen, "the record to become visible")
        assert time.monotonic() - started >= SYNC_SECONDS, "visible before it was on disk"


def test_one_sync_serves_all_who_wait_for_it(slow_sync: Node) -> None:
    """Group commit: fifty producers at once wait for a few syncs, not for fifty. Counted, and not timed: a busy machine
    takes its time as well."""
    producers = [RawConnection(slow_sync.address) for _ in range(50)]
    before = syncs_of(slow_sync)
    for producer in producers:
        producer.send(produce_request("synced", build_batch(b"together")))
    for producer in producers:
        producer.receive_frame()
        producer.close()
    assert 1 <= syncs_of(slow_sync) - before < 25


def syncs_of(node: Node) -> int:
    with urllib.request.urlopen(f"{node.http}/metrics", timeout=HUNG_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith(f"{SYNCS}_count"))
