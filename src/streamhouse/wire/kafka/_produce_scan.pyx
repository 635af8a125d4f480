"""The common Produce request read in one go: one topic, one partition, one good batch, no transaction.

Anything else, above all anything that is wrong, gives None: the general codec then says what it is. The CRC and every
other rule of `format.batch.check_produced` is checked here, so that what is found may be appended. A batch that says
too early a largest timestamp is repaired on the general way."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from streamhouse.format.batch import BatchHeader

cdef extern from "crc32c.h" nogil:
    uint32_t streamhouse_crc32c(uint32_t crc, const void* data, size_t size)

DEF PRODUCE_KEY = 0
DEF MIN_VERSION = 3
DEF MAX_VERSION = 13
DEF FLEXIBLE_SINCE = 9
DEF TOPIC_IDS_SINCE = 13
DEF BATCH_HEADER_BYTES = 61
DEF SMALLEST_RECORD_BYTES = 7
DEF LARGEST_CODEC = 4
DEF MOST_RECORDS = 128 * 1024 * 1024 // SMALLEST_RECORD_BYTES

# By codec, as format/batch.py has it.
cdef Py_ssize_t[LARGEST_CODEC + 1] MOST_INFLATED
MOST_INFLATED[:] = [1, 1032, 22, 255, 32768]

cdef object tuple_new = tuple.__new__


cdef int16_t get16(const uint8_t* at) noexcept nogil:
    return <int16_t>((at[0] << 8) | at[1])


cdef int32_t get32(const uint8_t* at) noexcept nogil:
    return <int32_t>((<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3])


cdef int64_t get64(const uint8_t* at) noexcept nogil:
    return <int64_t>((<uint64_t><uint32_t>get32(at) << 32) | <uint32_t>get32(at + 4))


cdef struct Found:
    int16_t version
    int32_t correlation_id
    int16_t acks
    int32_t timeout_ms
    const uint8_t* topic
    Py_ssize_t topic_bytes
    int32_t partition
    Py_ssize_t batch_start
    Py_ssize_t batch_end


cdef inline Py_ssize_t short_uvarint(const uint8_t* data, Py_ssize_t* at, Py_ssize_t end) noexcept nogil:
    """An unsigned varint of up to four bytes; -1 for anything else."""
    cdef Py_ssize_t value = 0
    cdef int shift = 0
    while shift < 28 and at[0] < end:
        value |= <Py_ssize_t>(data[at[0]] & 0x7F) << shift
        at[0] += 1
        if not data[at[0] - 1] & 0x80:
            return value
        shift += 7
    return -1


cdef bint is_ascii(const uint8_t* text, Py_ssize_t size) noexcept nogil:
    """Plain ASCII is UTF-8; whether anything else is, the general codec knows."""
    cdef Py_ssize_t index
    cdef uint8_t seen = 0
    for index in range(size):
        seen |= text[index]
    return seen < 0x80


cdef bint read_legacy(const uint8_t* data, Py_ssize_t at, Py_ssize_t end, Found* found) noexcept nogil:
    cdef int32_t size
    if end - at < 2 + 2 + 4 + 4 + 2 or get16(data + at) != -1:
        return False
    found.acks = get16(data + at + 2)
    found.timeout_ms = get32(data + at + 4)
    if get32(data + at + 8) != 1:
        return False
    size = get16(data + at + 12)
    at += 14
    if size <= 0 or end - at < size + 12:
        return False
    found.topic = data + at
    found.topic_bytes = size
    at += size
    if get32(data + at) != 1:
        return False
    found.partition = get32(data + at + 4)
    size = get32(data + at + 8)
    at += 12
    if size < BATCH_HEADER_BYTES or end - at != size:
        return False
    found.batch_start = at
    found.batch_end = end
    return True


cdef bint read_flexible(const uint8_t* data, Py_ssize_t at, Py_ssize_t end, Found* found) noexcept nogil:
    cdef Py_ssize_t size
    # No tagged fields in the header, no transactional id.
    if end - at < 2 + 6 or data[at] != 0 or data[at + 1] != 0:
        return False
    found.acks = get16(data + at + 2)
    found.timeout_ms = get32(data + at + 4)
    at += 8
    if short_uvarint(data, &at, end) != 2:
        return False
    if found.version >= TOPIC_IDS_SINCE:
        size = 16
    else:
        size = short_uvarint(data, &at, end) - 1
    if size <= 0 or end - at < size:
        return False
    found.topic = data + at
    found.topic_bytes = size
    at += size
    if short_uvarint(data, &at, end) != 2 or end - at < 4:
        return False
    found.partition = get32(data + at)
    at += 4
    size = short_uvarint(data, &at, end) - 1
    # Behind the records only the three empty lists of tagged fields.
    if size < BATCH_HEADER_BYTES or end - at != size + 3:
        return False
    if data[at + size] != 0 or data[at + size + 1] != 0 or data[at + size + 2] != 0:
        return False
    found.batch_start = at
    found.batch_end = at + size
    return True


cdef bint batch_is_good(const uint8_t* batch, Py_ssize_t size) noexcept nogil:
    cdef int16_t attributes = get16(batch + 21)
    cdef int32_t last_offset_delta = get32(batch + 23)
    cdef int32_t record_count = get32(batch + 57)
    cdef int64_t producer_id = get64(batch + 43)
    if get32(batch + 8) != size - 12 or batch[16] != 2:
        return False
    if attributes < 0 or attributes > LARGEST_CODEC:
        return False
    if record_count < 1 or last_offset_delta != record_count - 1:
        return False
    if record_count > (size - BATCH_HEADER_BYTES) * MOST_INFLATED[attributes] // SMALLEST_RECORD_BYTES:
        return False
    if record_count > MOST_RECORDS:
        return False
    if producer_id < -1 or (producer_id >= 0 and (get16(batch + 51) < 0 or get32(batch + 53) < 0)):
        return False
    if get64(batch + 35) < get64(batch + 27):
        return False
    return streamhouse_crc32c(0, batch + 21, size - 21) == <uint32_t>get32(batch + 17)


def scan(const uint8_t[::1] buffer, Py_ssize_t start, Py_ssize_t end):
    cdef const uint8_t* data = &buffer[0]
    cdef const uint8_t* batch
    cdef Found found
    cdef Py_ssize_t at = start + 10
    cdef int16_t client_id_bytes
    cdef bint readable
    if end > buffer.shape[0] or end - start < 10 or get16(data + start) != PRODUCE_KEY:
        return None
    found.version = get16(data + start + 2)
    if found.version < MIN_VERSION or found.version > MAX_VERSION:
        return None
    found.correlation_id = get32(data + start + 4)
    client_id_bytes = get16(data + start + 8)
    if client_id_bytes > 0:
        if end - at < client_id_bytes or not is_ascii(data + at, client_id_bytes):
            return None
        at += client_id_bytes
    elif client_id_bytes < -1:
        return None
    if found.version >= FLEXIBLE_SINCE:
        readable = read_flexible(data, at, end, &found)
    else:
        readable = read_legacy(data, at, end, &found)
    if readable and found.version < TOPIC_IDS_SINCE:
        readable = is_ascii(found.topic, found.topic_bytes)
    if not readable or found.acks < -1 or found.acks > 1:
        return None
    batch = data + found.batch_start
    if not batch_is_good(batch, found.batch_end - found.batch_start):
        return None
    header = tuple_new(
        BatchHeader,
        (
            get64(batch),
            found.batch_end - found.batch_start,
            get32(batch + 12),
            2,
            <uint32_t>get32(batch + 17),
            get16(batch + 21),
            get32(batch + 23),
            get64(batch + 27),
            get64(batch + 35),
            get64(batch + 43),
            get16(batch + 51),
            get32(batch + 53),
            get32(batch + 57),
        ),
    )
    return (
        found.version,
        found.correlation_id,
        found.acks,
        found.timeout_ms,
        PyBytes_FromStringAndSize(<const char*>found.topic, found.topic_bytes),
        found.partition,
        found.batch_start,
        found.batch_end,
        header,
    )


cdef inline uint8_t* put(uint8_t* at, uint64_t value, int size) noexcept nogil:
    cdef int index
    for index in range(size):
        at[index] = <uint8_t>(value >> (8 * (size - 1 - index)))
    return at + size


cdef inline uint8_t* put_uvarint(uint8_t* at, uint32_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


def encode_reply(int version, int32_t correlation_id, bytes topic, int32_t partition,
                 int64_t base_offset, int64_t append_time_ms, int64_t log_start_offset):
    """The whole frame of the reply to what `scan` found, when its batch was appended."""
    cdef uint8_t small[512]
    cdef const uint8_t* name = <const uint8_t*>PyBytes_AS_STRING(topic)
    cdef Py_ssize_t name_bytes = len(topic)
    cdef uint8_t* at = small + 4
    if name_bytes > 300:
        raise ValueError("a topic's name has at most 249 bytes")
    at = put(at, <uint32_t>correlation_id, 4)
    if version >= FLEXIBLE_SINCE:
        at = put(at, 0, 1)
        at = put_uvarint(at, 2)
        if version < TOPIC_IDS_SINCE:
            at = put_uvarint(at, <uint32_t>name_bytes + 1)
    else:
        at = put(at, 1, 4)
        at = put(at, <uint64_t>name_bytes, 2)
    memcpy(at, name, name_bytes)
    at += name_bytes
    at = put_uvarint(at, 2) if version >= FLEXIBLE_SINCE else put(at, 1, 4)
    at = put(at, <uint32_t>partition, 4)
    at = put(at, 0, 2)
    at = put(at, <uint64_t>base_offset, 8)
    at = put(at, <uint64_t>append_time_ms, 8)
    if version >= 5:
        at = put(at, <uint64_t>log_start_offset, 8)
    if version >= FLEXIBLE_SINCE:
        # No record errors, no message, no tagged fields of partition and topic.
        at = put(at, 0x01000000, 4)
    elif version == 8:
        at = put(at, 0x0000_0000_FFFF, 6)
    at = put(at, 0, 4)
    if version >= FLEXIBLE_SINCE:
        at = put(at, 0, 1)
    put(small, <uint64_t>(at - small - 4), 4)
    return PyBytes_FromStringAndSize(<const char*>small, at - small)
