"""Topics, partitions and segments over REST: what is asked for is made, what is answered is so."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from rest_parts.caller import RestCaller
from rest_parts.sending import send
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.testing import Broker


def a_name() -> str:
    return f"topic-{uuid4().hex[:8]}"


def test_a_topic_is_made_as_asked_for_and_other_doors_see_it(broker: Broker, rest: RestCaller) -> None:
    name = a_name()
    made = rest.post(
        "topics",
        {
            "name": name,
            "partition_count": 3,
            "retention_ms": 3_600_000,
            "cleanup_policy": "compact",
            "config": {"segment.ms": 5000, "min.cleanable.dirty.ratio": 0.25, "max.message.bytes": "4096"},
        },
        status=201,
    )
    assert (made["name"], made["partition_count"]) == (name, 3)
    assert (made["retention_ms"], made["cleanup_policy"]) == (3_600_000, "compact")
    assert made["config"] == {
        "retention.ms": "3600000",
        "cleanup.policy": "compact",
        "segment.ms": "5000",
        "min.cleanable.dirty.ratio": "0.25",
        "max.message.bytes": "4096",
    }
    assert made["effective_config"]["compression.type"] == "producer"
    assert rest.get(f"topics/{name}") == made

    async def as_kafka_sees_it() -> dict[str, str | None]:
        async with Cluster.connect(broker.bootstrap) as cluster:
            described = await Admin(cluster).describe_topic(name)
            assert len(described.partitions) == 3
            return {config.name: config.value for config in described.configs if not config.is_default}

    assert asyncio.run(as_kafka_sees_it()) == made["config"]


def test_a_topic_without_particulars_has_the_nodes_defaults(broker: Broker, rest: RestCaller) -> None:
    made = rest.post("topics", {"name": a_name()}, status=201)
    assert made["partition_count"] == broker.node.settings.default_partitions
    assert made["retention_ms"] == broker.node.settings.retention_ms
    assert made["config"] == {}


def test_a_change_sets_what_is_given_and_takes_back_what_is_null(rest: RestCaller) -> None:
    name = a_name()
    rest.post(
        "topics", {"name": name, "retention_ms": 1000, "config": {"segment.ms": 7, "segment.bytes": 2048}}, status=201
    )
    changed = rest.patch(f"topics/{name}", {"retention_ms": None, "config": {"segment.ms": None, "retention.bytes": 9}})
    assert changed["config"] == {"segment.bytes": "2048", "retention.bytes": "9"}
    assert rest.patch(f"topics/{name}", {"cleanup_policy": "compact,delete"})["config"] == changed["config"] | {
        "cleanup.policy": "compact,delete"
    }
    assert rest.patch(f"topics/{name}", {})["cleanup_policy"] == "compact,delete"


def test_durations_and_sizes_may_have_units_and_are_stored_without(rest: RestCaller) -> None:
    name = a_name()
    made = rest.post(
        "topics",
        {"name": name, "config": {"retention.ms": "7d", "retention.bytes": "1GiB", "segment.ms": 7}},
        status=201,
    )
    assert made["retention_ms"] == 604_800_000
    assert made["config"] == {"retention.ms": "604800000", "retention.bytes": "1073741824", "segment.ms": "7"}
    changed = rest.patch(f"topics/{name}", {"config": {"retention.ms": "12h", "retention.bytes": "-1"}})
    assert changed["config"] == {"retention.ms": "43200000", "retention.bytes": "-1", "segment.ms": "7"}
    rest.refused(400, "invalid-config", "PATCH", f"topics/{name}", {"config": {"retention.ms": "soon"}})


def test_a_topic_is_given_more_partitions(broker: Broker, rest: RestCaller) -> None:
    name = a_name()
    rest.post("topics", {"name": name, "partition_count": 2}, status=201)

    grown = rest.patch(f"topics/{name}", {"partition_count": 5, "config": {"segment.ms": 7}})

    assert (grown["partition_count"], grown["config"]) == (5, {"segment.ms": "7"})
    rest.post(f"topics/{name}/records", {"records": [{"value": 1, "partition": 4}]})
    assert [each["high_watermark"] for each in rest.get(f"topics/{name}/partitions")["partitions"]] == [0, 0, 0, 0, 1]
    assert rest.patch(f"topics/{name}", {"partition_count": 5}) == grown


def test_a_topic_that_cannot_grow_so_is_left_as_it_is(rest: RestCaller) -> None:
    name = a_name()
    made = rest.post("topics", {"name": name, "partition_count": 2}, status=201)
    path = f"topics/{name}"
    less = {"partition_count": 1, "config": {"segment.ms": 7}}
    rest.refused(400, "invalid-partitions", "PATCH", path, less)
    rest.refused(400, "malformed-request", "PATCH", path, {"partition_count": 10_001})
    rest.refused(400, "invalid-config", "PATCH", path, {"partition_count": 3, "config": {"segment.ms": "soon"}})
    assert rest.get(path) == made
    fixed = rest.patch(path, {"config": {"streamhouse.partitions.fixed": "true"}})
    rest.refused(409, "policy-violation", "PATCH", path, {"partition_count": 3, "retention_ms": 5})
    assert rest.get(path) == fixed
    freed = {"partition_count": 3, "config": {"streamhouse.partitions.fixed": None}}
    assert rest.patch(path, freed)["partition_count"] == 3


def test_what_cannot_be_made_is_refused_by_name(rest: RestCaller) -> None:
    name = a_name()
    rest.post("topics", {"name": name}, status=201)
    rest.refused(409, "already-exists", "POST", "topics", {"name": name})
    other = a_name()
    refused = rest.refused(400, "invalid-config", "POST", "topics", {"name": other, "config": {"no.such": "1"}})
    assert "no.such" in refused["detail"]
    rest.refused(400, "invalid-config", "POST", "topics", {"name": other, "config": {"segment.ms": "soon"}})
    rest.refused(400, "invalid-config", "PATCH", f"topics/{name}", {"config": {"no.such": None}})
    twice = {"name": other, "retention_ms": 1, "config": {"retention.ms": 2}}
    rest.refused(400, "invalid-input", "POST", "topics", twice)
    rest.refused(400, "malformed-request", "POST", "topics", {"name": other, "partition_count": 0})
    rest.refused(400, "malformed-request", "POST", "topics", {"name": other, "partitions": 3})
    rest.refused(404, "not-found", "GET", f"topics/{other}")


@pytest.mark.parametrize(
    "name", ["../x", ".", "..", "", "a\0b", "x" * 250, "ünicode", "'; DROP TABLE topics", "<script>", "name\n"]
)
def test_a_hostile_name_is_refused_at_the_door(rest: RestCaller, name: str) -> None:
    rest.refused(400, "invalid-name", "POST", "topics", {"name": name})
    assert name not in [topic["name"] for topic in rest.get("topics")["topics"]]


def test_a_deleted_topic_is_gone(rest: RestCaller) -> None:
    name = a_name()
    rest.post("topics", {"name": name}, status=201)
    rest.delete(f"topics/{name}")
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/partitions"), ("GET", "/partitions/0/segments")):
        rest.refused(404, "not-found", method, f"topics/{name}{path}")
    rest.refused(404, "not-found", "PATCH", f"topics/{name}", {"retention_ms": 5})


def test_long_lists_come_in_pages_that_join_without_a_seam(rest: RestCaller) -> None:
    prefix = a_name()
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        rest.post("topics", {"name": name, "partition_count": 1}, status=201)
    seen: list[str] = []
    after = ""
    while after is not None:
        page = rest.get(f"topics?limit=2&after={after}")
        assert len(page["topics"]) <= 2
        seen += [topic["name"] for topic in page["topics"]]
        after = page["next"]
    assert [name for name in seen if name.startswith(prefix)] == names
    assert sorted(set(seen)) == seen
    rest.refused(400, "invalid-input", "GET", "topics?limit=10001")
    rest.refused(400, "invalid-input", "GET", "topics?limit=0")


def test_partitions_say_who_leads_and_how_far_they_are(broker: Broker, rest: RestCaller) -> None:
    name = a_name()
    rest.post("topics", {"name": name, "partition_count": 3}, status=201)
    send(broker, name, partition=1, count=5)
    answer = rest.get(f"topics/{name}/partitions")
    assert (answer["topic"], answer["partition_count"], answer["next"]) == (name, 3, None)
    assert [each["partition"] for each in answer["partitions"]] == [0, 1, 2]
    identity = broker.node.broker.identity
    for each in answer["partitions"]:
        assert (each["leader"], each["leader_node_id"]) == (identity.agent_id, identity.node_id)
        assert each["epoch"] >= 1
        assert each["lease_left_ms"] > 0
    # Before anything is in the object store: it is the leader that knows.
    assert [each["high_watermark"] for each in answer["partitions"]] == [0, 5, 0]
    some = rest.get(f"topics/{name}/partitions?limit=1&after=0")
    assert [each["partition"] for each in some["partitions"]] == [1]
    assert some["next"] == 1


def test_segments_are_those_in_the_object_store(broker: Broker, rest: RestCaller) -> None:
    name = a_name()
    rest.post("topics", {"name": name, "partition_count": 1}, status=201)
    for _ in range(3):
        send(broker, name, partition=0, count=2)
        broker.flush()
    answer = rest.get(f"topics/{name}/partitions/0/segments")
    ranges = [(each["base_offset"], each["end_offset"], each["record_count"]) for each in answer["segments"]]
    assert ranges == [(0, 2, 2), (2, 4, 2), (4, 6, 2)]
    assert answer["committed_end"] == 6
    rest_of_it = rest.get(f"topics/{name}/partitions/0/segments?after=0&limit=1")
    assert [each["base_offset"] for each in rest_of_it["segments"]] == [2]
    assert rest_of_it["next"] == 2
    rest.refused(404, "not-found", "GET", f"topics/{name}/partitions/1/segments")
    rest.refused(400, "invalid-input", "GET", f"topics/{name}/partitions/first/segments")


def test_a_page_of_another_site_may_change_nothing(rest: RestCaller) -> None:
    name = a_name()
    foreign = {"Origin": "https://elsewhere.example"}
    assert rest.call("POST", "topics", {"name": name}, headers=foreign).status == 403
    rest.post("topics", {"name": name}, status=201)
    assert rest.call("DELETE", f"topics/{name}", headers=foreign).status == 403
    assert rest.call("POST", "topics", {"name": a_name()}, headers={"Content-Type": "text/plain"}).status in (400, 415)
    assert rest.get(f"topics/{name}")["name"] == name


def test_configs_say_what_they_mean_who_set_them_and_which_do_nothing(rest: RestCaller) -> None:
    rest.post("topics", {"name": "described", "retention_ms": 5000}, status=201)
    configs = {each["name"]: each for each in rest.get("topics/described/configs")["configs"]}
    assert configs.keys() == rest.get("topics/described")["effective_config"].keys()
    retention = configs["retention.ms"]
    assert (retention["value"], retention["source"], retention["type"]) == ("5000", "topic", "long")
    assert retention["default"] == "604800000"
    assert retention["no_effect_because"] is None
    assert all(each["description"] for each in configs.values())
    idle = configs["min.insync.replicas"]
    assert (idle["source"], idle["no_effect_because"]) == ("default", "a partition has one leader and no followers")


def test_the_configs_of_a_node_are_described_by_the_names_of_kafka(rest: RestCaller) -> None:
    configs = {each["name"]: each for each in rest.get("broker-configs")["configs"]}
    assert configs["log.retention.ms"]["description"]
    assert configs["leader.replication.throttled.rate"]["no_effect_because"]
