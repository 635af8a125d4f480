"""What must hold between a consumer group and its members at every moment, and when all is quiet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from consumer_protocol.client import Client
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_snapshot import ConsumerState
from streamhouse.core.groups.consumer_target import TopicShape


def topic(number: int, partition_count: int) -> TopicShape:
    return TopicShape(UUID(int=number), partition_count)


def check_one_owner(group: ConsumerGroup, clients: Iterable[Client]) -> None:
    """No partition is used by two clients that the group counts as members at epochs that it would accept."""
    members = {member.member_id: member for member in group.stored().members}
    owners: dict[TopicIdPartition, str] = {}
    for client in clients:
        member = members.get(client.member_id)
        if member is None or client.epoch not in (member.member_epoch, member.previous_epoch):
            continue
        assert client.owned <= member.held, f"{client.member_id} uses what the group does not know that it has"
        for partition in client.owned:
            other = owners.setdefault(partition, client.member_id)
            assert other == client.member_id, f"{partition} is used by {other} and {client.member_id}"


def check_commits(group: ConsumerGroup, clients: Iterable[Client]) -> None:
    """A commit passes exactly with the epoch that the group has for the member."""
    epochs = {member.member_id: member.member_epoch for member in group.stored().members}
    for client in clients:
        allowed = epochs.get(client.member_id) == client.epoch
        assert (group.check_commit(client.member_id, client.epoch) is None) == allowed
        assert (group.check_fetch(client.member_id, client.epoch) is None) == allowed


def check_settled(group: ConsumerGroup, clients: list[Client], topics: Mapping[str, TopicShape]) -> None:
    """Every partition of the subscribed topics has one owner, and everybody agrees who."""
    assert group.state is (ConsumerState.STABLE if clients else ConsumerState.EMPTY)
    described = {member.member_id: member for member in group.describe().members}
    assert sorted(described) == sorted(client.member_id for client in clients)
    owned = sorted(partition for client in clients for partition in client.owned)
    assert owned == sorted(
        (shape.topic_id, partition)
        for name, shape in topics.items()
        if any(is_subscribed(client, name) for client in clients)
        for partition in range(shape.partition_count)
    )
    for client in clients:
        member = described[client.member_id]
        assert client.owned == set(member.assigned) == set(member.target)
        assert client.epoch == member.member_epoch == group.assignment_epoch == group.group_epoch
        subscribed_ids = {shape.topic_id for name, shape in topics.items() if is_subscribed(client, name)}
        assert {topic_id for topic_id, _ in client.owned} <= subscribed_ids


def is_subscribed(client: Client, name: str) -> bool:
    """The patterns in these tests are prefixes: `x.*`."""
    return name in client.names or (bool(client.regex) and name.startswith(client.regex.removesuffix(".*")))
