# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Records to columns, over raw memory and without the GIL.

The twin in decode_twin.py says what it must do. What comes from a batch is not trusted: each read is checked against
the section's end. A section is decoded as soon as it is there, while the processor's caches still have it, so the
columns grow; room is made beforehand for the most that the bytes of a section could become.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, UINT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from streamhouse.format.columns import Columns
from streamhouse.model.errors import CorruptBatch, InvalidInput

cdef extern from *:
    """
    #define streamhouse_add_overflows(a, b, sum) __builtin_add_overflow((int64_t)(a), (int64_t)(b), sum)
    """
    bint add_overflows "streamhouse_add_overflows"(int64_t a, int64_t b, int64_t *total) nogil

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject **room, Py_ssize_t size) except -1

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

cdef enum:
    # Lengths of record, key and value, attributes, two deltas and the number of headers; a header has two lengths.
    MIN_RECORD_BYTES = 7
    MIN_HEADER_BYTES = 2
    GROWTH = 2


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
    const uint8_t *records
    int64_t size_bytes
    int64_t base_offset
    int64_t last_offset_delta
    int64_t base_timestamp
    int64_t append_timestamp
    bint stamped
    int64_t record_count


cdef struct Limits:
    int64_t rows
    # Records and their headers together.
    int64_t parts


cdef enum Outcome:
    NOT_VALID
    WHOLE
    STOPPED


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
    if not read_int(headers, &row.header_count):
        return False
    return 0 <= row.header_count <= (headers.end - headers.at) // MIN_HEADER_BYTES


cdef inline void put_blob(const Blob *blob, int64_t index, int64_t at, int32_t *offsets, uint8_t *data) noexcept nogil:
    offsets[index + 1] = <int32_t>(at + blob.size)
    if blob.size:
        memcpy(data + at, blob.data, blob.size)


cdef inline void put_validity(const Blob *blob, int64_t index, uint8_t *validity, int64_t *nulls) noexcept nogil:
    if blob.data != NULL:
        validity[index >> 3] |= <uint8_t>(1 << (index & 7))
    else:
        nulls[0] += 1


cdef bint read_headers(Reader *headers, const Row *row, bint wanted, Totals *used, const Target *target) noexcept nogil:
    """Check the headers of a record, and write them if they are wanted."""
    cdef Blob key, value
    cdef int64_t i
    for i in range(row.header_count):
        if not read_blob(headers, False, &key) or not read_blob(headers, True, &value):
            return False
        if wanted:
            put_blob(&key, used.headers, used.header_key_bytes, target.header_key_offsets, target.header_key_data)
            put_blob(&value, used.headers, used.header_value_bytes, target.header_value_offsets, target.header_value_data)
            put_validity(&value, used.headers, target.header_value_validity, &used.null_header_values)
            used.header_key_bytes += key.size
            used.header_value_bytes += value.size
            used.headers += 1
    return headers.at == headers.end


cdef Outcome fill(const Batch *batch, int64_t start_offset, int64_t end_offset, bint keys_only, const Limits *limits, Totals *used, const Target *target, int64_t *stopped_at) noexcept nogil:
    """Check every record of a batch, and write those in the range to the columns, which have room for all; up to the
    first for which there is no room within the limits."""
    cdef Reader section, headers
    cdef Row row
    cdef int64_t last_delta = -1
    cdef int64_t i, parts
    cdef bint wanted
    section.at = batch.records
    section.end = section.at + batch.size_bytes
    for i in range(batch.record_count):
        if not read_row(&section, batch, &last_delta, &row, &headers):
            return NOT_VALID
        wanted = start_offset <= row.offset < end_offset
        if wanted:
            parts = used.rows + used.headers + 1 + (0 if keys_only else row.header_count)
            if used.rows >= limits.rows or parts > limits.parts:
                stopped_at[0] = row.offset
                return STOPPED
        if not read_headers(&headers, &row, wanted and not keys_only, used, target):
            return NOT_VALID
        if not wanted:
            continue
        if keys_only:
            row.value.size = 0
        target.offsets[used.rows] = row.offset
        target.timestamps[used.rows] = row.timestamp
        put_blob(&row.key, used.rows, used.key_bytes, target.key_offsets, target.key_data)
        put_validity(&row.key, used.rows, target.key_validity, &used.null_keys)
        put_blob(&row.value, used.rows, used.value_bytes, target.value_offsets, target.value_data)
        put_validity(&row.value, used.rows, target.value_validity, &used.null_values)
        used.key_bytes += row.key.size
        used.value_bytes += row.value.size
        used.rows += 1
        target.list_offsets[used.rows] = <int32_t>used.headers
    return WHOLE if section.at == section.end else NOT_VALID


cdef bint read_checked(Reader *section, const Batch *batch, int64_t *last_delta, Row *row) noexcept nogil:
    """One record with its headers, of which nothing is kept."""
    cdef Reader headers
    cdef Totals nothing
    cdef Target nowhere
    return read_row(section, batch, last_delta, row, &headers) and read_headers(&headers, row, False, &nothing, &nowhere)


cdef void sizes_of(const Totals *totals, int64_t *sizes) noexcept nogil:
    """What each column takes, in bytes."""
    sizes[OFFSETS] = sizes[TIMESTAMPS] = 8 * totals.rows
    sizes[KEY_OFFSETS] = sizes[VALUE_OFFSETS] = sizes[LIST_OFFSETS] = 4 * (totals.rows + 1)
    sizes[KEY_DATA] = totals.key_bytes
    sizes[VALUE_DATA] = totals.value_bytes
    sizes[KEY_VALIDITY] = sizes[VALUE_VALIDITY] = (totals.rows + 7) >> 3
    sizes[HEADER_KEY_OFFSETS] = sizes[HEADER_VALUE_OFFSETS] = 4 * (totals.headers + 1)
    sizes[HEADER_KEY_DATA] = totals.header_key_bytes
    sizes[HEADER_VALUE_DATA] = totals.header_value_bytes
    sizes[HEADER_VALUE_VALIDITY] = (totals.headers + 7) >> 3


cdef int open_section(section, Batch *batch, Py_buffer *records) except -1:
    """Whoever calls it releases `records`."""
    batch.base_offset = section.base_offset
    batch.last_offset_delta = section.last_offset_delta
    batch.base_timestamp = section.base_timestamp_ms
    batch.stamped = section.append_timestamp_ms is not None
    batch.append_timestamp = section.append_timestamp_ms if batch.stamped else 0
    batch.record_count = section.record_count
    PyObject_GetBuffer(section.records, records, PyBUF_SIMPLE)
    batch.records = <const uint8_t *>records.buf
    batch.size_bytes = records.len
    return 0


cdef object not_valid(const Batch *batch):
    return CorruptBatch(f"the records of the batch at offset {batch.base_offset} are not valid")


cdef class ColumnDecoder:
    cdef int64_t start_offset
    cdef int64_t end_offset
    cdef bint keys_only
    cdef Limits limits
    cdef Totals used
    cdef readonly int64_t stopped_at
    # Bytes objects that nobody else has seen yet.
    cdef (PyObject *)[COLUMN_COUNT] columns
    cdef int64_t[COLUMN_COUNT] room

    def __cinit__(
        self,
        int64_t start_offset,
        int64_t end_offset,
        *,
        bint keys_only=False,
        int64_t max_rows=INT64_MAX,
        int64_t max_parts=INT64_MAX,
    ):
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.keys_only = keys_only
        self.limits.rows = max_rows
        self.limits.parts = max_parts
        self.stopped_at = -1

    def __dealloc__(self):
        cdef int i
        for i in range(COLUMN_COUNT):
            Py_XDECREF(self.columns[i])

    def add(self, section):
        cdef Batch batch
        cdef Py_buffer records
        cdef Target target
        cdef Totals before = self.used
        cdef Outcome outcome = NOT_VALID
        open_section(section, &batch, &records)
        try:
            if batch.record_count <= batch.size_bytes // MIN_RECORD_BYTES:
                self.make_room(&batch, &target)
                with nogil:
                    outcome = fill(
                        &batch, self.start_offset, self.end_offset, self.keys_only, &self.limits, &self.used, &target,
                        &self.stopped_at,
                    )
        finally:
            PyBuffer_Release(&records)
        if outcome == NOT_VALID:
            self.used = before
            self.clear_validity()
            raise not_valid(&batch)
        if (
            max(self.used.key_bytes, self.used.value_bytes) > INT32_MAX
            or max(self.used.header_key_bytes, self.used.header_value_bytes) > INT32_MAX
        ):
            raise InvalidInput("the records do not fit in one set of columns", hint="take fewer at a time")

    def finish(self):
        cdef Totals used = self.used
        cdef int64_t[COLUMN_COUNT] sizes
        sizes_of(&used, sizes)
        self.reserve(sizes)
        memset(&self.used, 0, sizeof(Totals))
        return Columns(
            count=used.rows,
            offsets=self.take(OFFSETS, sizes),
            timestamps=self.take(TIMESTAMPS, sizes),
            key_offsets=self.take(KEY_OFFSETS, sizes),
            key_data=self.take(KEY_DATA, sizes),
            key_validity=self.take_validity(KEY_VALIDITY, sizes, used.null_keys),
            value_offsets=self.take(VALUE_OFFSETS, sizes),
            value_data=self.take(VALUE_DATA, sizes),
            value_validity=self.take_validity(VALUE_VALIDITY, sizes, used.null_values),
            header_list_offsets=self.take(LIST_OFFSETS, sizes),
            header_key_offsets=self.take(HEADER_KEY_OFFSETS, sizes),
            header_key_data=self.take(HEADER_KEY_DATA, sizes),
            header_value_offsets=self.take(HEADER_VALUE_OFFSETS, sizes),
            header_value_data=self.take(HEADER_VALUE_DATA, sizes),
            header_value_validity=self.take_validity(HEADER_VALUE_VALIDITY, sizes, used.null_header_values),
        )

    cdef int make_room(self, const Batch *batch, Target *target) except -1:
        """For whatever the batch turns out to be: its bytes may all be keys, or all be headers."""
        cdef Totals most = self.used
        cdef int64_t[COLUMN_COUNT] sizes
        most.rows += min(batch.record_count, self.limits.rows)
        most.headers += 0 if self.keys_only else min(batch.size_bytes // MIN_HEADER_BYTES, self.limits.parts)
        most.key_bytes += batch.size_bytes
        most.value_bytes += batch.size_bytes
        most.header_key_bytes += batch.size_bytes
        most.header_value_bytes += batch.size_bytes
        sizes_of(&most, sizes)
        self.reserve(sizes)
        target.offsets = <int64_t *>self.start_of(OFFSETS)
        target.timestamps = <int64_t *>self.start_of(TIMESTAMPS)
        target.key_offsets = <int32_t *>self.start_of(KEY_OFFSETS)
        target.key_data = <uint8_t *>self.start_of(KEY_DATA)
        target.key_validity = <uint8_t *>self.start_of(KEY_VALIDITY)
        target.value_offsets = <int32_t *>self.start_of(VALUE_OFFSETS)
        target.value_data = <uint8_t *>self.start_of(VALUE_DATA)
        target.value_validity = <uint8_t *>self.start_of(VALUE_VALIDITY)
        target.list_offsets = <int32_t *>self.start_of(LIST_OFFSETS)
        target.header_key_offsets = <int32_t *>self.start_of(HEADER_KEY_OFFSETS)
        target.header_key_data = <uint8_t *>self.start_of(HEADER_KEY_DATA)
        target.header_value_offsets = <int32_t *>self.start_of(HEADER_VALUE_OFFSETS)
        target.header_value_data = <uint8_t *>self.start_of(HEADER_VALUE_DATA)
        target.header_value_validity = <uint8_t *>self.start_of(HEADER_VALUE_VALIDITY)
        return 0

    cdef void clear_validity(self) noexcept:
        """Of what was taken back: a bit that is set stays so."""
        cdef int64_t[3] counts
        cdef int[3] columns
        cdef int64_t whole
        cdef int i
        columns[0], columns[1], columns[2] = KEY_VALIDITY, VALUE_VALIDITY, HEADER_VALUE_VALIDITY
        counts[0] = counts[1] = self.used.rows
        counts[2] = self.used.headers
        for i in range(3):
            if self.columns[columns[i]] == NULL:
                continue
            whole = counts[i] >> 3
            if whole < self.room[columns[i]]:
                self.start_of(columns[i])[whole] &= (1 << (counts[i] & 7)) - 1
                memset(self.start_of(columns[i]) + whole + 1, 0, self.room[columns[i]] - whole - 1)

    cdef int reserve(self, const int64_t *sizes) except -1:
        cdef int i
        for i in range(COLUMN_COUNT):
            if self.columns[i] == NULL:
                self.start_column(i, max(sizes[i], self.room[i]))
            elif self.room[i] < sizes[i]:
                self.extend_column(i, max(sizes[i], GROWTH * self.room[i]))
        return 0

    cdef int start_column(self, int column, int64_t size) except -1:
        cdef bytes room = PyBytes_FromStringAndSize(NULL, size)
        Py_INCREF(room)
        self.columns[column] = <PyObject *>room
        self.room[column] = size
        # Offsets begin with zero, and in a bitmap nothing is valid yet. All else is written before it is read.
        if column in (KEY_OFFSETS, VALUE_OFFSETS, LIST_OFFSETS, HEADER_KEY_OFFSETS, HEADER_VALUE_OFFSETS):
            memset(self.start_of(column), 0, 4)
        elif column in (KEY_VALIDITY, VALUE_VALIDITY, HEADER_VALUE_VALIDITY):
            memset(self.start_of(column), 0, size)
        return 0

    cdef int extend_column(self, int column, int64_t size) except -1:
        cdef int64_t had = self.room[column]
        _PyBytes_Resize(&self.columns[column], size)
        self.room[column] = size
        if column in (KEY_VALIDITY, VALUE_VALIDITY, HEADER_VALUE_VALIDITY):
            memset(self.start_of(column) + had, 0, size - had)
        return 0

    cdef inline char *start_of(self, int column) noexcept:
        return PyBytes_AS_STRING(<object>self.columns[column])

    cdef object take(self, int column, const int64_t *sizes):
        """A column that is complete. The next one begins with room for as much and a little more."""
        _PyBytes_Resize(&self.columns[column], sizes[column])
        taken = <object>self.columns[column]
        Py_XDECREF(self.columns[column])
        self.columns[column] = NULL
        self.room[column] = sizes[column] + (sizes[column] >> 3)
        return taken

    cdef object take_validity(self, int column, const int64_t *sizes, int64_t nulls):
        """None where nothing is null."""
        taken = self.take(column, sizes)
        return taken if nulls else None


def decode_sections(sections, int64_t start_offset, int64_t end_offset):
    cdef ColumnDecoder decoder = ColumnDecoder(start_offset, end_offset)
    for section in sections:
        decoder.add(section)
    return decoder.finish()


cdef struct Survey:
    # The first record from an offset on that is not before a time; -1 if there is none.
    int64_t first_offset
    int64_t first_timestamp
    # The largest timestamp from that offset on.
    int64_t max_timestamp


cdef bint survey(const Batch *batch, int64_t start_offset, int64_t from_ms, Survey *found) noexcept nogil:
    cdef Reader section
    cdef Row row
    cdef int64_t last_delta = -1
    cdef int64_t i
    section.at = batch.records
    section.end = section.at + batch.size_bytes
    for i in range(batch.record_count):
        if not read_checked(&section, batch, &last_delta, &row):
            return False
        if row.offset < start_offset:
            continue
        if row.timestamp >= from_ms and found.first_offset < 0:
            found.first_offset = row.offset
            found.first_timestamp = row.timestamp
        found.max_timestamp = max(found.max_timestamp, row.timestamp)
    return section.at == section.end


def survey_times(section, int64_t start_offset, int64_t from_ms):
    cdef Batch batch
    cdef Py_buffer records
    cdef Survey found
    cdef bint valid
    found.first_offset = found.first_timestamp = -1
    found.max_timestamp = INT64_MIN
    open_section(section, &batch, &records)
    try:
        with nogil:
            valid = survey(&batch, start_offset, from_ms, &found)
    finally:
        PyBuffer_Release(&records)
    if not valid:
        raise not_valid(&batch)
    first = None if found.first_offset < 0 else (found.first_offset, found.first_timestamp)
    return first, found.max_timestamp


cdef enum:
    NO_TIMESTAMP = -1


cdef struct Rules:
    bint needs_key
    int64_t oldest_ms
    int64_t newest_ms


cdef Outcome next_refused(Reader *section, const Batch *batch, const Rules *rules, int64_t *index, int64_t *last_delta, Row *row) noexcept nogil:
    """Go on to the next record that the rules do not allow: STOPPED there."""
    while index[0] < batch.record_count:
        if not read_checked(section, batch, last_delta, row):
            return NOT_VALID
        index[0] += 1
        if rules.needs_key and row.key.data == NULL:
            return STOPPED
        if row.timestamp != NO_TIMESTAMP and not rules.oldest_ms <= row.timestamp <= rules.newest_ms:
            return STOPPED
    return WHOLE if section.at == section.end else NOT_VALID


def refused_records(section, bint needs_key, int64_t oldest_ms, int64_t newest_ms, Py_ssize_t limit):
    cdef Batch batch
    cdef Py_buffer records
    cdef Reader reader
    cdef Rules rules
    cdef Row row
    cdef int64_t index = 0, last_delta = -1
    cdef Outcome outcome = STOPPED
    cdef list refused = []
    rules.needs_key = needs_key
    rules.oldest_ms = oldest_ms
    rules.newest_ms = newest_ms
    open_section(section, &batch, &records)
    try:
        reader.at = batch.records
        reader.end = reader.at + batch.size_bytes
        while outcome == STOPPED and len(refused) < limit:
            with nogil:
                outcome = next_refused(&reader, &batch, &rules, &index, &last_delta, &row)
            if outcome == STOPPED:
                is_keyless = needs_key and row.key.data == NULL
                refused.append((index - 1, None if is_keyless else row.timestamp))
    finally:
        PyBuffer_Release(&records)
    if outcome == NOT_VALID:
        raise not_valid(&batch)
    return refused
