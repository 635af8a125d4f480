"""An object store that fails, stalls, cuts and lies: no loss, one copy, bounded buffers, and it heals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.protocol.producer import ProduceResponse

from faults.sweep import BRISK
from faults.workload import Workload, create_topic
from node.process import Node
from node.proxy import Fault, S3Proxy
from node.raw import PRODUCE_VERSION, RawConnection, build_batch, produce_request, read_values
from node.storage import ServiceStorage, assert_rows_and_objects_agree, committed_records, segments_of
from node.wait import HUNG_SECONDS, eventually
from services.seaweed import S3Bucket, SeaweedServer

MIB = 2**20
REQUEST_TIMED_OUT = 7


@pytest.fixture
def proxy(s3_bucket: S3Bucket) -> Iterator[S3Proxy]:
    with S3Proxy(s3_bucket.endpoint) as proxy:
        yield proxy


@pytest.fixture
def storage(proxy: S3Proxy, postgres_dsn: str, s3_bucket: S3Bucket) -> ServiceStorage:
    return ServiceStorage(postgres_dsn, s3_bucket, node_endpoint=proxy.endpoint)


def assert_everything_is_stored_once(storage: ServiceStorage, workload: Workload) -> None:
    """All of the topic is in the object store, each range in one row and one object."""
    eventually(
        lambda: committed_records(storage, workload.topic) >= workload.acknowledged, "all records in the object store"
    )
    assert_rows_and_objects_agree(storage)
    assert committed_records(storage, workload.topic) == workload.acknowledged
    keys = Counter(segment.object_key for segment in segments_of(storage))
    assert set(keys.values()) == {1}


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.HANG])
def test_uploads_that_fail_for_a_while_lose_nothing(
    data_dir: Path, proxy: S3Proxy, storage: ServiceStorage, fault: Fault
) -> None:
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        proxy.fail_next(fault, count=4)
        workload.send(200)
        workload.settle()
        eventually(lambda: len(proxy.faults) == 4, "four failed uploads")
        assert_everything_is_stored_once(storage, workload)
        workload.assert_holds()
        assert node.terminate() == 0
        assert_everything_is_stored_once(storage, workload)


def test_a_store_that_is_down_delays_no_acknowledgement_and_is_caught_up(
    data_dir: Path, proxy: S3Proxy, storage: ServiceStorage
) -> None:
    """The WAL makes records durable, so producers go on while the buffers last."""
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        proxy.fail_all(Fault.REFUSED_503)
        workload.send(300)
        workload.settle()
        assert committed_records(storage, workload.topic) == 0
        workload.read_all("while it is down")
        proxy.heal()
        assert_everything_is_stored_once(storage, workload)
        workload.assert_holds()


def test_a_node_killed_while_the_store_is_down_recovers_everything(
    data_dir: Path, proxy: S3Proxy, storage: ServiceStorage
) -> None:
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        proxy.fail_all(Fault.LOST_ANSWER)
        workload.send(300)
        workload.settle()
        eventually(lambda: len(proxy.faults) >= 2, "uploads without answers")
        node.kill9()
        proxy.heal()
        node.start()
        assert_everything_is_stored_once(storage, workload)
        workload.assert_holds()


def test_reads_that_fail_are_errors_or_late_but_never_wrong(
    data_dir: Path, proxy: S3Proxy, storage: ServiceStorage
) -> None:
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(200)
        workload.settle()
        assert_everything_is_stored_once(storage, workload)
        # A new process has nothing in memory: it must read from the store.
        assert node.terminate() == 0
        node.start()
        for fault in (Fault.REFUSED_500, Fault.LOST_ANSWER, Fault.REFUSED_503):
            proxy.fail_next(fault, method="GET", count=3)
            workload.read_all(f"reader despite {fault.name}")
        workload.assert_holds()


def test_a_producer_faster_than_the_store_is_held_back_and_memory_stays_bounded(
    data_dir: Path, proxy: S3Proxy, storage: ServiceStorage
) -> None:
    """With the store hanging, the buffers fill and the socket is not read any more; other clients are served."""
    bounds = (
        "--buffer-bytes", "8MiB", "--partition-buffer-bytes", "8MiB", "--tail-bytes", "8MiB", "--cache-bytes", "8MiB",
        "--segment-bytes", "1MiB", "--segment-age", "100ms",
    )  # fmt: skip
    with Node(data_dir, *bounds, *storage.options) as node:
        create_topic(node.bootstrap, "flood", 1)
        create_topic(node.bootstrap, "other", 1)
        with RawConnection(node.address) as raw:
            assert raw.produce("other", build_batch(b"before")).error_code == 0
        before = node.rss_bytes
        proxy.fail_all(Fault.HANG)
        flood = Flood(node)
        flood.run_until_held_back()
        assert flood.accepted_bytes < 64 * MIB, "nothing holds the producer back"
        assert node.rss_bytes - before < 160 * MIB, "memory grows with what the store does not take"
        with RawConnection(node.address) as raw:
            assert read_values(raw.fetch("other", 0).records) == {0: b"before"}
            assert raw.metadata("flood").topics[0].error_code == 0
        proxy.heal()
        flood.finish()
        with RawConnection(node.address) as raw:
            assert raw.list_offset("flood", -1).offset == flood.sent
        eventually(lambda: committed_records(storage, "flood") == flood.sent, "the flood in the object store")
        assert_rows_and_objects_agree(storage)


def test_a_store_that_hangs_holds_up_a_connection_for_as_long_as_the_request_says(
    data_dir: Path, proxy: S3Proxy, storage: ServiceStorage
) -> None:
    """And not what is behind it for ever: another topic's records, which are on the disk, and a question. The batch
    keeps its place, and its repeat gets its offset."""
    with Node(data_dir, *BRISK, *storage.options) as node, RawConnection(node.address) as raw:
        create_topic(node.bootstrap, "remote", 1, streamhouse_durability="object")
        create_topic(node.bootstrap, "local", 1, streamhouse_durability="wal")
        producer_id = raw.init_producer_id().producer_id
        batches = [
            build_batch(b"%d" % number, producer_id=producer_id, producer_epoch=0, sequence=number)
            for number in range(3)
        ]
        assert raw.produce("remote", batches[0]).base_offset == 0
        proxy.fail_all(Fault.HANG)
        raw.send(produce_request("remote", batches[1], timeout_ms=1_000))
        raw.send(produce_request("local", build_batch(b"local")))
        timed_out, stored = (
            raw.receive(ProduceResponse, PRODUCE_VERSION).responses[0].partition_responses[0] for _ in range(2)
        )
        assert (timed_out.error_code, timed_out.base_offset) == (REQUEST_TIMED_OUT, -1)
        assert (stored.error_code, stored.base_offset) == (0, 0)
        assert raw.metadata("remote").topics[0].error_code == 0
        proxy.heal()
        assert [raw.produce("remote", batch).base_offset for batch in (batches[1], batches[2])] == [1, 2]
        assert read_values(raw.fetch("remote", 0).records) == {0: b"0", 1: b"1", 2: b"2"}


class Flood:
    """A producer that never waits for answers, until the node stops reading from it."""

    BATCH = 512 * 1024

    def __init__(self, node: Node) -> None:
        self._node = node
        self._connection = RawConnection(node.address)
        self._left = b""
        self.sent = 0

    @property
    def accepted_bytes(self) -> int:
        return self.sent * self.BATCH

    def run_until_held_back(self) -> None:
        """Held back means that the socket takes nothing for two seconds."""
        self._connection.socket.settimeout(2)
        try:
            while self.sent < 400:
                self._send_one()
        except TimeoutError:
            return

    def _send_one(self) -> None:
        request = produce_request("flood", build_batch(self.sent.to_bytes(2, "big") * (self.BATCH // 2)))
        request.with_header(correlation_id=self.sent, client_id="flood")
        self._left = bytes(request.encode(header=True, framed=True))
        self.sent += 1
        self._drain_left()

    def _drain_left(self) -> None:
        while self._left:
            taken = self._connection.socket.send(self._left[: 64 * 1024])
            self._left = self._left[taken:]

    def finish(self) -> None:
        """The rest of the last request goes through, and every request has its acknowledgement."""
        self._connection.socket.settimeout(HUNG_SECONDS)
        self._drain_left()
        for number in range(self.sent):
            answer = self._connection.receive(ProduceResponse, PRODUCE_VERSION)
            partition = answer.responses[0].partition_responses[0]
            assert (partition.error_code, partition.base_offset) == (0, number)
        self._connection.close()


def test_a_store_that_stops_and_comes_back_is_used_again(
    data_dir: Path, postgres_dsn: str, stoppable_s3: SeaweedServer
) -> None:
    bucket = stoppable_s3.create_bucket()
    storage = ServiceStorage(postgres_dsn, bucket)
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(100)
        workload.settle()
        stoppable_s3.stop()
        workload.send(200)
        workload.settle()
        stoppable_s3.start()
        assert_everything_is_stored_once(storage, workload)
        workload.assert_holds()
        assert node.terminate() == 0
