"""`plain_batch_twin` compiled: sizes first, then one buffer that is filled once."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from streamhouse.format.batch import BatchHeader

cdef extern from "crc32c.h" nogil:
    uint32_t streamhouse_crc32c(uint32_t crc, const void* data, size_t size)

DEF HEADER_BYTES = 61
DEF LENGTH_OVERHEAD_BYTES = 12
DEF CRC_AT = 17
DEF ATTRIBUTES_AT = 21
DEF MAGIC = 2

cdef object tuple_new = tuple.__new__


cdef inline uint8_t* put32(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = value >> 24
    at[1] = (value >> 16) & 0xFF
    at[2] = (value >> 8) & 0xFF
    at[3] = value & 0xFF
    return at + 4


cdef inline uint8_t* put64(uint8_t* at, int64_t value) noexcept nogil:
    put32(at, <uint32_t>(<uint64_t>value >> 32))
    return put32(at + 4, <uint32_t>value)


cdef inline Py_ssize_t size_of_size(Py_ssize_t size) noexcept nogil:
    """What a size takes as a varint, which for no size is doubled."""
    cdef uint64_t left = <uint64_t>size << 1
    cdef Py_ssize_t taken = 1
    while left > 0x7F:
        left >>= 7
        taken += 1
    return taken


cdef inline uint8_t* put_size(uint8_t* at, Py_ssize_t size) noexcept nogil:
    cdef uint64_t left = <uint64_t>size << 1
    while left > 0x7F:
        at[0] = <uint8_t>(left & 0x7F) | 0x80
        left >>= 7
        at += 1
    at[0] = <uint8_t>left
    return at + 1


cdef inline Py_ssize_t body_size(Py_ssize_t delta, bytes key, bytes value) noexcept:
    """Attributes, timestamp delta and number of headers take a byte each, and so does no key."""
    cdef Py_ssize_t size = 3 + size_of_size(delta)
    size += 1 if key is None else size_of_size(PyBytes_GET_SIZE(key)) + PyBytes_GET_SIZE(key)
    return size + size_of_size(PyBytes_GET_SIZE(value)) + PyBytes_GET_SIZE(value)


cdef uint8_t* put_bytes(uint8_t* at, bytes content) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(content)
    at = put_size(at, size)
    memcpy(at, PyBytes_AS_STRING(content), size)
    return at + size


cdef uint8_t* put_record(uint8_t* at, Py_ssize_t delta, bytes key, bytes value) noexcept:
    at = put_size(at, body_size(delta, key, value))
    at[0] = 0
    at[1] = 0
    at = put_size(at + 2, delta)
    if key is None:
        at[0] = 1
        at += 1
    else:
        at = put_bytes(at, key)
    at = put_bytes(at, value)
    at[0] = 0
    return at + 1


cdef void put_header(uint8_t* batch, Py_ssize_t size, int32_t count, int64_t timestamp_ms) noexcept nogil:
    """All but the CRC."""
    cdef uint8_t* at = put64(batch, 0)
    at = put32(at, <uint32_t>(size - LENGTH_OVERHEAD_BYTES))
    at = put32(at, <uint32_t>-1)
    at[0] = MAGIC
    at = batch + ATTRIBUTES_AT
    at[0] = 0
    at[1] = 0
    at = put32(at + 2, count - 1)
    at = put64(at, timestamp_ms)
    at = put64(at, timestamp_ms)
    at = put64(at, -1)
    at[0] = 0xFF
    at[1] = 0xFF
    at = put32(at + 2, <uint32_t>-1)
    put32(at, count)


def encode_plain_batch(list rows not None, int64_t timestamp_ms):
    cdef Py_ssize_t size = HEADER_BYTES
    cdef Py_ssize_t count = len(rows)
    cdef Py_ssize_t delta, body
    cdef bytes key, value
    for delta in range(count):
        key, value = rows[delta]
        if value is None:
            raise TypeError("a row needs a value")
        body = body_size(delta, key, value)
        size += size_of_size(body) + body
    cdef bytes batch = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* start = <uint8_t*>PyBytes_AS_STRING(batch)
    cdef uint8_t* at = start + HEADER_BYTES
    put_header(start, size, <int32_t>count, timestamp_ms)
    for delta in range(count):
        key, value = rows[delta]
        at = put_record(at, delta, key, value)
    cdef uint32_t crc = streamhouse_crc32c(0, start + ATTRIBUTES_AT, size - ATTRIBUTES_AT)
    put32(start + CRC_AT, crc)
    return batch, tuple_new(
        BatchHeader, (0, size, -1, MAGIC, crc, 0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
    )
