"""Any bytes survive any codec; any damage is our error, never another's and never more memory than the limit."""

from __future__ import annotations

import tracemalloc

from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from format_samples.strategies import codecs, damaged
from streamhouse.format.batch import check_produced, recompress
from streamhouse.format.compression import Codec, compress, decompress
from streamhouse.format.records import Record, decode_columns, encode_records
from streamhouse.model.errors import CorruptBatch, InvalidInput

contents = st.binary(max_size=500) | st.builds(
    lambda piece, times: piece * times, st.binary(max_size=20), st.integers(0, 5_000)
)


@given(codec=codecs, data=contents)
def test_any_bytes_survive_any_codec(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data), len(data))) == data


@settings(max_examples=400)
@given(codec=st.integers(0, 7), data=contents, draws=st.data())
def test_damaged_data_is_our_error_or_within_the_limit(codec: int, data: bytes, draws: st.DataObject) -> None:
    whole = compress(Codec(codec), data) if codec <= Codec.ZSTD else data
    try:
        assert len(decompress(codec, draws.draw(damaged(whole)), 20_000)) <= 20_000
    except CorruptBatch:
        pass


@given(codec=st.integers(1, 4), noise=st.binary(max_size=200))
def test_noise_is_our_error_or_within_the_limit(codec: int, noise: bytes) -> None:
    try:
        assert len(decompress(codec, noise, 1_000)) <= 1_000
    except CorruptBatch:
        pass


@settings(max_examples=60)
@given(codec=codecs, draws=st.data())
def test_decoding_a_damaged_batch_takes_bounded_memory(codec: Codec, draws: st.DataObject) -> None:
    batch = encode_records([Record(0, 0, b"k", bytes(2_000), (("h", b"x"),))] * 5, codec=codec)
    broken = batch[:61] + draws.draw(damaged(batch[61:]))
    tracemalloc.start()
    try:
        decode_columns(reseal(broken), limit_bytes=50_000)
    except InvalidInput:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2_000_000


@settings(max_examples=300)
@given(codec=codecs, draws=st.data())
def test_any_bytes_sent_as_a_batch_are_accepted_or_our_error(codec: Codec, draws: st.DataObject) -> None:
    batch = encode_records([Record(0, 0, b"k", b"value", (("h", None),))] * 3, codec=codec)
    broken = draws.draw(damaged(batch))
    for sent in (broken, reseal(broken)):
        try:
            check_produced(memoryview(sent))
            recompress(sent, Codec.LZ4, limit_bytes=10_000)
        except InvalidInput:
            pass
        try:
            decode_columns(sent, limit_bytes=10_000)
        except InvalidInput:
            pass


def reseal(batch: bytes) -> bytes:
    """The batch with a right length and CRC, so that what is wrong inside is reached."""
    if len(batch) < 61:
        return batch
    sized = batch[:8] + (len(batch) - 12).to_bytes(4, "big") + batch[12:]
    return sized[:17] + crc32c(sized[21:]).to_bytes(4, "big") + sized[21:]
