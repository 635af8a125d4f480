"""Partitions as requests name them: by topic name or, in newer versions, by topic id."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from streamhouse.broker.broker import Broker
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import NotLeader, StaleEpoch, StreamHouseError
from streamhouse.model.names import TopicPartition, check_topic_name
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.refusals import UnknownLeaderEpoch, UnknownTopicId

NO_ID = UUID(int=0)


def known_topic(broker: Broker, name: str, topic_id: UUID) -> Topic | None:
    return broker.topics.find(name) if topic_id == NO_ID else broker.topics.find_id(topic_id)


def find_topic(broker: Broker, name: str, topic_id: UUID) -> Topic | None:
    topic = known_topic(broker, name, topic_id)
    if topic is None and topic_id != NO_ID:
        raise UnknownTopicId(f"there is no topic with id {topic_id}")
    return topic


class TopicLookup:
    """The topics that one request names. What is not known here may have just been created through another node, so
    the store is asked: once for all of them, however many there are."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._has_looked = False
        self._trouble: StreamHouseError | None = None

    async def get(self, name: str, topic_id: UUID = NO_ID) -> Topic:
        known = known_topic(self._broker, name, topic_id)
        if known is not None:
            return known
        if topic_id == NO_ID:
            check_topic_name(name)
        await self._look()
        return find_topic(self._broker, name, topic_id) or self._broker.topics.get(name)

    async def _look(self) -> None:
        if not self._has_looked:
            self._has_looked = True
            try:
                await self._broker.topics.refresh()
            except StreamHouseError as problem:
                self._trouble = problem
        if self._trouble is not None:
            raise self._trouble


def find_leader(broker: Broker, name: str, topic_id: UUID, partition: int) -> PartitionLeader:
    return broker.topics.leader(find_topic(broker, name, topic_id), partition)


class LeaderId(NamedTuple):
    """As Kafka names a leader; -1 where there is none."""

    node_id: int
    epoch: int


NO_LEADER = LeaderId(-1, -1)


def leader_of(broker: Broker, topic: Topic | None, partition: int) -> LeaderId:
    """This node, if it leads the partition; else whom the cluster knows.

    A leader that may have been deposed without hearing of it still names itself if there is nobody else."""
    if topic is None or not 0 <= partition < topic.partition_count:
        return NO_LEADER
    here = broker.topics.leaders_of(topic)[partition]
    if here is not None and (here.knows_the_end or broker.nodes.is_alone):
        return LeaderId(broker.identity.node_id, here.epoch)
    elsewhere = broker.nodes.leader_of(TopicPartition(topic.topic_id, partition))
    return NO_LEADER if elsewhere is None else LeaderId(elsewhere.node.node_id, elsewhere.epoch)


def awaited_nodes(broker: Broker, topic: Topic, partition: int) -> list[int]:
    """The node that a partition without a leader waits for, if there is one."""
    node_id = broker.nodes.awaited(TopicPartition(topic.topic_id, partition))
    return [] if node_id is None else [node_id]


def check_end_is_known(leader: PartitionLeader) -> None:
    """An old end told as the latest would make a reader miss, or read again, what a newer leader has."""
    if not leader.knows_the_end:
        raise NotLeader(f"another agent may lead {leader.topic}/{leader.partition.partition} by now")


def check_leader_epoch(leader: PartitionLeader, epoch: int) -> None:
    """A client that knows another leader epoch must refresh its metadata, or wait until this node has caught up."""
    if 0 <= epoch < leader.epoch:
        raise StaleEpoch(f"epoch {epoch} of {leader.topic}/{leader.partition.partition} has ended")
    if epoch > leader.epoch:
        raise UnknownLeaderEpoch(f"epoch {epoch} of {leader.topic}/{leader.partition.partition} is not known here")
