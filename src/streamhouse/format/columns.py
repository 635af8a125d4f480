"""Records as columns in Arrow's memory layout, and the raw record sections that they are decoded from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from streamhouse.model.buffer import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """`count` records; integers are in the machine's byte order, so Arrow can take every buffer as it is.

    Offsets and timestamps are int64. Each binary column has int32 offsets (one more than it has values), its values
    end to end, and a validity bitmap (least significant bit first, 1 for a value) that is None when nothing is null.
    Headers are a list per record: list offsets into the header columns, whose keys are UTF-8 and never null.
    """

    count: int
    offsets: Buffer
    timestamps: Buffer
    key_offsets: Buffer
    key_data: Buffer
    key_validity: Buffer | None
    value_offsets: Buffer
    value_data: Buffer
    value_validity: Buffer | None
    header_list_offsets: Buffer
    header_key_offsets: Buffer
    header_key_data: Buffer
    header_value_offsets: Buffer
    header_value_data: Buffer
    header_value_validity: Buffer | None

    @property
    def header_count(self) -> int:
        return len(self.header_key_offsets) // 4 - 1


class Section(NamedTuple):
    """The decompressed records of one batch, with what its header says of them.

    `append_timestamp_ms` replaces every record's timestamp where the broker stamped the batch.
    """

    records: Buffer
    base_offset: int
    last_offset_delta: int
    base_timestamp_ms: int
    append_timestamp_ms: int | None
    record_count: int


class EncodedRows(NamedTuple):
    """The uncompressed records of one batch: rows from some first one up to `next_row`."""

    records: bytes
    next_row: int
    last_offset_delta: int
    max_timestamp_ms: int
