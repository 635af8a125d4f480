"""A node that slept does not give its Flume clients what the group has given to others meanwhile."""

from __future__ import annotations

from pathlib import Path

from faults.cluster.test_groups import coordinator_of
from faults.workload import create_topic
from flume_parts import raw
from flume_parts.members import Member
from flume_parts.raw import RawFlume
from node.cluster import Cluster
from node.wait import eventually
from services.seaweed import S3Bucket

SESSION = ("--group-consumer-session-timeout", "10s", "--group-consumer-heartbeat-interval", "1s")


def test_what_waits_at_a_node_that_slept_is_refused_when_the_group_has_expelled_its_members(
    tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    with Cluster(2, tmp_path, postgres_dsn, s3_bucket, *SESSION, durability="object") as cluster:
        topic, group = cluster.new_topic(), "sleepers"
        create_topic(cluster.bootstrap, topic, 3)
        cluster.wait_led(topic)
        coordinator = coordinator_of(cluster, group)
        (sleeping,) = cluster.others(coordinator)
        with RawFlume(sleeping.flume_address) as there, RawFlume(coordinator.flume_address) as here:
            assert [here.produce(topic, b"x", partition=number)[2] for number in range(3)] == [raw.NONE] * 3
            member = Member(there, group, topic)
            eventually(lambda: member.beat() == raw.NONE and member.partitions() == [0, 1, 2], "all partitions")
            assert there.fetch(topic, 0, 0) == (raw.NONE, [(0, b"x")])
            sleeping.pause()
            there.socket.sendall(raw.request(raw.FETCH, 1, raw.fetch(topic, 0, 0)))
            other = Member(here, group, topic)
            eventually(lambda: other.beat() == raw.NONE and other.partitions() == [0, 1, 2], "the sleeper's partitions")
            assert here.fetch(topic, 0, 0) == (raw.NONE, [(0, b"x")])
            sleeping.resume()
            assert there.receive() == (1, b"\0\5\0\0\0\0"), "stale, and no records"
            assert there.heartbeat(group, member.generation, member.member_id) == raw.UNKNOWN_MEMBER
            assert there.fetch(topic, 0, 0) == (raw.STALE_GENERATION, [])
            assert there.commit(group, topic, 0, 1) == raw.UNKNOWN_MEMBER
