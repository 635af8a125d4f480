"""Every node tells the durability that topics really have, also one whose own default is another."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from faults.workload import create_topic
from node.cluster import Cluster
from node.process import Node
from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import RestCaller

DURABILITY = "streamhouse.durability"


def described(bootstrap: str, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.describe_configs([resource], request_timeout=HUNG_SECONDS)
    return str(asked[resource].result()[DURABILITY].value)


def configured(node: Node, topic: str) -> dict[str, str]:
    configs = RestCaller(node.http).get(f"topics/{topic}/configs")["configs"]
    return next(config for config in configs if config["name"] == DURABILITY)


def told(node: Node, topic: str) -> set[str]:
    answer = RestCaller(node.http).get(f"topics/{topic}")
    return {
        described(node.bootstrap, topic),
        answer["effective_config"][DURABILITY],
        configured(node, topic)["value"],
    }


@pytest.mark.parametrize("durability", ["object"])
def test_a_server_without_an_agent_tells_the_durability_of_the_agents(cluster: Cluster, tmp_path: Path) -> None:
    create_topic(cluster.bootstrap, topic := cluster.new_topic(), 3)
    create_topic(cluster.bootstrap, own := cluster.new_topic(), 3, **{DURABILITY: "wal"})
    with Node(tmp_path / "server", *cluster.storage.options, env={"DISABLE_EMBEDDED_AGENT": "1"}) as server:
        eventually(lambda: told(server, topic) == {"object"}, "the durability of the agents")
        assert (told(server, own), configured(server, own)["default"]) == ({"wal"}, "object")
        assert configured(server, topic)["source"] == "setting"
        create_topic(server.bootstrap, made := cluster.new_topic(), 3)
        assert told(server, made) == {"object"}
    for agent in cluster.agents.values():
        assert (told(agent, topic), told(agent, own)) == ({"object"}, {"wal"})
        assert configured(agent, own)["default"] == "object"
