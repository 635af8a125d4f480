# fmt: off
# ruff: noqa
# mypy: disable-error-code="type-arg"
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Partition(_message.Message):
    __slots__ = ("topic_id", "number")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    topic_id: bytes
    number: int
    def __init__(self, topic_id: _Optional[bytes] = ..., number: _Optional[int] = ...) -> None: ...

class ProduceRequest(_message.Message):
    __slots__ = ("partition", "leader_epoch", "batch")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    leader_epoch: int
    batch: bytes
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ..., leader_epoch: _Optional[int] = ..., batch: _Optional[bytes] = ...) -> None: ...

class ProduceResponse(_message.Message):
    __slots__ = ("base_offset", "append_time_ms", "leader_epoch")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    append_time_ms: int
    leader_epoch: int
    def __init__(self, base_offset: _Optional[int] = ..., append_time_ms: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("partition", "offset", "max_bytes", "min_bytes", "max_wait_ms")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    offset: int
    max_bytes: int
    min_bytes: int
    max_wait_ms: int
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ..., offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., min_bytes: _Optional[int] = ..., max_wait_ms: _Optional[int] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("batches", "high_watermark", "log_start_offset", "leader_epoch")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    batches: bytes
    high_watermark: int
    log_start_offset: int
    leader_epoch: int
    def __init__(self, batches: _Optional[bytes] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ...) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ("committed_end",)
    COMMITTED_END_FIELD_NUMBER: _ClassVar[int]
    committed_end: int
    def __init__(self, committed_end: _Optional[int] = ...) -> None: ...

class NudgeTransfersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NudgeTransfersResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
