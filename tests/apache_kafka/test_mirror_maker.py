"""MirrorMaker 2 copies a topic from one node to another, and goes on when the topic grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from apache_kafka import topics
from apache_kafka.jvm import Jvm
from node.process import Node
from node.wait import eventually

MIRROR_SECONDS = 240
_SETTINGS = """
clusters = here, there
here.bootstrap.servers = {here}
there.bootstrap.servers = {there}
here->there.enabled = true
here->there.topics = orders
there->here.enabled = false
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
refresh.topics.interval.seconds = 1
offset.flush.interval.ms = 500
"""


def test_a_topic_that_grows_is_mirrored_with_its_new_partitions(
    jvm: Jvm, new_node: Callable[[str], Node], tmp_path: Path
) -> None:
    here, there = new_node("here").bootstrap, new_node("there").bootstrap
    settings = tmp_path / "mirror.properties"
    settings.write_text(_SETTINGS.format(here=here, there=there))
    topics.make_topic(here, "orders", 1)
    first, later = [f"first-{n}" for n in range(100)], [f"later-{n}" for n in range(100)]
    topics.produce(here, "orders", first)

    def mirrored(partition: int) -> list[str]:
        return [value.decode() for _, value in topics.read(there, "here.orders", partition) if value is not None]

    with jvm.start("org.apache.kafka.connect.mirror.MirrorMaker", str(settings), name="mirror") as mirror:
        eventually(lambda: mirrored(0) == first, "the first records", timeout=MIRROR_SECONDS, pause=1)

        topics.grow_topic(here, "orders", 3)
        topics.produce(here, "orders", later, partition=2)

        eventually(
            lambda: topics.partition_count(there, "here.orders") == 3, "it to grow", timeout=MIRROR_SECONDS, pause=1
        )
        eventually(lambda: mirrored(2) == later, "the new partition's records", timeout=MIRROR_SECONDS, pause=1)
        assert mirror.running
        assert mirrored(0) == first
