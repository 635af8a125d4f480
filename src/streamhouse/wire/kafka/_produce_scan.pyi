from streamhouse.format.batch import BatchHeader
from streamhouse.model.buffer import Buffer

def scan(buffer: Buffer, start: int, end: int) -> tuple[int, int, int, int, bytes, int, int, int, BatchHeader] | None:
    """Version, correlation id, acks, time-out in ms, topic, partition, start and end of the batch, and its header."""

def encode_reply(
    version: int,
    correlation_id: int,
    topic: bytes,
    partition: int,
    base_offset: int,
    append_time_ms: int,
    log_start_offset: int,
) -> bytes: ...
