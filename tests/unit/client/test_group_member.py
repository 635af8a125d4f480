"""A member of a group, one call at a time, against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.group_member import GroupMember, Membership
from streamhouse.client.group_progress import describe_progress
from streamhouse.client.groups_admin import GroupPartition, GroupsAdmin
from streamhouse.model.errors import InvalidInput, InvalidName, NotFound, StaleGeneration
from streamhouse.testing import Broker
from streamhouse.wire.kafka.messages import join_group, offset_commit

TOPIC = "orders"
PARTITIONS = tuple(GroupPartition(TOPIC, partition) for partition in range(4))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(auto_create_topics=False) as running:
        running.create_topic(TOPIC, 4)
        yield running


def with_cluster(broker: Broker, scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Cluster.connect(broker.bootstrap) as cluster:
            await scenario(cluster)

    asyncio.run(run())


def test_the_first_member_gets_all_partitions_and_the_name_of_its_client_is_seen(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        member = GroupMember(cluster, "alone", [TOPIC], client_id="billing")
        joined = await member.join()
        assert joined == Membership(1, PARTITIONS)
        assert await member.heartbeat(joined.assignment) == joined
        (seen,) = (await GroupsAdmin(cluster).describe_group("alone")).members
        assert (seen.member_id, seen.client_id, seen.partitions) == (member.member_id, "billing", PARTITIONS)

    with_cluster(broker, scenario)


def test_a_second_member_gets_partitions_only_when_the_first_has_given_them_up(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = (GroupMember(cluster, "two", [TOPIC]) for _ in range(2))
        await first.join()
        await first.heartbeat(PARTITIONS)
        assert (await second.join()).assignment == ()

        kept = (await first.heartbeat()).assignment
        assert len(kept) == 2
        assert (await second.heartbeat()).assignment == ()

        assert (await first.heartbeat(kept)).assignment == kept
        assert set((await second.heartbeat()).assignment) == set(PARTITIONS) - set(kept)

    with_cluster(broker, scenario)


def test_offsets_are_committed_by_a_member_and_read_by_anybody(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        member = GroupMember(cluster, "offsets", [TOPIC])
        await member.join()
        await member.commit({PARTITIONS[0]: 7, PARTITIONS[2]: 9}, "half way")
        assert await member.committed(PARTITIONS) == {PARTITIONS[0]: 7, PARTITIONS[2]: 9}
        stranger = GroupMember(cluster, "offsets", [TOPIC])
        assert await stranger.committed(PARTITIONS[:2]) == {PARTITIONS[0]: 7}

    with_cluster(broker, scenario)


def test_what_others_commit_below_0_is_no_commit_and_own_commits_are_never_below_it(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        request = offset_commit.OffsetCommitRequest(
            group_id="below",
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        offset_commit.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                        for partition, offset in ((0, -1), (1, -2), (2, 0))
                    ],
                )
            ],
        )
        answer = await (await cluster.any_broker()).call(offset_commit, request, max_version=5)
        assert [partition.error_code for partition in answer.topics[0].partitions] == [0, 0, 0]

        groups, member = GroupsAdmin(cluster), GroupMember(cluster, "below", [TOPIC])
        assert await member.committed(PARTITIONS) == await groups.committed_offsets("below") == {PARTITIONS[2]: 0}
        _, progress = await describe_progress(groups, Admin(cluster), "below")
        assert [each.partition for each in progress] == [PARTITIONS[2]]
        with pytest.raises(InvalidInput, match="-2 is not an offset"):
            await groups.commit_offsets("below", {PARTITIONS[0]: -2})
        await member.join()
        with pytest.raises(InvalidInput, match="-1 is not an offset"):
            await member.commit({PARTITIONS[0]: -1})

    with_cluster(broker, scenario)


def test_a_member_that_left_can_neither_beat_nor_commit_until_it_joins_again(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        member, stays = GroupMember(cluster, "left", [TOPIC]), GroupMember(cluster, "left", [TOPIC])
        await member.join()
        await stays.join()
        await member.leave()
        await member.leave()
        with pytest.raises(NotFound):
            await member.heartbeat()
        member.membership = Membership(1, ())
        with pytest.raises(NotFound):
            await member.heartbeat()
        with pytest.raises(NotFound):
            await member.commit({PARTITIONS[0]: 1})
        assert (await member.join()).epoch > 0

    with_cluster(broker, scenario)


def test_an_old_epoch_is_stale(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        member = GroupMember(cluster, "stale", [TOPIC])
        joined = await member.join()
        member.membership = Membership(joined.epoch + 5, joined.assignment)
        with pytest.raises(StaleGeneration):
            await member.commit({PARTITIONS[0]: 1})
        with pytest.raises(StaleGeneration):
            await member.heartbeat()
        assert (await member.join()).epoch == joined.epoch

    with_cluster(broker, scenario)


def test_a_group_of_the_older_protocol_is_in_use(broker: Broker) -> None:
    async def scenario(cluster: Cluster) -> None:
        protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
        request = join_group.JoinGroupRequest(
            group_id="classic",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        # Version 3 lets a member in without a second request.
        await (await cluster.any_broker()).call(join_group, request, max_version=3)
        with pytest.raises(InvalidInput, match="has members"):
            await GroupMember(cluster, "classic", [TOPIC]).join()

    with_cluster(broker, scenario)


@pytest.mark.parametrize(
    ("group_id", "assignor", "error"), [("", None, InvalidName), ("odd", "by-moonlight", InvalidInput)]
)
def test_what_could_never_be_right_is_refused(
    broker: Broker, group_id: str, assignor: str | None, error: type[Exception]
) -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(error):
            await GroupMember(cluster, group_id, [TOPIC], assignor=assignor).join()

    with_cluster(broker, scenario)


def test_a_member_goes_on_when_its_broker_was_away() -> None:
    async def scenario(broker: Broker, cluster: Cluster) -> None:
        member = GroupMember(cluster, "survivor", [TOPIC])
        joined = await member.join()
        await asyncio.get_running_loop().run_in_executor(None, broker.restart)
        assert await member.heartbeat(joined.assignment) == joined
        await member.commit({PARTITIONS[0]: 3})
        assert await member.committed(PARTITIONS) == {PARTITIONS[0]: 3}

    with Broker(durable=True, auto_create_topics=False) as broker:
        broker.create_topic(TOPIC, 4)
        with_cluster(broker, lambda cluster: scenario(broker, cluster))
