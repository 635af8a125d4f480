"""What a worker says of a segment that it cannot read the keys of."""

from __future__ import annotations

from typing import Any

import pytest

from format_samples.hostile import lying
from streamhouse.format.segment import encode_segment
from streamhouse.model.errors import CorruptData
from streamhouse.spark.jobs.survivors import KeyPointer, _index

KEY = "segments/of-a-topic"


class OneObject:
    """An object store with one object."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self) -> OneObject:
        return self

    def get(self, key: str) -> bytes:
        assert key == KEY
        return self._content


def test_a_batch_that_lies_about_its_count_is_named_with_its_segment() -> None:
    objects: Any = OneObject(b"".join(encode_segment([lying(5)], epoch=1).parts))
    pointer = KeyPointer(objects=objects, log=0, segment=0, key=KEY, record_count=5, drops_tombstones=False, parts=1)
    with pytest.raises(CorruptData, match=f"segment {KEY} cannot be compacted: .* at offset 0 ") as refusal:
        _index(pointer)
    assert "maintain verify" in str(refusal.value)
