# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Partitions for a column of keys, over raw memory and without the GIL.

The twin in key_partitions_twin.py says what it must do. Every offset is checked against the data that it points into.
"""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from streamhouse.model.errors import InvalidInput

cdef enum:
    OFFSETS = 0
    DATA = 1
    VALIDITY = 2
    COLUMN_BUFFERS = 3

cdef uint32_t MULTIPLIER = 0x5BD1E995
cdef uint32_t SEED = 0x9747B28C


cdef uint32_t murmur2(const uint8_t *key, int64_t size) noexcept nogil:
    cdef uint32_t digest = SEED ^ <uint32_t>size
    cdef uint32_t word
    cdef int64_t left = size
    while left >= 4:
        # Little-endian, as every machine that this runs on.
        memcpy(&word, key, 4)
        word *= MULTIPLIER
        word ^= word >> 24
        word *= MULTIPLIER
        digest = (digest * MULTIPLIER) ^ word
        key += 4
        left -= 4
    if left > 0:
        word = 0
        memcpy(&word, key, left)
        digest = (digest ^ word) * MULTIPLIER
    digest ^= digest >> 13
    digest *= MULTIPLIER
    return digest ^ (digest >> 15)


cdef int64_t fill(
    int32_t *out,
    const Py_buffer *column,
    int64_t count,
    int64_t partition_count,
    int64_t first,
    int64_t run_rows,
) noexcept nogil:
    """Returns the row at which the column is not one, or -1."""
    cdef const int32_t *offsets = <const int32_t *>column[OFFSETS].buf
    cdef const uint8_t *data = <const uint8_t *>column[DATA].buf
    cdef const uint8_t *validity = <const uint8_t *>column[VALIDITY].buf
    cdef int64_t without_key = 0
    cdef int64_t row, start, end
    for row in range(count):
        start = offsets[row]
        end = offsets[row + 1]
        if not 0 <= start <= end <= column[DATA].len:
            return row
        if validity != NULL and not (validity[row >> 3] >> (row & 7)) & 1:
            out[row] = <int32_t>((first + without_key // run_rows) % partition_count)
            without_key += 1
        else:
            out[row] = <int32_t>((murmur2(data + start, end - start) & 0x7FFFFFFF) % partition_count)
    return -1


def key_partitions(offsets, data, validity, int64_t count, int64_t partition_count, int64_t first, int64_t run_rows):
    cdef Py_buffer[COLUMN_BUFFERS] column
    cdef int held = 0
    cdef int i
    cdef int64_t bad_row = -1
    cdef bytes partitions
    cdef int32_t *out
    if count < 0 or not 0 < partition_count < 2**31 or first < 0 or run_rows < 1:
        raise InvalidInput(f"there are no partitions for {count} keys in {partition_count}")
    memset(column, 0, sizeof(column))
    try:
        for buf in (offsets, data, validity):
            if buf is not None:
                PyObject_GetBuffer(buf, &column[held], PyBUF_SIMPLE)
            held += 1
        if column[OFFSETS].len < 4 * (count + 1) or (validity is not None and column[VALIDITY].len < (count + 7) // 8):
            raise InvalidInput("a column is shorter than its count says")
        partitions = PyBytes_FromStringAndSize(NULL, 4 * count)
        out = <int32_t *>PyBytes_AS_STRING(partitions)
        with nogil:
            bad_row = fill(out, column, count, partition_count, first, run_rows)
    finally:
        for i in range(held):
            PyBuffer_Release(&column[i])
    if bad_row >= 0:
        raise InvalidInput(f"the column has no key at row {bad_row}")
    return partitions
