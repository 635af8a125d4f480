"""Produce requests and the hash of their keys in plain Python, for machines that could not compile `_produce_scan`;
both pass one suite."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from streamhouse.wire.flume.codes import ApiKey
from streamhouse.wire.flume.produce_frame import ProduceFrame

_head = Struct(">hih").unpack_from
_partition_and_key = Struct(">ii").unpack_from
_int32 = Struct(">i").unpack_from
_HEAD_BYTES = 8
_OFFSET_BASIS = 0x811C9DC5
_PRIME = 0x01000193
_UINT32 = 0xFFFFFFFF


def fnv1a_32(key: bytes) -> int:
    digest = _OFFSET_BASIS
    for byte in key:
        digest = ((digest ^ byte) * _PRIME) & _UINT32
    return digest


def scan(buffer: memoryview, start: int, end: int) -> ProduceFrame | None:
    """A whole frame without its size; None if it is another request, or none.

    It may lie in a larger buffer: as no length is negative and the last field ends where the frame does, every field
    was inside."""
    try:
        api_key, request_id, topic_bytes = _head(buffer, start)
        if api_key != ApiKey.PRODUCE or topic_bytes < 0:
            return None
        topic_end = start + _HEAD_BYTES + topic_bytes
        partition, key_bytes = _partition_and_key(buffer, topic_end)
        payload_start = topic_end + 12 + key_bytes
        if key_bytes < 0 or payload_start > end:
            return None
        (payload_bytes,) = _int32(buffer, payload_start - 4)
    except StructError:
        return None
    if payload_start + payload_bytes != end or payload_bytes < 0:
        return None
    key = bytes(buffer[topic_end + 8 : payload_start - 4])
    topic = bytes(buffer[start + _HEAD_BYTES : topic_end])
    return ProduceFrame(request_id, topic, partition, key, bytes(buffer[payload_start:end]), fnv1a_32(key))
