"""A start that a silent store broke off, however far it had come, is made again as if it had never begun."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.ports import free_port
from streamhouse.app.doors import Door
from streamhouse.app.node import Node
from streamhouse.app.run import _started
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.model.settings import Settings
from streamhouse.runtime.clock import SystemClock


class SilentOnce:
    """A store that does not answer the first call of a name."""

    def __init__(self, store: MetadataStore, name: str) -> None:
        self._store = store
        self._name = name
        self.was_silent = False

    def __getattr__(self, name: str) -> Any:
        if name != self._name or self.was_silent:
            return getattr(self._store, name)

        async def silent(*_: Any, **__: Any) -> None:
            self.was_silent = True
            raise MetadataUnavailable("no answer in time", is_unanswered=True)

        return silent


def settings(data_dir: Path) -> Settings:
    """With ports that a first try must have let go of."""
    ports = {f"{door}_port": free_port() for door in ("kafka", "http", "grpc", "flume")}
    return Settings(data_dir=str(data_dir), **ports)


@pytest.mark.parametrize("call", ["cluster_id", "list_topics", "register_agent", "acquire_shards", "list_placements"])
async def test_a_start_is_made_again_when_the_database_did_not_answer(tmp_path: Path, call: str) -> None:
    store = await open_metadata(f"sqlite:{tmp_path}/metadata.db", SystemClock())
    silent = SilentOnce(store, call)
    given = settings(tmp_path / "data")

    def new_node() -> Node:
        return Node(given, metadata=silent, opens=list(Door))  # type: ignore[arg-type]

    node = await _started(new_node, asyncio.Event())

    assert silent.was_silent
    assert node.addresses["kafka"] == f"127.0.0.1:{given.kafka_port}"
    await node.drain()
    await store.close()


async def test_a_start_that_fails_behind_the_open_ports_leaves_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings(tmp_path / "data")
    fails = [MetadataUnavailable("no answer in time", is_unanswered=True)]
    watch = Node._watch_storage

    def watch_storage(node: Node, *arguments: Any) -> None:
        if fails:
            raise fails.pop()
        watch(node, *arguments)

    monkeypatch.setattr(Node, "_watch_storage", watch_storage)

    node = await _started(lambda: Node(given, opens=list(Door)), asyncio.Event())

    assert not fails
    await node.drain()


async def test_a_store_that_refuses_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Node] = []

    async def refused(node: Node) -> None:
        tries.append(node)
        raise MetadataUnavailable("refused")

    monkeypatch.setattr(Node, "_start", refused)

    with pytest.raises(MetadataUnavailable, match="refused"):
        await _started(lambda: Node(settings(tmp_path)), asyncio.Event())

    assert len(tries) == 1
