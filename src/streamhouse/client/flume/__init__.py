"""A client for Flume ports: producers, consumers and groups, each async and blocking."""

from streamhouse.client.flume.blocking import Consumer, GroupConsumer, Producer
from streamhouse.client.flume.consumer import EARLIEST, AsyncConsumer, Message
from streamhouse.client.flume.errors import RebalanceNeeded, UnknownMember
from streamhouse.client.flume.group_consumer import AsyncGroupConsumer, GroupMessage
from streamhouse.client.flume.partitioner import HashPartitioner, Partitioner, RoundRobinPartitioner
from streamhouse.client.flume.producer import AsyncProducer, ProduceResult
from streamhouse.wire.flume.groups import AssignedPartition

__all__ = [
    "EARLIEST",
    "AssignedPartition",
    "AsyncConsumer",
    "AsyncGroupConsumer",
    "AsyncProducer",
    "Consumer",
    "GroupConsumer",
    "GroupMessage",
    "HashPartitioner",
    "Message",
    "Partitioner",
    "ProduceResult",
    "Producer",
    "RebalanceNeeded",
    "RoundRobinPartitioner",
    "UnknownMember",
]
