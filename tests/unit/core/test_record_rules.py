"""What a topic asks of the records of a batch: all or nothing, with the bad ones named."""

from __future__ import annotations

import pytest

from format_samples.batches import batch
from format_samples.hostile import inflating, lying, many_headers
from format_samples.kernels import Kernel, both_kernels, using
from log_parts.leaders import log_config
from streamhouse.core.record_rules import RecordRules, are_cheap
from streamhouse.format.batch import check_produced, read_header, stamp_max_timestamp
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, columns_of, decode_records, encode_records
from streamhouse.model.errors import BatchTooLarge, CorruptBatch, InvalidRecords, InvalidTimestamps

NOW_MS = 1_700_000_000_000
NO_TIME_MS = -1


def rules(**config: str) -> RecordRules:
    return RecordRules.of(log_config(**config))


def produced(*records: tuple[bytes | None, int], codec: Codec = Codec.NONE) -> memoryview:
    """Of keys and times."""
    return memoryview(
        encode_records([Record(index, time, key, b"v") for index, (key, time) in enumerate(records)], codec=codec)
    )


def test_most_topics_ask_nothing() -> None:
    assert rules().are_none
    assert rules(cleanup_policy="delete", message_timestamp_type="LogAppendTime").are_none
    assert not rules().must_look(read_header(produced((None, 1))), NOW_MS)
    for config in (
        {"cleanup_policy": "compact"},
        {"cleanup_policy": "compact,delete"},
        {"message_timestamp_before_max_ms": "1"},
        {"message_timestamp_after_max_ms": "1"},
        {"streamhouse_validate": "true"},
        {"compression_type": "lz4"},
    ):
        assert not rules(**config).are_none, config


@both_kernels
@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_takes_records_with_keys(chosen: Kernel, codec: Codec) -> None:
    compacted = rules(cleanup_policy="compact,delete")
    sent = produced((b"a", 1), (b"", 2), codec=codec)
    with using(chosen):
        assert compacted.admit(sent, NOW_MS).batch is sent
        with pytest.raises(InvalidRecords, match="2 of a batch's 3 records") as refusal:
            compacted.admit(produced((None, 1), (b"k", 2), (None, 3), codec=codec), NOW_MS)
    assert not isinstance(refusal.value, InvalidTimestamps)
    assert [refused.position for refused in refusal.value.refused] == [0, 2]


@both_kernels
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_times_are_taken_within_limits_that_belong_to_them(chosen: Kernel, codec: Codec) -> None:
    timed = rules(message_timestamp_before_max_ms="100", message_timestamp_after_max_ms="50")
    good = produced((None, NOW_MS - 100), (None, NO_TIME_MS), (None, NOW_MS + 50), codec=codec)
    bad = produced((None, NOW_MS), (None, NOW_MS - 101), (None, NOW_MS + 51), codec=codec)
    with using(chosen):
        assert timed.admit(good, NOW_MS).batch is good
        with pytest.raises(InvalidTimestamps) as refusal:
            timed.admit(bad, NOW_MS)
    assert [refused.position for refused in refusal.value.refused] == [1, 2]
    assert str(NOW_MS + 51) in refusal.value.refused[1].why


def test_the_future_is_judged_by_the_header() -> None:
    timed = rules(message_timestamp_after_max_ms="50")
    assert not timed.must_look(read_header(produced((None, NOW_MS + 50))), NOW_MS)
    assert timed.must_look(read_header(produced((None, NOW_MS + 51))), NOW_MS)


def test_one_time_that_is_not_allowed_decides_the_kind() -> None:
    both = rules(cleanup_policy="compact", message_timestamp_before_max_ms="100")
    with pytest.raises(InvalidTimestamps) as refusal:
        both.admit(produced((None, NOW_MS), (b"k", 1)), NOW_MS)
    assert [refused.position for refused in refusal.value.refused] == [0, 1]


def test_what_was_judged_before_is_only_stored_as_the_topic_wants_it() -> None:
    strict = rules(
        cleanup_policy="compact",
        message_timestamp_before_max_ms="100",
        message_timestamp_after_max_ms="100",
        streamhouse_validate="true",
        compression_type="zstd",
    )
    keyless = produced((None, 1), (None, NOW_MS + 1_000))
    admitted = strict.once_admitted.admit(keyless, NOW_MS)

    assert admitted.header.codec == Codec.ZSTD
    assert decode_records(admitted.batch) == decode_records(keyless)
    assert rules(cleanup_policy="compact", streamhouse_validate="true").once_admitted.are_none


def test_times_of_producers_do_not_count_where_the_broker_stamps() -> None:
    stamped = rules(
        message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="1", message_timestamp_after_max_ms="1"
    )
    assert stamped.are_none


def test_no_more_than_a_thousand_are_named() -> None:
    with pytest.raises(InvalidRecords, match="1000 or more of a batch's 5000 ") as refusal:
        rules(cleanup_policy="compact").admit(produced(*[(None, 1)] * 5_000, codec=Codec.LZ4), NOW_MS)
    assert len(refusal.value.refused) == 1_000
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("config", [{"streamhouse_validate": "true"}, {"cleanup_policy": "compact"}])
def test_a_batch_whose_count_lies_is_refused(codec: Codec, config: dict[str, str]) -> None:
    lie = memoryview(lying(3, codec=codec)) if codec else memoryview(batch(count=2, records=b"\x0c" + bytes(20)))
    assert check_produced(lie).record_count > 1
    with pytest.raises(InvalidRecords, match="not valid"):
        rules(**config).admit(lie, NOW_MS)


@pytest.mark.parametrize(
    "config", [{"streamhouse_validate": "true"}, {"cleanup_policy": "compact"}, {"compression_type": "gzip"}]
)
def test_what_becomes_too_large_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(BatchTooLarge, match="16777216 bytes"):
        rules(**config).admit(memoryview(inflating()), NOW_MS)
    assert rules(**config).admit(memoryview(inflating(10**6)), NOW_MS).header.record_count == 1
    assert rules(**config).admit(memoryview(many_headers()), NOW_MS).header.record_count == 1


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("given", list(Codec))
def test_a_topic_with_a_codec_gets_every_batch_with_it(given: Codec, wanted: str) -> None:
    sent = produced((b"a", 1), (None, 2), codec=given)
    admitted = rules(compression_type=wanted).admit(sent, NOW_MS)

    assert admitted.header == check_produced(admitted.batch)
    assert admitted.header.codec == (Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()])
    assert decode_records(admitted.batch) == decode_records(sent)


def test_a_batch_that_cannot_be_decompressed_is_refused() -> None:
    garbage = memoryview(batch(records=b"nonsense", attributes=Codec.GZIP))
    with pytest.raises(InvalidRecords, match="gzip"):
        rules(compression_type="zstd").admit(garbage, NOW_MS)


def test_what_does_not_match_its_crc_is_no_batch() -> None:
    sent = bytearray(produced((b"k", 1)))
    sent[-1] ^= 1
    with pytest.raises(CorruptBatch):
        rules(cleanup_policy="compact").admit(memoryview(sent), NOW_MS)


@both_kernels
@pytest.mark.parametrize("compression", ["producer", "lz4"])
def test_a_largest_timestamp_that_was_left_out_is_put_in(chosen: Kernel, compression: str) -> None:
    honest = produced((None, 5), (None, 9), (None, 7), codec=Codec.ZSTD)
    with using(chosen):
        admitted = rules(compression_type=compression).admit(memoryview(stamp_max_timestamp(honest, -1)), NOW_MS)
    assert admitted.header.max_timestamp_ms == 9
    assert decode_records(admitted.batch) == decode_records(honest)


def test_small_batches_without_a_codec_are_cheap_to_look_at() -> None:
    small = produced((b"k", 1))
    assert are_cheap([small] * 10)
    assert not are_cheap([small, produced((b"k", 1), codec=Codec.LZ4)])
    assert not are_cheap([produced((bytes(20_000), 1))])


def test_many_small_batches_are_not_cheap_to_look_at() -> None:
    batch = produced((bytes(10_000), 1))
    assert are_cheap([batch] * 6)
    assert not are_cheap([batch] * 7)


def test_rows_are_divided_into_those_that_are_allowed_and_the_others() -> None:
    both = rules(cleanup_policy="compact", message_timestamp_before_max_ms="100", message_timestamp_after_max_ms="50")
    times = [(b"k", NOW_MS), (b"k", NOW_MS), (None, NOW_MS), (b"k", NOW_MS - 101), (b"k", NOW_MS), (b"k", NOW_MS + 51)]
    columns = columns_of([Record(0, time_ms, key, b"v") for key, time_ms in times])
    divided = [(rows, type(refusal)) for rows, refusal in both.divide(columns, NOW_MS)]
    assert divided == [
        (range(2), type(None)),
        (range(2, 3), InvalidRecords),
        (range(3, 4), InvalidTimestamps),
        (range(4, 5), type(None)),
        (range(5, 6), InvalidTimestamps),
    ]
    assert list(both.divide(columns_of([]), NOW_MS)) == []
    assert list(rules(cleanup_policy="compact").divide(columns_of([Record(0, 1, b"k", b"v")]), NOW_MS)) == [
        (range(1), None)
    ]
