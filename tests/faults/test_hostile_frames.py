"""What a hostile or broken client sends: refused before anything is allocated, and nobody else notices."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Iterator

import cramjam
import lz4.frame
import pytest
import zstandard
from crc32c import crc32c
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceResponse

from faults.sweep import sweep_size
from faults.workload import create_topic
from node.process import Node
from node.raw import CODECS, RawConnection, build_batch, fetch_request, produce_request, read_values
from node.wait import eventually

INVALID_REQUEST = 42
MIB = 2**20
GIB = 2**30
GROWTH = 100 * MIB
"""What a node may grow by for reasons of its own; every attack here promises many times that."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("node") / "data", "--request-timeout", "2s") as node:
        create_topic(node.bootstrap, "decent", 1)
        with RawConnection(node.address) as raw:
            assert raw.produce("decent", build_batch(b"decent")).error_code == 0
        yield node


@pytest.fixture(autouse=True)
def unharmed(node: Node) -> Iterator[None]:
    """After each attack the node lives, has not grown, and serves others."""
    before = node.rss_bytes
    yield
    assert node.running, node.stderr()
    assert node.rss_bytes - before < GROWTH, "it grew by what the attacker promised"
    with RawConnection(node.address) as raw:
        assert read_values(raw.fetch("decent", 0).records)[0] == b"decent"
    assert "Traceback" not in node.stderr(), node.stderr()


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def header(api: int, version: int, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", api, version, 1, 3) + b"bad" + (b"\0" if flexible else b"")


@pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31), 101 * MIB, 0, 1, 7])
def test_a_frame_of_impossible_size_ends_the_connection(node: Node, size: int) -> None:
    with RawConnection(node.address) as raw:
        raw.socket.sendall(struct.pack(">i", size) + b"\0" * min(max(size, 0), 64))
        assert raw.is_closed_by_node()


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\0\0\x20", b"\0\0\0\x20" + header(3, 1)])
def test_a_request_that_does_not_go_on_ends_the_connection(node: Node, sent: bytes) -> None:
    with RawConnection(node.address) as raw:
        raw.socket.sendall(sent)
        assert raw.is_closed_by_node()


def test_a_sender_of_single_bytes_ends_at_its_deadline(node: Node) -> None:
    """Each byte is progress, but the request as a whole has a deadline."""
    with RawConnection(node.address) as raw:
        raw.socket.sendall(struct.pack(">i", 10_000) + header(3, 1))
        raw.socket.settimeout(0.05)

        def closed() -> bool:
            try:
                raw.socket.send(b"x")
                return raw.socket.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        eventually(closed, "the end of a request that takes forever", timeout=30)


# A body that promises more than it holds, for each kind of count: (name, api, version, flexible, body)
LIARS = [
    ("metadata topics", 3, 1, False, struct.pack(">i", 2**31 - 1)),
    ("metadata negative count", 3, 1, False, struct.pack(">i", -2)),
    ("metadata topic name", 3, 1, False, struct.pack(">ih", 1, 32767)),
    ("metadata compact array", 3, 9, True, b"\xff\xff\xff\xff\x0f"),
    ("metadata endless varint", 3, 9, True, b"\xff" * 12),
    ("metadata compact string", 3, 9, True, b"\x02\xff\xff\xff\xff\x07"),
    ("metadata tags", 3, 9, True, b"\x01\x00\x00\x00\xff\xff\xff\xff\x0f"),
    ("produce topics", 0, 3, False, struct.pack(">hhii", -1, -1, 1000, 2**31 - 1)),
    ("produce partitions", 0, 3, False, struct.pack(">hhiih", -1, -1, 1000, 1, 1) + b"t" + struct.pack(">i", 2**30)),
    ("produce records", 0, 3, False, struct.pack(">hhiih", -1, -1, 9, 1, 1) + b"t" + struct.pack(">iii", 1, 0, 2**30)),
    ("fetch topics", 1, 4, False, struct.pack(">iiiibi", -1, 0, 1, 1, 0, 2**31 - 1)),
    ("fetch topics compact", 1, 12, True, struct.pack(">iiibii", 0, 1, 1, 0, 0, -1) + b"\xff\xff\xff\xff\x0f"),
    ("list offsets topics", 2, 1, False, struct.pack(">ii", -1, 2**31 - 1)),
    ("create topics", 19, 2, False, struct.pack(">i", 2**31 - 1)),
    ("delete topics", 20, 1, False, struct.pack(">i", 2**31 - 1)),
    ("describe configs", 32, 1, False, struct.pack(">i", 2**31 - 1)),
    ("offset commit", 8, 2, False, struct.pack(">h", 32767)),
    ("nothing at all", 0, 3, False, b""),
]


@pytest.mark.parametrize(
    ("api", "version", "flexible", "body"), [liar[1:] for liar in LIARS], ids=[x[0] for x in LIARS]
)
def test_a_count_that_promises_more_than_the_frame_holds_ends_the_connection(
    node: Node, api: int, version: int, flexible: bool, body: bytes
) -> None:
    with RawConnection(node.address) as raw:
        raw.socket.sendall(frame(header(api, version, flexible) + body))
        assert raw.is_closed_by_node()


def named_often(api: int) -> tuple[int, bytes]:
    """A version, and a body of nearly four mebibytes that names one thing as often as that holds."""
    decent = struct.pack(">h", 6) + b"decent"
    match api:
        case 1:  # Fetch of one partition
            count = 4_000_000 // 16
            partitions = struct.pack(">iqi", 0, 0, 1_000) * count
            return 4, struct.pack(">iiiibi", -1, 0, 1, MIB, 0, 1) + decent + struct.pack(">i", count) + partitions
        case 2:  # ListOffsets of one partition
            count = 4_000_000 // 12
            partitions = struct.pack(">iq", 0, -1) * count
            return 1, struct.pack(">ii", -1, 1) + decent + struct.pack(">i", count) + partitions
        case 3:  # Metadata of one topic
            count = 4_000_000 // len(decent)
            return 4, struct.pack(">i", count) + decent * count + b"\0"
        case 9:  # OffsetFetch of one partition
            count = 4_000_000 // 4
            return 1, struct.pack(">h", 1) + b"g" + struct.pack(">i", 1) + decent + struct.pack(">i", count) + bytes(
                4 * count
            )
        case 15:  # DescribeGroups of one group
            count = 4_000_000 // 3
            return 1, struct.pack(">i", count) + b"\0\1g" * count
        case 32:  # DescribeConfigs of one topic
            resource = b"\2" + decent + struct.pack(">i", -1)
            count = 4_000_000 // len(resource)
            return 1, struct.pack(">i", count) + resource * count + b"\0"
    raise AssertionError(api)


@pytest.mark.parametrize("api", [1, 2, 3, 9, 15, 32])
def test_a_request_that_names_a_thing_without_end_ends_the_connection(node: Node, api: int) -> None:
    version, body = named_often(api)
    with RawConnection(node.address) as raw:
        raw.socket.sendall(frame(header(api, version) + body))
        assert raw.is_closed_by_node()


def test_a_partition_that_a_fetch_names_many_times_is_read_once(node: Node) -> None:
    """As Kafka does it, also when the request is small enough to be answered."""
    wanted = fetch_request("decent", 0)
    wanted.topics[0].partitions *= 10_000
    with RawConnection(node.address) as raw:
        answer = raw.call(wanted, FetchResponse)
        assert [len(topic.partitions) for topic in answer.responses] == [1]
        assert read_values(answer.responses[0].partitions[0].records)[0] == b"decent"


def test_a_fetch_of_more_partitions_than_it_may_name_is_refused(node: Node) -> None:
    wanted = fetch_request("decent", 0)
    wanted.topics[0].partitions *= 10_001
    with RawConnection(node.address) as raw:
        answer = raw.call(wanted, FetchResponse)
        assert (answer.error_code, answer.responses) == (INVALID_REQUEST, [])


def test_a_topic_that_is_asked_for_many_times_is_described_once(node: Node) -> None:
    with RawConnection(node.address) as raw:
        assert [topic.name for topic in raw.metadata(*["decent"] * 3_000).topics] == ["decent"]


def test_random_bytes_never_harm_the_node(node: Node) -> None:
    """Valid headers of every API with noise behind them; what it answers, if anything, is its business."""
    source = random.Random(7)
    for _ in range(sweep_size(3)):
        for api in range(70):
            with RawConnection(node.address) as raw:
                version = source.randrange(0, 14)
                noise = source.randbytes(source.randrange(0, 200))
                raw.socket.sendall(frame(header(api, version, source.random() < 0.5) + noise))
                raw.socket.sendall(frame(source.randbytes(8)))


# -- batches --------------------------------------------------------------------------------------------------------


def batch_of(payload: bytes, *, codec: str, count: int, last_delta: int | None = None, crc: int | None = None) -> bytes:
    """A batch whose header says what it likes; its checksum is right, so that only the content is a lie."""
    after_crc = (
        struct.pack(
            ">hiqqqhii", CODECS[codec], count - 1 if last_delta is None else last_delta, 1, 1, -1, -1, -1, count
        )
        + payload
    )
    checksum = crc32c(after_crc) if crc is None else crc
    return struct.pack(">qiibI", 0, 9 + len(after_crc), 0, 2, checksum) + after_crc


def one_record(size: int) -> bytes:
    """The beginning of a record that claims to be `size` bytes of zeros."""
    return _varint(size + 10) + b"\0\0\0\1" + _varint(size)


def _varint(value: int) -> bytes:
    value <<= 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def bomb(codec: str) -> bytes:
    """As many zeros as the codec can put into a batch of normal size: hundreds of megabytes, or a promise of them."""
    start = one_record(GIB)
    match codec:
        case "gzip":
            return gzip.compress(start + bytes(200 * MIB), compresslevel=6)
        case "zstd":
            zstd = zstandard.ZstdCompressor(level=3).compressobj()
            parts = [zstd.compress(start), *(zstd.compress(bytes(MIB)) for _ in range(1024))]
            return b"".join([*parts, zstd.flush()])
        case "lz4":
            with lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX4MB) as compressor:
                parts = [compressor.begin(), compressor.compress(start)]
                parts += [compressor.compress(bytes(MIB)) for _ in range(220)]
                return b"".join([*parts, compressor.flush()])
        case _:
            # Its length field is a promise: 4 GiB from a few bytes.
            return b"\xff\xff\xff\xff\x0f" + bytes(cramjam.snappy.compress_raw(start + bytes(8 * MIB)))[4:]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_would_swell_is_not_unpacked(node: Node, codec: str) -> None:
    """A broker carries batches as they are. It may refuse this one, but may not unpack it, to store or to search."""
    topic = f"bomb-{codec}"
    create_topic(node.bootstrap, topic, 1)
    before = node.rss_bytes
    batch = batch_of(bomb(codec), codec=codec, count=1)
    assert len(batch) < 1_000_000
    with RawConnection(node.address) as raw:
        raw.produce(topic, batch)
        raw.list_offset(topic, 1)
        raw.list_offset(topic, -3)
        raw.fetch(topic, 0)
    assert node.rss_bytes - before < GROWTH


@pytest.mark.parametrize(
    "batch",
    [
        b"",
        b"\0" * 61,
        build_batch(b"x")[:-1],
        build_batch(b"x")[:40],
        build_batch(b"x") + b"\0" * 5,
        batch_of(b"\x0c\0\0\0\1\0\0", codec="none", count=1, crc=1),
        batch_of(b"", codec="none", count=0),
        batch_of(b"", codec="none", count=-1),
        batch_of(b"\x0c\0\0\0\1\0\0", codec="none", count=2**31 - 1),
        batch_of(b"\x0c\0\0\0\1\0\0", codec="none", count=1, last_delta=2**31 - 1),
        batch_of(b"\x0c\0\0\0\1\0\0", codec="none", count=5, last_delta=-3),
        struct.pack(">qiib", 0, 2**31 - 1, 0, 2) + bytes(50),
        struct.pack(">qiib", 0, -1, 0, 2) + bytes(50),
        struct.pack(">qiib", 0, 100, 0, 9) + bytes(100),
    ],
    ids=[
        "empty", "zeros", "cut", "cut in its header", "more behind it", "wrong crc", "no records", "negative count",
        "huge count", "huge delta", "negative delta", "huge length", "negative length", "unknown magic",
    ],
)  # fmt: skip
def test_a_batch_that_is_none_is_refused_and_leaves_no_trace(node: Node, batch: bytes) -> None:
    with RawConnection(node.address) as raw:
        end = raw.list_offset("decent", -1).offset
        answer = raw.produce("decent", batch)
        assert answer.error_code != 0, "accepted"
        assert raw.list_offset("decent", -1).offset == end


def test_one_bad_batch_among_good_ones_is_refused_alone(node: Node) -> None:
    create_topic(node.bootstrap, "pair", 2)
    request = produce_request("pair", build_batch(b"good"), partition=1)
    bad = bytearray(build_batch(b"bad"))
    bad[-1] ^= 1
    extra = produce_request("pair", bytes(bad), partition=0)
    request.topic_data[0].partition_data.insert(0, extra.topic_data[0].partition_data[0])
    with RawConnection(node.address) as raw:
        answer = raw.call(request, ProduceResponse)
        codes = {part.index: part.error_code for part in answer.responses[0].partition_responses}
        assert codes == {0: 2, 1: 0}
        assert read_values(raw.fetch("pair", 0, partition=1).records) == {0: b"good"}
