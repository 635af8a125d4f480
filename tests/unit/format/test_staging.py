"""Keys and manifests of what sinks stage, and batches that get a producer."""

from __future__ import annotations

from uuid import UUID

import pytest

from streamhouse.format.batch import check_produced, read_header, stamp_producer
from streamhouse.format.object_keys import manifest_key, parse_staging_key, staged_object_key
from streamhouse.format.records import Record, decode_records, encode_records
from streamhouse.format.staging import Manifest, StagedObject, StagedRun, decode_manifest, encode_manifest
from streamhouse.model.errors import CorruptData
from streamhouse.objects.checks import check_key

UNIQUE = UUID(int=0xABC)


@pytest.mark.parametrize("sink_id", ["sink", "a.b-c_d", "0" * 128, str(UNIQUE)])
@pytest.mark.parametrize("batch_id", [0, 17, 2**63 - 1])
def test_a_key_says_whose_batch_it_is_of(sink_id: str, batch_id: int) -> None:
    for key in (staged_object_key(sink_id, batch_id, 123_456, UNIQUE), manifest_key(sink_id, batch_id, UNIQUE)):
        assert parse_staging_key(check_key(key)) == (sink_id, batch_id)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "staging/sink/x.stage",
        "staging/../00000000000000000000-00000-00000000000000000000000000000abc.stage",
        "staging/a/b/00000000000000000000-00000-00000000000000000000000000000abc.stage",
        "staging/sink/09999999999999999999-00000-00000000000000000000000000000abc.stage",
        "segments/sink/00000000000000000000-00000-00000000000000000000000000000abc.stage",
        "staging/sink/00000000000000000000-00000-00000000000000000000000000000abc.strm",
    ],
)
def test_other_keys_are_nobodys(key: str) -> None:
    assert parse_staging_key(key) is None


def test_a_manifest_comes_back_as_it_was() -> None:
    run = StagedRun(topic="orders", partition=1, start_byte=0, end_byte=100, record_count=2)
    manifest = Manifest(
        sink_id="sink", batch_id=3, topics={"orders": UNIQUE}, objects=[StagedObject(key="k", runs=[run])]
    )
    assert decode_manifest(encode_manifest(manifest)) == manifest


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"sink_id": 1}'])
def test_a_damaged_manifest_is_said_to_be_so(data: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_manifest(data)


def test_a_batch_gets_a_producer_and_stays_the_same_otherwise() -> None:
    records = [Record(number, 5, b"k", b"v%d" % number) for number in range(3)]
    plain = encode_records(records)
    stamped = stamp_producer(plain, 2**40, 32767, 2**31 - 1)
    header = check_produced(memoryview(stamped))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 32767, 2**31 - 1)
    unstamped = read_header(plain)._replace(producer_id=2**40, producer_epoch=32767, base_sequence=2**31 - 1)
    assert header._replace(crc=0) == unstamped._replace(crc=0)
    assert decode_records(stamped) == records
