"""Objects through the node, and presigned URLs past it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from log_parts.kafka import Kafka
from node.process import Node
from node.raw import RawConnection
from node.wait import eventually
from planning_parts.reading import plan, read_plan
from services.seaweed import S3Bucket
from streamhouse.client.planning import PlanningClient
from streamhouse.format.object_keys import manifest_key, staged_object_key
from streamhouse.testing import Broker
from streamhouse.wire.http import planning as api

CONTENT = bytes(range(256)) * 10_000
KEY = "segments/some/object.strm"


@pytest.fixture(scope="module")
def stored(broker: Broker) -> Callable[[str], bytes]:
    """Puts an object into the store; gives what a key holds."""
    broker._run(broker._objects.create(KEY, [CONTENT]))
    broker._run(broker._objects.create("wal/secret", [b"not yours"]))
    return lambda key: broker._run(broker._objects.get(key))


def request(
    broker: Broker, method: str, key: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    asked = urllib.request.Request(
        f"{broker.endpoint}/v1/planning/objects/{key}", data=body, headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read(), dict(refused.headers)


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-299", 100, 300),
        ("bytes=2559990-", 2_559_990, 2_560_000),
        ("bytes=-5", 2_559_995, 2_560_000),
        ("bytes=0-99999999", 0, 2_560_000),
        ("bytes=1000-2500000", 1_000, 2_500_001),
    ],
)
@pytest.mark.usefixtures("stored")
def test_a_range_of_an_object(broker: Broker, header: str, start: int, end: int) -> None:
    status, content, headers = request(broker, "GET", KEY, Range=header)

    assert status == 206
    assert content == CONTENT[start:end]
    assert headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"


@pytest.mark.parametrize("header", [None, "bytes=5-1", "bytes=-", "lines=1-2", "bytes=0-1,5-6", "bytes=x"])
@pytest.mark.usefixtures("stored")
def test_without_a_range_that_can_be_understood_all_of_it_comes(broker: Broker, header: str | None) -> None:
    status, content, _ = request(broker, "GET", KEY, **({} if header is None else {"Range": header}))

    assert (status, content) == (200, CONTENT)


@pytest.mark.parametrize("header", ["bytes=2560000-", "bytes=99999999-99999999", "bytes=-0"])
@pytest.mark.usefixtures("stored")
def test_a_range_that_is_outside_is_refused(broker: Broker, header: str) -> None:
    assert request(broker, "GET", KEY, Range=header)[0] == 416


@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("wal/secret", 404),
        ("segments/nothing", 404),
        ("segments/../wal/secret", 400),
        ("segments/%2e%2e/wal/secret", 400),
        ("segments//x", 400),
        ("segments/", 400),
        ("", 400),
    ],
)
@pytest.mark.usefixtures("stored")
def test_only_segments_are_read(broker: Broker, key: str, status: int) -> None:
    assert request(broker, "GET", key)[0] == status


def test_staging_objects_are_written_once(broker: Broker, stored: Callable[[str], bytes]) -> None:
    key = staged_object_key("s", 1, 0, uuid4())
    assert request(broker, "PUT", key, CONTENT)[0] == 201
    status, content, _ = request(broker, "PUT", key, b"other")

    assert (status, b"already-exists" in content) == (409, True)
    assert stored(key) == CONTENT


@pytest.mark.parametrize(
    "key",
    [
        "segments/new.strm",
        "wal/x",
        "topics/x",
        "staging",
        "staging/../segments/x",
        "staging/any/name.exe",
        manifest_key("s", 1, UUID(int=7)),
    ],
)
def test_nothing_else_is_written(broker: Broker, key: str) -> None:
    assert request(broker, "PUT", key, b"content")[0] in (400, 404)


def test_presigned_urls_on_s3_are_the_buckets_own_and_need_no_keys(tmp_path: Path, s3_bucket: S3Bucket) -> None:
    options = (
        "--objects", f"{s3_bucket.url}/a/prefix",
        "--s3-endpoint", s3_bucket.endpoint,
        "--s3-access-key-id", s3_bucket.access_key_id,
        "--s3-secret-access-key", s3_bucket.secret_access_key,
        "--default-partitions", "1",
    )  # fmt: skip
    with Node(tmp_path, *options) as node:
        create_topic(node)
        with Kafka(node.bootstrap) as kafka:
            kafka.produce_values("orders", *(b"v%d" % number for number in range(50)))
        assert node.terminate() == 0  # which uploads
        node.start()
        with PlanningClient(node.http) as client, Kafka(node.bootstrap) as kafka:
            kafka.produce_values("orders", b"more")
            answer = plan(client, "orders")
            objects = client.cluster().objects

            assert (objects.url, objects.endpoint) == (f"{s3_bucket.url}/a/prefix", s3_bucket.endpoint)
            assert [piece.url.startswith(s3_bucket.endpoint) for piece in answer.pieces if piece.url] == [True]
            assert s3_bucket.secret_access_key not in str(answer)
            assert read_plan(client, "orders", answer) == kafka.read("orders")


def test_presigned_urls_of_a_directory_lead_to_the_node(tmp_path: Path) -> None:
    with Node(tmp_path, "--segment-age", "50ms", "--default-partitions", "1") as node:
        create_topic(node)
        with PlanningClient(node.http) as client, Kafka(node.bootstrap) as kafka:
            kafka.produce_values("orders", b"a", b"b")
            answer = eventually(lambda: _with_pieces(plan(client, "orders")), "a segment")

            assert client.cluster().objects.url == f"file://{tmp_path}/objects"
            assert {piece.url for piece in answer.pieces} == {
                f"{node.http}/v1/planning/objects/{piece.key}" for piece in answer.pieces
            }
            assert read_plan(client, "orders", answer) == kafka.read("orders")


def create_topic(node: Node) -> None:
    with RawConnection(node.address) as raw:
        raw.metadata("orders", create=True)


def _with_pieces(answer: api.RangeAnswer) -> api.RangeAnswer | None:
    return answer if answer.pieces else None
