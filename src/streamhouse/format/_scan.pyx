# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Scans of stored bytes, a WAL file's entries and a run of batches, over raw memory and without the GIL.

Every function has a twin of the same name in scan_twin.py, which says what it must do.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from libc.string cimport memcmp

from uuid import UUID

from streamhouse.format import wal_layout
from streamhouse.format.run_summary import RunSummary
from streamhouse.format.wal_layout import WalBatch
from streamhouse.model.errors import CorruptBatch

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject *thing)

cdef extern from "crc32c.h" nogil:
    uint32_t streamhouse_crc32c(uint32_t crc, const void *data, size_t size)
    uint32_t streamhouse_crc32c_portable(uint32_t crc, const void *data, size_t size)

cdef extern from *:
    """
    static inline uint32_t streamhouse_load32(const void *from)
    {
        const uint8_t *b = (const uint8_t *)from;
        return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
    }
    static inline uint64_t streamhouse_load64(const void *from)
    {
        return (uint64_t)streamhouse_load32(from) << 32 | streamhouse_load32((const uint8_t *)from + 4);
    }
    """
    uint32_t load32 "streamhouse_load32"(const void *source) nogil
    uint64_t load64 "streamhouse_load64"(const void *source) nogil

cdef enum:
    FILE_HEADER_BYTES = 32
    ENTRY_HEADER_BYTES = 16
    POSITION_AND_SIZE_BYTES = 12
    MARK_PAYLOAD_BYTES = 8
    BATCH_KIND = 1
    TOPIC_AT = 1
    PARTITION_AT = 17
    PREFIX_BYTES = 21
    BATCH_HEADER_BYTES = 61
    LENGTH_OVERHEAD_BYTES = 12
    LENGTH_AT = 8
    CRC_AT = 17
    CRC_START = 21
    ATTRIBUTES_AT = 21
    LAST_OFFSET_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    MAX_TIMESTAMP_AT = 35
    RECORD_COUNT_AT = 57
    CODEC_MASK = 7
    LOG_APPEND_TIME_BIT = 8
    ENTRIES_AT_A_TIME = 4096

cdef bytes mark_payload = wal_layout.MARK_PAYLOAD
cdef const uint8_t *MARK_PAYLOAD = mark_payload

cdef enum Found:
    INVALID
    MARK
    BATCH


cdef Found check_entry(const uint8_t *entry, Py_ssize_t room, uint64_t position, Py_ssize_t *entry_bytes) noexcept nogil:
    """Whether a valid entry with this position starts here, and how long it is."""
    cdef const uint8_t *payload = entry + ENTRY_HEADER_BYTES
    cdef const uint8_t *batch = payload + PREFIX_BYTES
    cdef int64_t payload_bytes
    cdef uint32_t crc, expected
    if room < ENTRY_HEADER_BYTES or load64(entry) != position:
        return INVALID
    payload_bytes = load32(entry + 8)
    expected = load32(entry + POSITION_AND_SIZE_BYTES)
    if payload_bytes > room - ENTRY_HEADER_BYTES:
        return INVALID
    entry_bytes[0] = ENTRY_HEADER_BYTES + payload_bytes
    crc = streamhouse_crc32c(0, entry, POSITION_AND_SIZE_BYTES)
    if payload_bytes == MARK_PAYLOAD_BYTES:
        if memcmp(payload, MARK_PAYLOAD, MARK_PAYLOAD_BYTES) != 0:
            return INVALID
        return MARK if streamhouse_crc32c(crc, payload, MARK_PAYLOAD_BYTES) == expected else INVALID
    if payload_bytes < PREFIX_BYTES + BATCH_HEADER_BYTES or payload[0] != BATCH_KIND:
        return INVALID
    if streamhouse_crc32c(crc, payload, PREFIX_BYTES + CRC_START) != expected:
        return INVALID
    if <int64_t><int32_t>load32(batch + LENGTH_AT) + LENGTH_OVERHEAD_BYTES != payload_bytes - PREFIX_BYTES:
        return INVALID
    crc = streamhouse_crc32c(0, batch + CRC_START, payload_bytes - PREFIX_BYTES - CRC_START)
    return BATCH if crc == load32(batch + CRC_AT) else INVALID


def scan_entries(const uint8_t[::1] buf not None, uint64_t first_position):
    cdef const uint8_t *start = &buf[0] if buf.shape[0] else NULL
    cdef Py_ssize_t size = buf.shape[0]
    cdef Py_ssize_t at = FILE_HEADER_BYTES
    cdef Py_ssize_t entry_bytes = 0
    cdef Py_ssize_t[ENTRIES_AT_A_TIME] found
    cdef Py_ssize_t count, i
    cdef const uint8_t *batch
    cdef const uint8_t *topic = NULL
    cdef Found kind = MARK
    cdef int64_t base_offset
    cdef list entries = []
    cdef dict topics = {}
    topic_id = None
    new = tuple.__new__
    while kind != INVALID:
        count = 0
        with nogil:
            while count < ENTRIES_AT_A_TIME:
                kind = check_entry(start + at, size - at, first_position + <uint64_t>at, &entry_bytes)
                if kind == INVALID:
                    break
                if kind == BATCH:
                    found[count] = at
                    count += 1
                at += entry_bytes
        for i in range(count):
            batch = start + found[i] + ENTRY_HEADER_BYTES + PREFIX_BYTES
            if topic == NULL or memcmp(topic, batch - PREFIX_BYTES + TOPIC_AT, 16) != 0:
                topic = batch - PREFIX_BYTES + TOPIC_AT
                key = PyBytes_FromStringAndSize(<const char *>topic, 16)
                topic_id = topics.get(key)
                if topic_id is None:
                    topic_id = topics[key] = UUID(bytes=key)
            base_offset = <int64_t>load64(batch)
            entry = new(
                WalBatch,
                (
                    first_position + <uint64_t>found[i],
                    topic_id,
                    <int32_t>load32(batch - PREFIX_BYTES + PARTITION_AT),
                    batch - start,
                    found[i] + ENTRY_HEADER_BYTES + load32(start + found[i] + 8),
                    base_offset,
                    <object>base_offset + (<int64_t><int32_t>load32(batch + LAST_OFFSET_DELTA_AT) + 1),
                ),
            )
            # Nothing in it can be part of a cycle; walking a million of these would take longer than this scan.
            PyObject_GC_UnTrack(<PyObject *>entry)
            entries.append(entry)
    return entries, at


cdef struct Run:
    int64_t base_offset
    int64_t end_offset
    int64_t record_count
    int64_t min_timestamp
    int64_t max_timestamp
    int64_t plain_bytes


cdef enum Problem:
    FINE
    CUT_SHORT
    BAD_COUNT
    OFFSET_AGAIN


cdef Problem add_batches(const uint8_t *start, Py_ssize_t size, int64_t max_bytes, Py_ssize_t *at, Run *run) noexcept nogil:
    cdef const uint8_t *batch
    cdef int64_t batch_bytes, base_offset, last_offset_delta, low, high
    cdef int32_t record_count
    cdef uint32_t attributes
    while at[0] < size:
        batch = start + at[0]
        if size - at[0] < BATCH_HEADER_BYTES:
            return CUT_SHORT
        batch_bytes = <int64_t><int32_t>load32(batch + LENGTH_AT) + LENGTH_OVERHEAD_BYTES
        if batch_bytes < BATCH_HEADER_BYTES or batch_bytes > size - at[0]:
            return CUT_SHORT
        base_offset = <int64_t>load64(batch)
        last_offset_delta = <int32_t>load32(batch + LAST_OFFSET_DELTA_AT)
        record_count = <int32_t>load32(batch + RECORD_COUNT_AT)
        if last_offset_delta < 0 or record_count < 0 or base_offset > INT64_MAX - last_offset_delta - 1:
            return BAD_COUNT
        if at[0] > 0 and at[0] + batch_bytes > max_bytes:
            return FINE
        # The low byte of the attributes has all the bits that matter here.
        attributes = batch[ATTRIBUTES_AT + 1]
        high = <int64_t>load64(batch + MAX_TIMESTAMP_AT)
        low = <int64_t>load64(batch + BASE_TIMESTAMP_AT)
        if attributes & LOG_APPEND_TIME_BIT or low > high:
            low = high
        if at[0] == 0:
            run.base_offset = base_offset
            run.min_timestamp = low
            run.max_timestamp = high
        elif base_offset < run.end_offset:
            return OFFSET_AGAIN
        run.end_offset = base_offset + last_offset_delta + 1
        run.record_count += record_count
        run.min_timestamp = min(run.min_timestamp, low)
        run.max_timestamp = max(run.max_timestamp, high)
        if attributes & CODEC_MASK == 0:
            run.plain_bytes += batch_bytes
        at[0] += batch_bytes
    return FINE


def scan_run(const uint8_t[::1] buf not None, Py_ssize_t start, int64_t max_bytes):
    cdef Py_ssize_t size = buf.shape[0] - start
    cdef Py_ssize_t at = 0
    cdef Run run = Run(0, 0, 0, 0, 0, 0)
    cdef Problem problem = FINE
    if start < 0:
        raise CorruptBatch("a run of record batches cannot start before its buffer")
    if size > 0:
        # Microseconds, also on the event loop: giving the lock away for them means to wait until others give it back.
        problem = add_batches(&buf[start], size, max_bytes, &at, &run)
    if problem == CUT_SHORT:
        raise CorruptBatch(f"the record batch at byte {start + at} is cut short")
    if problem == BAD_COUNT:
        raise CorruptBatch(f"the record batch at byte {start + at} has offsets or a count out of range")
    if problem == OFFSET_AGAIN:
        raise CorruptBatch(f"the record batch at byte {start + at} has offsets that came before")
    return RunSummary(
        start + at,
        run.base_offset,
        run.end_offset,
        run.record_count,
        run.min_timestamp,
        run.max_timestamp,
        run.plain_bytes,
    )


def crc32c(const uint8_t[::1] data not None, uint32_t crc=0):
    """The CRC that the compiled code uses, for its tests."""
    return streamhouse_crc32c(crc, &data[0], data.shape[0]) if data.shape[0] else crc


def crc32c_portable(const uint8_t[::1] data not None, uint32_t crc=0):
    """The same without the processor's instruction."""
    return streamhouse_crc32c_portable(crc, &data[0], data.shape[0]) if data.shape[0] else crc
