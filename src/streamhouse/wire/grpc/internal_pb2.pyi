# fmt: off
# ruff: noqa
# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
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
    __slots__ = ("partition", "leader_epoch", "batch", "is_admitted")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    IS_ADMITTED_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    leader_epoch: int
    batch: bytes
    is_admitted: bool
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ..., leader_epoch: _Optional[int] = ..., batch: _Optional[bytes] = ..., is_admitted: _Optional[bool] = ...) -> None: ...

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

class OffsetAtRequest(_message.Message):
    __slots__ = ("partition", "timestamp_ms")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    timestamp_ms: int
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ..., timestamp_ms: _Optional[int] = ...) -> None: ...

class OffsetAtResponse(_message.Message):
    __slots__ = ("offset", "log_start_offset", "committed_end", "high_watermark", "uncommitted_bytes", "leader_epoch")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_END_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    UNCOMMITTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    log_start_offset: int
    committed_end: int
    high_watermark: int
    uncommitted_bytes: int
    leader_epoch: int
    def __init__(self, offset: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., committed_end: _Optional[int] = ..., high_watermark: _Optional[int] = ..., uncommitted_bytes: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("base_offset", "end_offset", "record_count", "size_bytes", "min_timestamp_ms", "max_timestamp_ms", "epoch", "object_key", "checksum")
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    base_offset: int
    end_offset: int
    record_count: int
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    epoch: int
    object_key: str
    checksum: int
    def __init__(self, base_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., record_count: _Optional[int] = ..., size_bytes: _Optional[int] = ..., min_timestamp_ms: _Optional[int] = ..., max_timestamp_ms: _Optional[int] = ..., epoch: _Optional[int] = ..., object_key: _Optional[str] = ..., checksum: _Optional[int] = ...) -> None: ...

class ReplaceSegmentsRequest(_message.Message):
    __slots__ = ("partition", "commit_id", "removed", "added")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_ID_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    commit_id: bytes
    removed: _containers.RepeatedScalarFieldContainer[str]
    added: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ..., commit_id: _Optional[bytes] = ..., removed: _Optional[_Iterable[str]] = ..., added: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class ReplaceSegmentsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

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

class WorkRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("records_in", "bytes_in", "records_out", "bytes_out", "produce_p50_ms", "produce_p99_ms", "buffered_bytes", "buffer_limit_bytes", "ends", "oldest_upload_ms", "wal_problem")
    RECORDS_IN_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_FIELD_NUMBER: _ClassVar[int]
    RECORDS_OUT_FIELD_NUMBER: _ClassVar[int]
    BYTES_OUT_FIELD_NUMBER: _ClassVar[int]
    PRODUCE_P50_MS_FIELD_NUMBER: _ClassVar[int]
    PRODUCE_P99_MS_FIELD_NUMBER: _ClassVar[int]
    BUFFERED_BYTES_FIELD_NUMBER: _ClassVar[int]
    BUFFER_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_UPLOAD_MS_FIELD_NUMBER: _ClassVar[int]
    WAL_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    records_in: int
    bytes_in: int
    records_out: int
    bytes_out: int
    produce_p50_ms: float
    produce_p99_ms: float
    buffered_bytes: int
    buffer_limit_bytes: int
    ends: _containers.RepeatedCompositeFieldContainer[PartitionEnd]
    oldest_upload_ms: int
    wal_problem: str
    def __init__(self, records_in: _Optional[int] = ..., bytes_in: _Optional[int] = ..., records_out: _Optional[int] = ..., bytes_out: _Optional[int] = ..., produce_p50_ms: _Optional[float] = ..., produce_p99_ms: _Optional[float] = ..., buffered_bytes: _Optional[int] = ..., buffer_limit_bytes: _Optional[int] = ..., ends: _Optional[_Iterable[_Union[PartitionEnd, _Mapping]]] = ..., oldest_upload_ms: _Optional[int] = ..., wal_problem: _Optional[str] = ...) -> None: ...

class PartitionEnd(_message.Message):
    __slots__ = ("partition", "high_watermark")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    partition: Partition
    high_watermark: int
    def __init__(self, partition: _Optional[_Union[Partition, _Mapping]] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class WalRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WalResponse(_message.Message):
    __slots__ = ("disk", "gathered_batches", "gathered_bytes", "in_flight", "uncovered_records", "uncovered_bytes")
    DISK_FIELD_NUMBER: _ClassVar[int]
    GATHERED_BATCHES_FIELD_NUMBER: _ClassVar[int]
    GATHERED_BYTES_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    UNCOVERED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    UNCOVERED_BYTES_FIELD_NUMBER: _ClassVar[int]
    disk: WalOnDisk
    gathered_batches: int
    gathered_bytes: int
    in_flight: _containers.RepeatedCompositeFieldContainer[WalObject]
    uncovered_records: int
    uncovered_bytes: int
    def __init__(self, disk: _Optional[_Union[WalOnDisk, _Mapping]] = ..., gathered_batches: _Optional[int] = ..., gathered_bytes: _Optional[int] = ..., in_flight: _Optional[_Iterable[_Union[WalObject, _Mapping]]] = ..., uncovered_records: _Optional[int] = ..., uncovered_bytes: _Optional[int] = ...) -> None: ...

class WalOnDisk(_message.Message):
    __slots__ = ("files", "unsynced_batches", "unsynced_bytes", "problem")
    FILES_FIELD_NUMBER: _ClassVar[int]
    UNSYNCED_BATCHES_FIELD_NUMBER: _ClassVar[int]
    UNSYNCED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[WalFile]
    unsynced_batches: int
    unsynced_bytes: int
    problem: str
    def __init__(self, files: _Optional[_Iterable[_Union[WalFile, _Mapping]]] = ..., unsynced_batches: _Optional[int] = ..., unsynced_bytes: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class WalFile(_message.Message):
    __slots__ = ("name", "size_bytes", "is_current", "owner_count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_CURRENT_FIELD_NUMBER: _ClassVar[int]
    OWNER_COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    is_current: bool
    owner_count: int
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., is_current: _Optional[bool] = ..., owner_count: _Optional[int] = ...) -> None: ...

class WalObject(_message.Message):
    __slots__ = ("key", "size_bytes", "partition_count", "is_stored")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    IS_STORED_FIELD_NUMBER: _ClassVar[int]
    key: str
    size_bytes: int
    partition_count: int
    is_stored: bool
    def __init__(self, key: _Optional[str] = ..., size_bytes: _Optional[int] = ..., partition_count: _Optional[int] = ..., is_stored: _Optional[bool] = ...) -> None: ...
