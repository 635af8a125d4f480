"""Which of several values of a config counts, and when a node hears of a change."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.waiting import until
from streamhouse.broker.dynamic_configs import ALL_BROKERS, ConfigSource, DynamicConfigs
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.model.errors import InvalidConfig
from streamhouse.runtime.clock import SystemClock

NODE = Configured(ConfigKind.BROKER, "7")
SETTINGS = {"segment.bytes": "2000000", "retention.ms": "604800000"}


async def test_what_was_given_by_flag_or_variable_wins() -> None:
    store = await SqliteMetadataStore.open(":memory:", SystemClock())
    configs = DynamicConfigs(store=store, settings=SETTINGS, given={"segment.bytes"})
    await configs.joined(7)

    with pytest.raises(InvalidConfig, match="flag"):
        await configs.change(NODE, lambda _: {"log.segment.bytes": "3000000"})
    await configs.change(ALL_BROKERS, lambda _: {"log.segment.bytes": "3000000"})

    assert configs.topic_default("segment.bytes") == [
        (ConfigSource.GIVEN, "2000000"),
        (ConfigSource.CLUSTER, "3000000"),
        (ConfigSource.DEFAULT, "1048576"),
    ]
    await store.close()


async def test_a_node_without_an_id_takes_for_all_what_its_own_flag_decides() -> None:
    store = await SqliteMetadataStore.open(":memory:", SystemClock())
    configs = DynamicConfigs(store=store, settings=SETTINGS, given={"segment.bytes"})

    await configs.change(ALL_BROKERS, lambda _: {"log.segment.bytes": "3000000"})

    assert configs.own(ALL_BROKERS) == {"log.segment.bytes": "3000000"}
    assert configs.topic_default("segment.bytes")[:2] == [
        (ConfigSource.GIVEN, "2000000"),
        (ConfigSource.CLUSTER, "3000000"),
    ]
    await store.close()


async def test_what_was_not_given_gives_way() -> None:
    store = await SqliteMetadataStore.open(":memory:", SystemClock())
    configs = DynamicConfigs(store=store, settings=SETTINGS)
    await configs.change(NODE, lambda _: {"log.segment.bytes": "4000000", "log.retention.ms": "5"})
    assert configs.topic_defaults()["segment.bytes"] == "2000000"

    await configs.joined(7)  # only now is it known that they are this node's

    assert (configs.topic_defaults()["segment.bytes"], configs.topic_defaults()["retention.ms"]) == ("4000000", "5")
    await store.close()


async def test_another_nodes_change_is_heard_of_and_applied_once() -> None:
    store = await SqliteMetadataStore.open(":memory:", SystemClock())
    applied: list[str] = []
    configs = DynamicConfigs(
        store=store, settings={}, changed=lambda: applied.append(configs.topic_defaults()["retention.ms"])
    )
    store.subscribe(configs.wake)
    following = asyncio.get_running_loop().create_task(configs.follow(3_600_000))
    other = DynamicConfigs(store=store, settings={})

    await other.change(ALL_BROKERS, lambda _: {"log.retention.ms": "5"})
    await until(lambda: applied == ["5"], "the change")
    await other.change(Configured(ConfigKind.GROUP, "g"), lambda _: {"consumer.session.timeout.ms": "60000"})
    await until(lambda: configs.own(Configured(ConfigKind.GROUP, "g")), "the other change")

    assert applied == ["5"]
    following.cancel()
    await store.close()
