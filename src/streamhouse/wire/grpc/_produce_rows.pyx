# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reads the records of a produce request into columns, over raw memory and without the GIL.

The twin in produce_rows_twin.py says what it must do. A first walk counts and checks, a second one fills what was
allocated by what the first one counted.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from streamhouse.format.columns import Columns
from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.grpc.produce_message import NOT_GIVEN, ProduceRows, too_many_parts

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5

cdef struct Field:
    uint32_t number
    uint32_t kind
    uint64_t value
    const uint8_t *data
    int64_t size

cdef struct Blob:
    const uint8_t *data
    int64_t size
    bint is_there

cdef struct Totals:
    int64_t records
    int64_t headers
    int64_t key_bytes
    int64_t value_bytes
    int64_t header_key_bytes
    int64_t header_value_bytes
    int64_t null_keys
    int64_t null_values
    int64_t null_header_values
    Blob topic
    bint too_many

cdef struct Column:
    int32_t *offsets
    char *data
    uint8_t *validity

cdef struct Out:
    int64_t *timestamps
    int32_t *partitions
    int32_t *list_offsets
    Column keys
    Column values
    Column header_keys
    Column header_values
    int64_t now_ms
    int32_t not_given


cdef const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value) noexcept nogil:
    cdef uint64_t number = 0
    cdef int shift = 0
    while at < end and shift < 70:
        number |= <uint64_t>(at[0] & 0x7F) << shift if shift < 64 else 0
        if at[0] < 0x80:
            value[0] = number
            return at + 1
        at += 1
        shift += 7
    return NULL


cdef const uint8_t *read_field(const uint8_t *at, const uint8_t *end, Field *field) noexcept nogil:
    """Returns where the next field begins, or NULL if this is none."""
    cdef uint64_t tag
    at = read_varint(at, end, &tag)
    if at == NULL or tag >> 32 or tag < 8:
        return NULL
    field.number = <uint32_t>(tag >> 3)
    field.kind = <uint32_t>(tag & 7)
    if field.kind == VARINT:
        return read_varint(at, end, &field.value)
    if field.kind == BYTES:
        at = read_varint(at, end, &field.value)
        if at == NULL or field.value > <uint64_t>(end - at):
            return NULL
        field.data = at
        field.size = <int64_t>field.value
        return at + field.size
    if field.kind == FIXED64:
        return at + 8 if end - at >= 8 else NULL
    if field.kind == FIXED32:
        return at + 4 if end - at >= 4 else NULL
    return NULL


cdef inline void take(Blob *blob, const Field *field) noexcept nogil:
    blob.data = field.data
    blob.size = field.size
    blob.is_there = True


cdef void put(Column *column, int64_t row, const Blob *blob) noexcept nogil:
    cdef int32_t start = column.offsets[row]
    if blob.is_there:
        if blob.size > 0:
            memcpy(column.data + start, blob.data, blob.size)
        column.offsets[row + 1] = start + <int32_t>blob.size
    else:
        column.offsets[row + 1] = start
        if column.validity != NULL:
            column.validity[row >> 3] &= <uint8_t>~(1 << (row & 7))


cdef bint walk_header(const uint8_t *at, const uint8_t *end, Totals *totals, Out *out) noexcept nogil:
    cdef Field field
    cdef Blob key, value
    # A key that is not given is empty text, and no null.
    key.data, key.size, key.is_there = NULL, 0, True
    value.data, value.size, value.is_there = NULL, 0, False
    while at < end:
        at = read_field(at, end, &field)
        if at == NULL:
            return False
        if field.kind == BYTES and field.number == 1:
            take(&key, &field)
        elif field.kind == BYTES and field.number == 2:
            take(&value, &field)
    if out != NULL:
        put(&out.header_keys, totals.headers, &key)
        put(&out.header_values, totals.headers, &value)
    totals.headers += 1
    totals.header_key_bytes += key.size
    totals.header_value_bytes += value.size
    totals.null_header_values += not value.is_there
    return True


cdef bint walk_record(const uint8_t *at, const uint8_t *end, Totals *totals, Out *out, int64_t max_parts) noexcept nogil:
    cdef Field field
    cdef Blob key, value
    cdef uint64_t partition = 0, timestamp = 0
    cdef bint has_partition = False, has_timestamp = False
    key.data, key.size, key.is_there = NULL, 0, False
    value.data, value.size, value.is_there = NULL, 0, False
    while at < end:
        at = read_field(at, end, &field)
        if at == NULL:
            return False
        if field.kind == BYTES and field.number == 1:
            take(&key, &field)
        elif field.kind == BYTES and field.number == 2:
            take(&value, &field)
        elif field.kind == BYTES and field.number == 3:
            if not walk_header(field.data, field.data + field.size, totals, out):
                return False
            if totals.records + totals.headers > max_parts:
                totals.too_many = True
                return False
        elif field.kind == VARINT and field.number == 4:
            partition, has_partition = field.value, True
        elif field.kind == VARINT and field.number == 5:
            timestamp, has_timestamp = field.value, True
    if out != NULL:
        put(&out.keys, totals.records, &key)
        put(&out.values, totals.records, &value)
        out.partitions[totals.records] = <int32_t><uint32_t>partition if has_partition else out.not_given
        out.timestamps[totals.records] = <int64_t>timestamp if has_timestamp else out.now_ms
        out.list_offsets[totals.records + 1] = <int32_t>totals.headers
    totals.records += 1
    totals.key_bytes += key.size
    totals.value_bytes += value.size
    totals.null_keys += not key.is_there
    totals.null_values += not value.is_there
    return True


cdef bint walk(const uint8_t *at, const uint8_t *end, Totals *totals, Out *out, int64_t max_parts) noexcept nogil:
    """Whether all of it is a produce request, of no more parts than allowed."""
    cdef Field field
    memset(totals, 0, sizeof(Totals))
    while at < end:
        at = read_field(at, end, &field)
        if at == NULL:
            return False
        if field.kind == BYTES and field.number == 1:
            take(&totals.topic, &field)
        elif field.kind == BYTES and field.number == 2:
            if not walk_record(field.data, field.data + field.size, totals, out, max_parts):
                return False
            if totals.records + totals.headers > max_parts:
                totals.too_many = True
                return False
    return True


cdef bytes allocate(int64_t size):
    return PyBytes_FromStringAndSize(NULL, size)


cdef object begin_column(Column *column, int64_t count, int64_t size_bytes, int64_t nulls):
    """The buffers of a column, as Columns has them; the bitmap says that all is there until told otherwise."""
    offsets = allocate(4 * (count + 1))
    data = allocate(size_bytes)
    validity = None
    column.offsets = <int32_t *>PyBytes_AS_STRING(offsets)
    column.offsets[0] = 0
    column.data = PyBytes_AS_STRING(data)
    column.validity = NULL
    if nulls:
        validity = allocate((count + 7) // 8)
        column.validity = <uint8_t *>PyBytes_AS_STRING(validity)
        memset(column.validity, 0xFF, (count + 7) // 8)
        if count & 7:
            column.validity[count >> 3] = <uint8_t>((1 << (count & 7)) - 1)
    return offsets, data, validity


def read_rows(bytes message not None, int64_t now_ms, int64_t max_parts):
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(message)
    cdef const uint8_t *end = start + len(message)
    cdef Totals totals
    cdef Out out
    cdef bint is_whole
    with nogil:
        is_whole = walk(start, end, &totals, NULL, max_parts)
    if totals.too_many:
        raise too_many_parts(max_parts)
    if not is_whole:
        raise MalformedRequest("bytes that are not a produce request")
    cdef int64_t count = totals.records
    timestamps, partitions = allocate(8 * count), allocate(4 * count)
    list_offsets = allocate(4 * (count + 1))
    keys = begin_column(&out.keys, count, totals.key_bytes, totals.null_keys)
    values = begin_column(&out.values, count, totals.value_bytes, totals.null_values)
    header_keys = begin_column(&out.header_keys, totals.headers, totals.header_key_bytes, 0)
    header_values = begin_column(
        &out.header_values, totals.headers, totals.header_value_bytes, totals.null_header_values
    )
    out.timestamps = <int64_t *>PyBytes_AS_STRING(timestamps)
    out.partitions = <int32_t *>PyBytes_AS_STRING(partitions)
    out.list_offsets = <int32_t *>PyBytes_AS_STRING(list_offsets)
    out.list_offsets[0] = 0
    out.now_ms = now_ms
    out.not_given = NOT_GIVEN
    with nogil:
        walk(start, end, &totals, &out, max_parts)
    topic = totals.topic.data[: totals.topic.size] if totals.topic.is_there else b""
    return ProduceRows(
        topic,
        Columns(
            count=count,
            offsets=bytes(8 * count),
            timestamps=timestamps,
            key_offsets=keys[0],
            key_data=keys[1],
            key_validity=keys[2],
            value_offsets=values[0],
            value_data=values[1],
            value_validity=values[2],
            header_list_offsets=list_offsets,
            header_key_offsets=header_keys[0],
            header_key_data=header_keys[1],
            header_value_offsets=header_values[0],
            header_value_data=header_values[1],
            header_value_validity=header_values[2],
        ),
        partitions,
    )
