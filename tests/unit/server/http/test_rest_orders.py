"""An operator's orders over REST: drains, moves, and who may not give them."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from rest_parts.caller import RestCaller
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.metadata.store import EpochStart
from streamhouse.model.names import TopicPartition
from streamhouse.testing import Broker


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    with Broker(http=True, default_partitions=2) as broker:
        broker.create_topic("orders", 2)
        yield broker


@pytest.fixture
def rest(own_broker: Broker) -> RestCaller:
    return RestCaller(own_broker.endpoint)


@pytest.fixture
def me(own_broker: Broker) -> str:
    return own_broker.node.broker.identity.agent_id


def register(broker: Broker, agent_id: str, *, agent_group: str = "other", is_silent: bool = False) -> None:
    """An agent without a process; one without an address is not heard of."""
    info = AgentInfo(
        agent_id=agent_id,
        address="127.0.0.1:1",
        kafka_address="" if is_silent else "127.0.0.1:1",
        zone="",
        agent_group=agent_group,
    )
    broker._run(broker._metadata.register_agent(info, 0))


def pin_of(broker: Broker, partition: int = 0) -> str:
    placements = broker._run(broker._metadata.list_placements())
    return next(each.pinned_to for each in placements if each.partition.partition == partition)


def test_placements_are_listed_in_pages_whether_somebody_leads_them_or_not(rest: RestCaller, me: str) -> None:
    rest.post("topics", {"name": "lost", "partition_count": 1, "config": {"streamhouse.agent.group": "x"}}, status=201)
    everything = rest.get("placements")
    assert [(each["topic"], each["partition"], each["leader"]) for each in everything["placements"]] == [
        ("lost", 0, None),
        ("orders", 0, me),
        ("orders", 1, me),
    ]
    assert everything["next"] is None
    one = rest.get("placements?topic=orders&limit=1")
    assert one["next"] == "orders/0"
    (two,) = rest.get("placements?topic=orders&after=orders/0")["placements"]
    assert two == everything["placements"][2] | {"lease_left_ms": two["lease_left_ms"]}
    assert (two["epoch"], two["high_watermark"], two["waits_for"], two["pinned_to"]) == (1, 0, None, None)
    rest.refused(404, "not-found", "GET", "placements?topic=nothing")


def test_an_agent_is_drained_and_says_so(rest: RestCaller, me: str) -> None:
    for _ in range(2):  # what is ordered twice is done once
        drained = rest.post(f"agents/{me}/drain", None)
        assert (drained["agent_id"], drained["state"]) == (me, "draining")
    assert [agent["state"] for agent in rest.get("agents")["agents"]] == ["draining"]


def test_who_drains_the_last_agent_of_its_group_is_told_and_a_cluster_that_goes_on_is_not_down(
    own_broker: Broker, rest: RestCaller, me: str
) -> None:
    register(own_broker, "elsewhere")
    assert f"what {me} leads stays with it" in rest.post(f"agents/{me}/drain", None)["note"]
    assert rest.post("agents/elsewhere/drain", None)["note"].startswith(
        "no other agent of agent group 'other' is alive"
    )

    rest.post("topics/orders/records", {"records": [{"value": 1}]})
    overview = rest.get("overview")
    assert overview["cluster"]["status"] == rest.get("cluster/health")["status"] == "degraded"
    assert overview["cluster"]["partitions_without_leader"] == 0
    # The one without a process answers nobody.
    told = {alert["code"]: alert for alert in overview["alerts"]}
    assert set(told) == {"agents_all_draining", "agents_not_answering"}
    assert sorted(told["agents_all_draining"]["agents"]) == sorted([me, "elsewhere"])

    register(own_broker, "successor", agent_group="default")
    assert rest.post(f"agents/{me}/drain", None)["note"] == ""


def test_an_agent_that_is_not_there_or_not_alive_is_not_drained(own_broker: Broker, rest: RestCaller) -> None:
    assert "'nobody'" in rest.refused(404, "not-found", "POST", "agents/nobody/drain")["detail"]
    register(own_broker, "gone", is_silent=True)
    assert "not alive" in rest.refused(400, "invalid-input", "POST", "agents/gone/drain")["detail"]
    agents = own_broker._run(own_broker._metadata.list_agents())
    assert not any(agent.is_draining for agent in agents)


def test_a_partition_is_given_to_an_agent_and_back_to_the_ring(own_broker: Broker, rest: RestCaller, me: str) -> None:
    path = "topics/orders/partitions/1/pin"
    pinned = rest.call("PUT", path, {"agent_id": me})
    assert (pinned.status, pinned.json["topic"], pinned.json["partition"]) == (200, "orders", 1)
    assert (pinned.json["leader"], pinned.json["pinned_to"], pinned.json["epoch"]) == (me, me, 1)
    assert pin_of(own_broker, 1) == me
    freed = rest.call("DELETE", path)
    assert (freed.status, freed.json) == (200, pinned.json | freed.json | {"pinned_to": None})
    assert pin_of(own_broker, 1) == ""


def test_a_partition_is_given_only_to_who_could_lead_it(own_broker: Broker, rest: RestCaller, me: str) -> None:
    path = "topics/orders/partitions/0/pin"
    register(own_broker, "gone", is_silent=True)
    register(own_broker, "leaving")
    own_broker._run(own_broker._metadata.drain_agent("leaving"))
    assert "not alive" in rest.refused(400, "invalid-input", "PUT", path, {"agent_id": "gone"})["detail"]
    assert "draining" in rest.refused(400, "invalid-input", "PUT", path, {"agent_id": "leaving"})["detail"]
    rest.refused(404, "not-found", "PUT", path, {"agent_id": "nobody"})
    rest.refused(404, "not-found", "PUT", "topics/orders/partitions/2/pin", {"agent_id": me})
    rest.refused(404, "not-found", "DELETE", "topics/nothing/partitions/0/pin")
    rest.refused(400, "malformed-request", "PUT", path, {"agent_id": ""})
    rest.refused(400, "malformed-request", "PUT", path, {"agent_id": me, "epoch": 3})
    assert pin_of(own_broker) == ""


def test_a_partition_whose_records_may_be_on_another_agents_disk_stays_there(
    own_broker: Broker, rest: RestCaller, me: str
) -> None:
    register(own_broker, "other")
    store = own_broker._metadata

    async def lead_from_its_disk() -> None:
        topic = await store.create_topic("kept", uuid4(), 1, {"streamhouse.agent.group": "other"})
        (lease,) = await store.acquire_leases("other", [TopicPartition(topic.topic_id, 0)], 60_000)
        assert lease is not None
        await store.begin_epochs("other", [EpochStart(lease=lease, offset=0, in_local_wal=True)])
        await store.release_leases("other", [lease], drained=False)

    own_broker._run(lead_from_its_disk())
    refused = rest.refused(400, "invalid-input", "PUT", "topics/kept/partitions/0/pin", {"agent_id": me})
    assert "waits for agent other, whose disk may hold acknowledged records" in refused["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "agents/{me}/drain", None),
        ("PUT", "topics/orders/partitions/0/pin", {"agent_id": "{me}"}),
        ("DELETE", "topics/orders/partitions/0/pin", None),
    ],
)
def test_a_page_of_another_site_gives_no_orders(
    own_broker: Broker, rest: RestCaller, me: str, method: str, path: str, body: object
) -> None:
    path = path.format(me=me)
    for headers in ({"Origin": "http://elsewhere.example"}, {"Origin": "null"}):
        assert rest.call(method, path, body and {"agent_id": me}, headers=headers).status == 403
    assert rest.call(method, path, body and {"agent_id": me}, headers={"Host": "elsewhere.example"}).status == 421
    if body is not None:  # which a form can send without asking
        assert rest.call(method, path, body, headers={"Content-Type": "text/plain"}).status == 400
    assert [agent["state"] for agent in rest.get("agents")["agents"]] == ["live"]
    assert pin_of(own_broker) == ""
