"""The CRC in C is the one that Kafka uses, with the processor's instruction and without."""

from __future__ import annotations

import crc32c as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.format import _scan

implementations = pytest.mark.parametrize("crc", [_scan.crc32c, _scan.crc32c_portable])


@implementations
def test_it_gives_the_published_check_values(crc) -> None:
    # RFC 3720, appendix B.4, and the usual check string.
    assert crc(b"123456789") == 0xE3069283
    assert crc(bytes(32)) == 0x8A9136AA
    assert crc(b"\xff" * 32) == 0x62A8AB43
    assert crc(bytes(range(32))) == 0x46DD794E
    assert crc(b"") == 0


@implementations
@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 255, 256, 767, 768, 769, 1535, 4096, 12287, 12288, 12289, 50_001])
def test_it_agrees_with_the_reference_at_every_lane_boundary(crc, size: int) -> None:
    data = bytes((index * 167 + index // 251) & 0xFF for index in range(size + 3))
    for start in range(3):
        assert crc(data[start:]) == reference.crc32c(data[start:])


@implementations
@settings(deadline=None)
@given(data=st.binary(max_size=3_000), cut=st.integers(0, 3_000))
def test_a_chain_of_calls_equals_one_call(crc, data: bytes, cut: int) -> None:
    assert crc(data[cut:], crc(data[:cut])) == reference.crc32c(data)
