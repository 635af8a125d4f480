"""The pieces of Flume's document, as far as there is something behind them: its clients, and views to read with.

Nothing here writes to what a node has open; docs/flume.md says what stands for what, and what took whose place."""

from streamhouse.client.flume import (
    EARLIEST,
    AssignedPartition,
    AsyncConsumer,
    AsyncGroupConsumer,
    AsyncProducer,
    Consumer,
    GroupConsumer,
    GroupMessage,
    HashPartitioner,
    Message,
    Partitioner,
    Producer,
    ProduceResult,
    RebalanceNeeded,
    RoundRobinPartitioner,
    UnknownMember,
)
from streamhouse.flume.coordinator import Coordinator, CoordinatorConfig, JoinResult, default_coordinator_config
from streamhouse.flume.group import Group, Joined, Member
from streamhouse.flume.log_file import LogRecord, read_log
from streamhouse.flume.offsets import OffsetStore
from streamhouse.flume.record import RECORD_HEADER_BYTES, Record, decode_record, new_record, read_record
from streamhouse.flume.segment import Segment
from streamhouse.flume.topics import Partition, Topic, TopicManager
from streamhouse.wire.flume.codes import ApiKey, ErrorCode

__all__ = [
    "EARLIEST",
    "RECORD_HEADER_BYTES",
    "ApiKey",
    "AssignedPartition",
    "AsyncConsumer",
    "AsyncGroupConsumer",
    "AsyncProducer",
    "Consumer",
    "Coordinator",
    "CoordinatorConfig",
    "ErrorCode",
    "Group",
    "GroupConsumer",
    "GroupMessage",
    "HashPartitioner",
    "JoinResult",
    "Joined",
    "LogRecord",
    "Member",
    "Message",
    "OffsetStore",
    "Partition",
    "Partitioner",
    "ProduceResult",
    "Producer",
    "RebalanceNeeded",
    "Record",
    "RoundRobinPartitioner",
    "Segment",
    "Topic",
    "TopicManager",
    "UnknownMember",
    "decode_record",
    "default_coordinator_config",
    "new_record",
    "read_log",
    "read_record",
]
