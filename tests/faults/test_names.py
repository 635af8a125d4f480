"""Names at the door: what could be a path, a statement or a script is refused with Kafka's error, everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse

from node.process import Node
from node.raw import RawConnection, build_batch
from node.storage import EmbeddedStorage

INVALID_TOPIC = 17
UNKNOWN_TOPIC = 3

BAD_NAMES = [
    "../x", "..", ".", "a/b", "/etc/passwd", "nul\0byte", "x" * 250, "x" * 32_000, "тема", "日本", "a b", "a\nb",
    "'; DROP TABLE topics; --", "<script>alert(1)</script>", "%2e%2e", "a\\b", "", "é", "\ufeff", "a:b", "*",
]  # fmt: skip
GOOD_NAMES = ["x" * 249, "a.b_c-d", "...", "A", "0", "-", "_", "..a", "CON", "null"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    settings = ("--segment-age", "50ms")
    with Node(tmp_path_factory.mktemp("node") / "data", *settings) as node:
        yield node


@pytest.fixture
def raw(node: Node) -> Iterator[RawConnection]:
    with RawConnection(node.address) as connection:
        yield connection


def create(raw: RawConnection, name: str) -> int:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(version=5, topics=[topic], timeout_ms=10_000, validate_only=False)
    return int(raw.call(request, CreateTopicsResponse).topics[0].error_code)


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name)[:30])
def test_a_bad_name_is_refused_by_every_request(node: Node, raw: RawConnection, name: str) -> None:
    assert create(raw, name) == INVALID_TOPIC
    assert raw.metadata(name, create=True).topics[0].error_code == INVALID_TOPIC
    assert raw.produce(name, build_batch(b"x")).error_code in (INVALID_TOPIC, UNKNOWN_TOPIC)
    assert raw.fetch(name, 0).error_code in (INVALID_TOPIC, UNKNOWN_TOPIC)
    assert raw.list_offset(name, -1).error_code in (INVALID_TOPIC, UNKNOWN_TOPIC)
    storage = EmbeddedStorage(node.data_dir)
    assert name not in [row[0] for row in storage.query("SELECT name FROM topics")]
    assert node.running


@pytest.mark.parametrize("name", GOOD_NAMES, ids=lambda name: name[:30])
def test_an_odd_but_good_name_works(raw: RawConnection, name: str) -> None:
    assert create(raw, name) == 0
    assert raw.produce(name, build_batch(b"x")).error_code == 0
    assert raw.list_offset(name, -1).offset == 1


def test_nothing_was_written_outside_of_the_data_directory(node: Node) -> None:
    """All tests of this file may have run: whatever they tried, the parent has the directory and nothing else."""
    assert [path.name for path in node.data_dir.parent.iterdir()] == ["data"]
