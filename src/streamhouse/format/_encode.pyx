# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns to records, over raw memory and without the GIL.

The twin in encode_twin.py says what it must do. Columns may come from anywhere, so every offset in them is checked
against the data that it points into, and nothing is written past what was measured.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from streamhouse.format.columns import EncodedRows
from streamhouse.model.errors import InvalidInput

cdef extern from *:
    """
    #define streamhouse_subtract_overflows(a, b, rest) __builtin_sub_overflow((int64_t)(a), (int64_t)(b), rest)
    """
    bint subtract_overflows "streamhouse_subtract_overflows"(int64_t a, int64_t b, int64_t *rest) nogil

cdef enum:
    COLUMN_COUNT = 14
    OFFSETS = 0
    TIMESTAMPS = 1
    KEY_OFFSETS = 2
    KEY_DATA = 3
    KEY_VALIDITY = 4
    VALUE_OFFSETS = 5
    VALUE_DATA = 6
    VALUE_VALIDITY = 7
    LIST_OFFSETS = 8
    HEADER_KEY_OFFSETS = 9
    HEADER_KEY_DATA = 10
    HEADER_VALUE_OFFSETS = 11
    HEADER_VALUE_DATA = 12
    HEADER_VALUE_VALIDITY = 13

cdef enum Outcome:
    FITS
    # Too far from the batch's first record for the deltas of one batch.
    ANOTHER_BATCH
    INVALID


cdef struct Blob:
    # Null when `data` is NULL.
    const uint8_t *data
    int64_t size


cdef struct Row:
    int64_t timestamp
    int64_t timestamp_delta
    int64_t offset_delta
    Blob key
    Blob value
    int64_t first_header
    int64_t end_header
    int64_t body_bytes


cdef struct Batch:
    int64_t first_row
    bint numbered
    int64_t base_offset
    int64_t base_timestamp
    int64_t last_offset_delta
    int64_t max_timestamp


cdef class Table:
    """The columns' buffers, held for as long as they are read."""

    cdef Py_buffer[COLUMN_COUNT] columns
    cdef int held
    cdef int64_t count
    cdef int64_t header_count

    def __cinit__(self, columns):
        self.held = 0
        self.count = columns.count
        self.header_count = columns.header_count
        for buf in (
            columns.offsets,
            columns.timestamps,
            columns.key_offsets,
            columns.key_data,
            columns.key_validity,
            columns.value_offsets,
            columns.value_data,
            columns.value_validity,
            columns.header_list_offsets,
            columns.header_key_offsets,
            columns.header_key_data,
            columns.header_value_offsets,
            columns.header_value_data,
            columns.header_value_validity,
        ):
            memset(&self.columns[self.held], 0, sizeof(Py_buffer))
            if buf is not None:
                PyObject_GetBuffer(buf, &self.columns[self.held], PyBUF_SIMPLE)
            self.held += 1
        if self.count < 0 or self.header_count < 0 or not self.large_enough():
            raise InvalidInput("a column is shorter than its count says")

    def __dealloc__(self):
        cdef int i
        for i in range(self.held):
            PyBuffer_Release(&self.columns[i])

    cdef bint large_enough(self):
        cdef int i
        for i in (OFFSETS, TIMESTAMPS):
            if self.columns[i].len < 8 * self.count:
                return False
        for i in (KEY_OFFSETS, VALUE_OFFSETS, LIST_OFFSETS):
            if self.columns[i].len < 4 * (self.count + 1):
                return False
        if self.columns[HEADER_VALUE_OFFSETS].len < 4 * (self.header_count + 1):
            return False
        for i in (KEY_VALIDITY, VALUE_VALIDITY):
            if self.columns[i].buf != NULL and self.columns[i].len < (self.count + 7) >> 3:
                return False
        if self.columns[HEADER_VALUE_VALIDITY].buf == NULL:
            return True
        return self.columns[HEADER_VALUE_VALIDITY].len >= (self.header_count + 7) >> 3


# Loads through memcpy, as a buffer from elsewhere need not be aligned.
cdef inline int64_t int64_at(const Py_buffer *column, int64_t index) noexcept nogil:
    cdef int64_t value
    memcpy(&value, <const uint8_t *>column.buf + 8 * index, 8)
    return value


cdef inline int64_t int32_at(const Py_buffer *column, int64_t index) noexcept nogil:
    cdef int32_t value
    memcpy(&value, <const uint8_t *>column.buf + 4 * index, 4)
    return value


cdef inline bint blob_at(const Py_buffer *columns, int64_t index, bint nullable, Blob *blob) noexcept nogil:
    """The value at an index of the three columns (offsets, data, validity) that start here."""
    cdef int64_t start = int32_at(&columns[0], index)
    cdef int64_t end = int32_at(&columns[0], index + 1)
    if start < 0 or end < start or end > columns[1].len:
        return False
    blob.data = <const uint8_t *>columns[1].buf + start
    blob.size = end - start
    if nullable and columns[2].buf != NULL:
        if not (<const uint8_t *>columns[2].buf)[index >> 3] >> (index & 7) & 1:
            blob.data = NULL
            blob.size = 0
    return True


cdef inline int varint_bytes(int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


cdef inline uint8_t *put_varint(uint8_t *out, int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while raw > 0x7F:
        out[0] = <uint8_t>(raw & 0x7F | 0x80)
        out += 1
        raw >>= 7
    out[0] = <uint8_t>raw
    return out + 1


cdef inline int64_t blob_bytes(const Blob *blob) noexcept nogil:
    return varint_bytes(blob.size) + blob.size if blob.data != NULL else 1


cdef inline uint8_t *put_blob(uint8_t *out, const Blob *blob) noexcept nogil:
    if blob.data == NULL:
        return put_varint(out, -1)
    out = put_varint(out, blob.size)
    memcpy(out, blob.data, blob.size)
    return out + blob.size


cdef Outcome row_at(const Py_buffer *columns, int64_t header_count, const Batch *batch, int64_t index, Row *row) noexcept nogil:
    """Everything about a row that its record needs, the record's size included."""
    cdef Blob key, value
    cdef int64_t header
    row.timestamp = int64_at(&columns[TIMESTAMPS], index)
    row.offset_delta = index - batch.first_row
    if not batch.numbered and subtract_overflows(int64_at(&columns[OFFSETS], index), batch.base_offset, &row.offset_delta):
        return INVALID
    if row.offset_delta <= batch.last_offset_delta:
        return INVALID
    if row.offset_delta > INT32_MAX or subtract_overflows(row.timestamp, batch.base_timestamp, &row.timestamp_delta):
        return ANOTHER_BATCH
    if not blob_at(&columns[KEY_OFFSETS], index, True, &row.key):
        return INVALID
    if not blob_at(&columns[VALUE_OFFSETS], index, True, &row.value):
        return INVALID
    row.first_header = int32_at(&columns[LIST_OFFSETS], index)
    row.end_header = int32_at(&columns[LIST_OFFSETS], index + 1)
    if row.first_header < 0 or row.end_header < row.first_header or row.end_header > header_count:
        return INVALID
    row.body_bytes = 1 + varint_bytes(row.timestamp_delta) + varint_bytes(row.offset_delta)
    row.body_bytes += blob_bytes(&row.key) + blob_bytes(&row.value) + varint_bytes(row.end_header - row.first_header)
    for header in range(row.first_header, row.end_header):
        if not blob_at(&columns[HEADER_KEY_OFFSETS], header, False, &key):
            return INVALID
        if not blob_at(&columns[HEADER_VALUE_OFFSETS], header, True, &value):
            return INVALID
        row.body_bytes += blob_bytes(&key) + blob_bytes(&value)
    return FITS if row.body_bytes <= INT32_MAX else INVALID


cdef uint8_t *put_row(uint8_t *out, const Py_buffer *columns, const Row *row) noexcept nogil:
    """Write the record, which has room for as much as `row` says; NULL if a header is not what it was a moment ago."""
    cdef uint8_t *end = out + varint_bytes(row.body_bytes) + row.body_bytes
    cdef Blob key, value
    cdef int64_t header
    out = put_varint(out, row.body_bytes)
    out[0] = 0
    out = put_varint(out + 1, row.timestamp_delta)
    out = put_varint(out, row.offset_delta)
    out = put_blob(out, &row.key)
    out = put_blob(out, &row.value)
    out = put_varint(out, row.end_header - row.first_header)
    for header in range(row.first_header, row.end_header):
        if not blob_at(&columns[HEADER_KEY_OFFSETS], header, False, &key):
            return NULL
        if not blob_at(&columns[HEADER_VALUE_OFFSETS], header, True, &value):
            return NULL
        if blob_bytes(&key) + blob_bytes(&value) > end - out:
            return NULL
        out = put_blob(out, &key)
        out = put_blob(out, &value)
    return out


def encode_rows(columns, int64_t first_row, int64_t max_bytes, bint numbered):
    cdef Table table = Table(columns)
    cdef Batch batch
    cdef Row row
    cdef Outcome outcome = FITS
    cdef int64_t end_row = first_row
    cdef int64_t total = 0
    cdef int64_t record_bytes, index
    cdef bytes records
    cdef uint8_t *out
    cdef uint8_t *out_end
    if not 0 <= first_row < table.count:
        raise InvalidInput(f"there is no row {first_row} in {table.count}")
    batch.first_row = first_row
    batch.numbered = numbered
    batch.base_offset = int64_at(&table.columns[OFFSETS], first_row)
    batch.base_timestamp = batch.max_timestamp = int64_at(&table.columns[TIMESTAMPS], first_row)
    batch.last_offset_delta = -1
    with nogil:
        while end_row < table.count:
            outcome = row_at(table.columns, table.header_count, &batch, end_row, &row)
            if outcome != FITS:
                break
            record_bytes = varint_bytes(row.body_bytes) + row.body_bytes
            if end_row > first_row and total + record_bytes > max_bytes:
                break
            total += record_bytes
            batch.last_offset_delta = row.offset_delta
            batch.max_timestamp = max(batch.max_timestamp, row.timestamp)
            end_row += 1
    if outcome == INVALID:
        raise InvalidInput(f"the columns do not make a record at row {end_row}")
    records = PyBytes_FromStringAndSize(NULL, total)
    out = <uint8_t *>PyBytes_AS_STRING(records)
    out_end = out + total
    with nogil:
        batch.last_offset_delta = -1
        for index in range(first_row, end_row):
            outcome = row_at(table.columns, table.header_count, &batch, index, &row)
            if outcome != FITS or varint_bytes(row.body_bytes) + row.body_bytes > out_end - out:
                outcome = INVALID
                break
            batch.last_offset_delta = row.offset_delta
            out = put_row(out, table.columns, &row)
            if out == NULL:
                break
    if outcome == INVALID or out != out_end:
        raise InvalidInput("the columns changed while they were encoded")
    return EncodedRows(records, end_row, batch.last_offset_delta, batch.max_timestamp)
