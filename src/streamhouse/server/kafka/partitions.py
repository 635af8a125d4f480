"""Partitions as requests name them: by topic name or, in newer versions, by topic id."""

from __future__ import annotations

from uuid import UUID

from streamhouse.broker.broker import Broker
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import StaleEpoch
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.refusals import UnknownLeaderEpoch, UnknownTopicId

NO_ID = UUID(int=0)


def find_topic(broker: Broker, name: str, topic_id: UUID) -> Topic | None:
    if topic_id == NO_ID:
        return broker.topics.find(name)
    topic = broker.topics.find_id(topic_id)
    if topic is None:
        raise UnknownTopicId(f"there is no topic with id {topic_id}")
    return topic


def find_leader(broker: Broker, name: str, topic_id: UUID, partition: int) -> PartitionLeader:
    return broker.topics.leader(find_topic(broker, name, topic_id), partition)


def check_leader_epoch(leader: PartitionLeader, epoch: int) -> None:
    """A client that knows another leader epoch must refresh its metadata, or wait until this node has caught up."""
    if 0 <= epoch < leader.epoch:
        raise StaleEpoch(f"epoch {epoch} of {leader.topic}/{leader.partition.partition} has ended")
    if epoch > leader.epoch:
        raise UnknownLeaderEpoch(f"epoch {epoch} of {leader.topic}/{leader.partition.partition} is not known here")
