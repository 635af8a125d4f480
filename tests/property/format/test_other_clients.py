"""Batches of other clients' encoders decode to what went in, and ours decode in theirs."""

from __future__ import annotations

from types import ModuleType

import pytest
from aiokafka.record import default_records as aiokafka_records
from hypothesis import given, settings
from kafka.record import default_records as kafka_python_records

from format_samples.kernels import Kernel, both_kernels, using
from format_samples.strategies import record_lists
from streamhouse.format.batch import check_produced
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, decode_records, encode_records

clients = pytest.mark.parametrize(
    "client",
    [pytest.param(kafka_python_records, id="kafka-python"), pytest.param(aiokafka_records, id="aiokafka")],
)
every_codec = pytest.mark.parametrize("codec", list(Codec))

rows = record_lists(max_size=12).map(
    lambda records: [
        record._replace(offset=offset, timestamp_ms=max(0, record.timestamp_ms))
        for offset, record in enumerate(records)
    ]
)


@clients
@every_codec
@both_kernels
@settings(max_examples=20)
@given(records=rows)
def test_their_batches_decode_here(client: ModuleType, codec: Codec, chosen: Kernel, records: list[Record]) -> None:
    builder = client.DefaultRecordBatchBuilder(2, int(codec), False, -1, -1, -1, 10**6)
    for record in records:
        builder.append(*record[:4], list(record.headers))
    sent = bytes(builder.build())
    assert check_produced(memoryview(sent)).record_count == len(records)
    with using(chosen):
        assert decode_records(sent) == records


@clients
@every_codec
@both_kernels
@settings(max_examples=20)
@given(records=rows)
def test_our_batches_decode_there(client: ModuleType, codec: Codec, chosen: Kernel, records: list[Record]) -> None:
    with using(chosen):
        sent = encode_records(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=5)
    received = client.DefaultRecordBatch(sent)
    assert received.validate_crc()
    assert (received.producer_id, received.producer_epoch, received.base_sequence) == (7, 1, 5)
    assert received.max_timestamp == max(record.timestamp_ms for record in records)
    assert [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)) for record in received
    ] == records


@clients
@both_kernels
@settings(max_examples=20)
@given(records=rows)
def test_uncompressed_batches_are_the_same_bytes(client: ModuleType, chosen: Kernel, records: list[Record]) -> None:
    builder = client.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 10**6)
    for record in records:
        builder.append(*record[:4], list(record.headers))
    with using(chosen):
        ours = encode_records(records)
    theirs = bytes(builder.build())
    # The leader epoch is the broker's to fill in; clients leave different things there.
    assert (ours[:12], ours[16:]) == (theirs[:12], theirs[16:])
