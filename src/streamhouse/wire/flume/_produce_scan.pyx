"""`produce_scan_twin` compiled: a produce request's frame read in one go."""

from libc.stdint cimport int16_t, int32_t, uint32_t, uint8_t
from cpython.bytes cimport PyBytes_FromStringAndSize

from streamhouse.wire.flume.produce_frame import ProduceFrame

DEF PRODUCE_KEY = 0
DEF SMALLEST_BYTES = 6 + 2 + 4 + 4 + 4

cdef object tuple_new = tuple.__new__


cdef inline int16_t get16(const uint8_t* at) noexcept nogil:
    return <int16_t>((at[0] << 8) | at[1])


cdef inline int32_t get32(const uint8_t* at) noexcept nogil:
    return <int32_t>((<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3])


cdef inline uint32_t fnv1a(const uint8_t* key, Py_ssize_t size) noexcept nogil:
    cdef uint32_t digest = 0x811C9DC5
    cdef Py_ssize_t index
    for index in range(size):
        digest = (digest ^ key[index]) * <uint32_t>0x01000193
    return digest


def fnv1a_32(const uint8_t[::1] key not None):
    return 0x811C9DC5 if key.shape[0] == 0 else fnv1a(&key[0], key.shape[0])


def scan(const uint8_t[::1] buffer not None, Py_ssize_t start, Py_ssize_t end):
    if not (0 <= start and start + SMALLEST_BYTES <= end <= buffer.shape[0]):
        return None
    cdef const uint8_t* data = &buffer[0]
    if get16(data + start) != PRODUCE_KEY:
        return None
    cdef Py_ssize_t topic_bytes = get16(data + start + 6)
    cdef Py_ssize_t topic_at = start + 8
    if topic_bytes < 0 or end - topic_at < topic_bytes + 12:
        return None
    cdef Py_ssize_t at = topic_at + topic_bytes
    cdef int32_t partition = get32(data + at)
    cdef Py_ssize_t key_bytes = get32(data + at + 4)
    cdef Py_ssize_t key_at = at + 8
    if key_bytes < 0 or end - key_at < key_bytes + 4:
        return None
    cdef Py_ssize_t payload_bytes = get32(data + key_at + key_bytes)
    cdef Py_ssize_t payload_at = key_at + key_bytes + 4
    if payload_bytes != end - payload_at:
        return None
    return tuple_new(
        ProduceFrame,
        (
            get32(data + start + 2),
            PyBytes_FromStringAndSize(<const char*>(data + topic_at), topic_bytes),
            partition,
            PyBytes_FromStringAndSize(<const char*>(data + key_at), key_bytes),
            PyBytes_FromStringAndSize(<const char*>(data + payload_at), payload_bytes),
            fnv1a(data + key_at, key_bytes),
        ),
    )
