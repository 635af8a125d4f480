# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Records to columns, over raw memory and without the GIL.

The twin in decode_twin.py says what it must do. What comes from a batch is
not trusted: each read is checked against the section's end, and both passes check, as a buffer may change between.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, UINT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from streamhouse.format.columns import Columns
from streamhouse.model.errors import CorruptBatch, InvalidInput

cdef extern from *:
    """
    #define streamhouse_add_overflows(a, b, sum) __builtin_add_overflow((int64_t)(a), (int64_t)(b), sum)
    """
    bint add_overflows "streamhouse_add_overflows"(int64_t a, int64_t b, int64_t *total) nogil


cdef struct Reader:
    const uint8_t *at
    const uint8_t *end


cdef struct Blob:
    # Null when `data` is NULL.
    const uint8_t *data
    int64_t size


cdef struct Row:
    int64_t offset
    int64_t timestamp
    Blob key
    Blob value
    int64_t header_count


cdef struct Batch:
    Py_buffer records
    bint held
    int64_t base_offset
    int64_t last_offset_delta
    int64_t base_timestamp
    int64_t append_timestamp
    bint stamped
    int64_t record_count


cdef struct Totals:
    int64_t rows
    int64_t key_bytes
    int64_t value_bytes
    int64_t headers
    int64_t header_key_bytes
    int64_t header_value_bytes
    int64_t null_keys
    int64_t null_values
    int64_t null_header_values


cdef struct Target:
    int64_t *offsets
    int64_t *timestamps
    int32_t *key_offsets
    uint8_t *key_data
    uint8_t *key_validity
    int32_t *value_offsets
    uint8_t *value_data
    uint8_t *value_validity
    int32_t *list_offsets
    int32_t *header_key_offsets
    uint8_t *header_key_data
    int32_t *header_value_offsets
    uint8_t *header_value_data
    uint8_t *header_value_validity


cdef inline bint read_unsigned(Reader *reader, int max_bytes, uint64_t *value) noexcept nogil:
    cdef uint64_t result = 0
    cdef uint8_t byte
    cdef int i
    for i in range(max_bytes):
        if reader.at >= reader.end:
            return False
        byte = reader.at[0]
        reader.at += 1
        if i == 9 and byte > 1:
            return False
        result |= <uint64_t>(byte & 0x7F) << (7 * i)
        if byte < 0x80:
            value[0] = result
            return True
    return False


cdef inline bint read_long(Reader *reader, int64_t *value) noexcept nogil:
    cdef uint64_t raw
    if not read_unsigned(reader, 10, &raw):
        return False
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return True


cdef inline bint read_int(Reader *reader, int64_t *value) noexcept nogil:
    cdef uint64_t raw
    if reader.at < reader.end and reader.at[0] < 0x80:
        raw = reader.at[0]
        reader.at += 1
    elif not read_unsigned(reader, 5, &raw) or raw > UINT32_MAX:
        return False
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return True


cdef inline bint read_blob(Reader *reader, bint nullable, Blob *blob) noexcept nogil:
    cdef int64_t size
    if not read_int(reader, &size) or size > reader.end - reader.at:
        return False
    if size < 0:
        blob.data = NULL
        blob.size = 0
        return nullable and size == -1
    blob.data = reader.at
    blob.size = size
    reader.at += size
    return True


cdef inline bint read_row(Reader *section, const Batch *batch, int64_t *last_delta, Row *row, Reader *headers) noexcept nogil:
    """One record up to its headers, which are left in `headers` with the end of the record as their end."""
    cdef int64_t size, timestamp_delta, offset_delta
    if not read_int(section, &size) or size < 1 or size > section.end - section.at:
        return False
    headers.at = section.at + 1
    headers.end = section.at + size
    section.at = headers.end
    if not read_long(headers, &timestamp_delta) or not read_int(headers, &offset_delta):
        return False
    if offset_delta <= last_delta[0] or offset_delta > batch.last_offset_delta:
        return False
    last_delta[0] = offset_delta
    if add_overflows(batch.base_offset, offset_delta, &row.offset):
        return False
    if batch.stamped:
        row.timestamp = batch.append_timestamp
    elif add_overflows(batch.base_timestamp, timestamp_delta, &row.timestamp):
        return False
    if not read_blob(headers, True, &row.key) or not read_blob(headers, True, &row.value):
        return False
    return read_int(headers, &row.header_count) and row.header_count >= 0


cdef bint measure(const Batch *batch, int64_t start_offset, int64_t end_offset, Totals *totals) noexcept nogil:
    """Check every record of a batch, and add up what those in the range will take."""
    cdef Reader section, headers
    cdef Row row
    cdef Blob key, value
    cdef int64_t last_delta = -1
    cdef int64_t i, j
    cdef bint wanted
    section.at = <const uint8_t *>batch.records.buf
    section.end = section.at + batch.records.len
    for i in range(batch.record_count):
        if not read_row(&section, batch, &last_delta, &row, &headers):
            return False
        wanted = start_offset <= row.offset < end_offset
        if wanted:
            totals.rows += 1
            totals.key_bytes += row.key.size
            totals.value_bytes += row.value.size
            totals.null_keys += row.key.data == NULL
            totals.null_values += row.value.data == NULL
        for j in range(row.header_count):
            if not read_blob(&headers, False, &key) or not read_blob(&headers, True, &value):
                return False
            if wanted:
                totals.headers += 1
                totals.header_key_bytes += key.size
                totals.header_value_bytes += value.size
                totals.null_header_values += value.data == NULL
        if headers.at != headers.end:
            return False
    return section.at == section.end


cdef inline void put_blob(const Blob *blob, int64_t index, int64_t at, int32_t *offsets, uint8_t *data, uint8_t *validity) noexcept nogil:
    offsets[index + 1] = <int32_t>(at + blob.size)
    if blob.data != NULL:
        memcpy(data + at, blob.data, blob.size)
        if validity != NULL:
            validity[index >> 3] |= <uint8_t>(1 << (index & 7))


cdef bint fill(const Batch *batch, int64_t start_offset, int64_t end_offset, const Totals *room, Totals *used, const Target *target) noexcept nogil:
    """Write the records in the range to the columns, never past what was measured."""
    cdef Reader section, headers
    cdef Row row
    cdef Blob key, value
    cdef int64_t last_delta = -1
    cdef int64_t i, j
    section.at = <const uint8_t *>batch.records.buf
    section.end = section.at + batch.records.len
    for i in range(batch.record_count):
        if not read_row(&section, batch, &last_delta, &row, &headers):
            return False
        if not start_offset <= row.offset < end_offset:
            continue
        if used.rows >= room.rows:
            return False
        if row.key.size > room.key_bytes - used.key_bytes or row.value.size > room.value_bytes - used.value_bytes:
            return False
        target.offsets[used.rows] = row.offset
        target.timestamps[used.rows] = row.timestamp
        put_blob(&row.key, used.rows, used.key_bytes, target.key_offsets, target.key_data, target.key_validity)
        put_blob(&row.value, used.rows, used.value_bytes, target.value_offsets, target.value_data, target.value_validity)
        used.key_bytes += row.key.size
        used.value_bytes += row.value.size
        for j in range(row.header_count):
            if used.headers >= room.headers or not read_blob(&headers, False, &key) or not read_blob(&headers, True, &value):
                return False
            if key.size > room.header_key_bytes - used.header_key_bytes:
                return False
            if value.size > room.header_value_bytes - used.header_value_bytes:
                return False
            put_blob(&key, used.headers, used.header_key_bytes, target.header_key_offsets, target.header_key_data, NULL)
            put_blob(&value, used.headers, used.header_value_bytes, target.header_value_offsets, target.header_value_data, target.header_value_validity)
            used.header_key_bytes += key.size
            used.header_value_bytes += value.size
            used.headers += 1
        used.rows += 1
        target.list_offsets[used.rows] = <int32_t>used.headers
    return True


cdef bytes zero_led(int64_t count, int32_t **start):
    """Room for `count` int32 offsets and the zero before them."""
    cdef bytes room = PyBytes_FromStringAndSize(NULL, 4 * (count + 1))
    start[0] = <int32_t *>PyBytes_AS_STRING(room)
    start[0][0] = 0
    return room


cdef bytes uninitialised(int64_t size, void **start):
    cdef bytes room = PyBytes_FromStringAndSize(NULL, size)
    start[0] = PyBytes_AS_STRING(room)
    return room


cdef object bitmap(int64_t count, int64_t nulls, uint8_t **start):
    """A bitmap in which nothing is valid yet, or none at all if nothing will be null."""
    cdef bytes room
    start[0] = NULL
    if nulls == 0:
        return None
    room = PyBytes_FromStringAndSize(NULL, (count + 7) >> 3)
    start[0] = <uint8_t *>PyBytes_AS_STRING(room)
    memset(start[0], 0, (count + 7) >> 3)
    return room


cdef object columns_of(const Batch *batches, Py_ssize_t count, int64_t start_offset, int64_t end_offset):
    cdef Totals room, used
    cdef Target target
    cdef Py_ssize_t i = 0
    cdef bint valid = True
    memset(&room, 0, sizeof(room))
    memset(&used, 0, sizeof(used))
    with nogil:
        for i in range(count):
            valid = measure(&batches[i], start_offset, end_offset, &room)
            if not valid:
                break
    if not valid:
        raise CorruptBatch(f"the records of the batch at offset {batches[i].base_offset} are not valid")
    if max(room.key_bytes, room.value_bytes, room.header_key_bytes, room.header_value_bytes) > INT32_MAX:
        raise InvalidInput("the records do not fit in one set of columns", hint="take fewer at a time")
    columns = Columns(
        count=room.rows,
        offsets=uninitialised(8 * room.rows, <void **>&target.offsets),
        timestamps=uninitialised(8 * room.rows, <void **>&target.timestamps),
        key_offsets=zero_led(room.rows, &target.key_offsets),
        key_data=uninitialised(room.key_bytes, <void **>&target.key_data),
        key_validity=bitmap(room.rows, room.null_keys, &target.key_validity),
        value_offsets=zero_led(room.rows, &target.value_offsets),
        value_data=uninitialised(room.value_bytes, <void **>&target.value_data),
        value_validity=bitmap(room.rows, room.null_values, &target.value_validity),
        header_list_offsets=zero_led(room.rows, &target.list_offsets),
        header_key_offsets=zero_led(room.headers, &target.header_key_offsets),
        header_key_data=uninitialised(room.header_key_bytes, <void **>&target.header_key_data),
        header_value_offsets=zero_led(room.headers, &target.header_value_offsets),
        header_value_data=uninitialised(room.header_value_bytes, <void **>&target.header_value_data),
        header_value_validity=bitmap(room.headers, room.null_header_values, &target.header_value_validity),
    )
    with nogil:
        for i in range(count):
            valid = fill(&batches[i], start_offset, end_offset, &room, &used, &target)
            if not valid:
                break
    if not valid or used.rows != room.rows or used.headers != room.headers:
        raise CorruptBatch("the records changed while they were decoded")
    return columns


def decode_sections(sections, int64_t start_offset, int64_t end_offset):
    cdef Py_ssize_t count = len(sections)
    cdef Batch *batches = <Batch *>calloc(max(count, 1), sizeof(Batch))
    cdef Py_ssize_t i
    if batches == NULL:
        raise MemoryError
    try:
        for i in range(count):
            section = sections[i]
            PyObject_GetBuffer(section.records, &batches[i].records, PyBUF_SIMPLE)
            batches[i].held = True
            batches[i].base_offset = section.base_offset
            batches[i].last_offset_delta = section.last_offset_delta
            batches[i].base_timestamp = section.base_timestamp_ms
            batches[i].stamped = section.append_timestamp_ms is not None
            batches[i].append_timestamp = section.append_timestamp_ms if batches[i].stamped else 0
            batches[i].record_count = section.record_count
        return columns_of(batches, count, start_offset, end_offset)
    finally:
        for i in range(count):
            if batches[i].held:
                PyBuffer_Release(&batches[i].records)
        free(batches)
