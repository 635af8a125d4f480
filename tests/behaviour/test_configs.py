"""What every metadata store does with the configs of brokers and groups."""

from __future__ import annotations

import asyncio

import pytest

from behaviour.metadata_stores import MetadataStoreKind
from streamhouse.metadata import postgres, sqlite
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidInput

ONE, ALL = Configured(ConfigKind.BROKER, "1"), Configured(ConfigKind.BROKER, "")
GROUP = Configured(ConfigKind.GROUP, "g")


async def test_what_is_set_is_found_by_every_process(metadata: MetadataStore, other_process: MetadataStore) -> None:
    await metadata.set_configs(ONE, {"a": "1", "b": "2"})
    await metadata.set_configs(ALL, {"a": "3"})
    await metadata.set_configs(GROUP, {"a": "4"})

    assert await other_process.list_configs() == {ONE: {"a": "1", "b": "2"}, ALL: {"a": "3"}, GROUP: {"a": "4"}}


async def test_one_change_sets_and_removes_and_leaves_the_rest_alone(metadata: MetadataStore) -> None:
    await metadata.set_configs(ONE, {"a": "1", "b": "2", "c": "3"})

    await metadata.set_configs(ONE, {"a": "9", "b": None, "d": "4", "never": None})

    assert await metadata.list_configs() == {ONE: {"a": "9", "c": "3", "d": "4"}}


async def test_changes_of_different_configs_at_once_both_stand(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    stores = {"a": metadata, "b": other_process}
    await asyncio.gather(
        *(store.set_configs(ONE, {f"{name}{n}": "1"}) for n in range(10) for name, store in stores.items())
    )

    assert len((await metadata.list_configs())[ONE]) == 20


async def test_whoever_listens_hears_of_a_change(metadata: MetadataStore) -> None:
    heard = asyncio.Event()
    stop = metadata.subscribe(lambda change: heard.set() if change is Change.CONFIGS else None)
    await metadata.list_configs()
    await metadata.set_configs(ALL, {"a": "1"})

    await asyncio.wait_for(heard.wait(), 60)
    stop()


async def test_there_is_a_limit_to_how_many_have_configs(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for dialect in (sqlite, postgres):
        monkeypatch.setattr(f"{dialect.__name__}.configs.MAX_CONFIGURED", 2)
    await metadata.set_configs(ONE, {"a": "1"})
    await metadata.set_configs(ALL, {"a": "1"})

    with pytest.raises(InvalidInput, match="already"):
        await metadata.set_configs(GROUP, {"a": "1"})
    await metadata.set_configs(ONE, {"a": "2", "b": "1"})

    assert await metadata.list_configs() == {ALL: {"a": "1"}, ONE: {"a": "2", "b": "1"}}


@pytest.mark.parametrize("changes", [{"a\0": "1"}, {"a": "\0"}, {"\ud800": None}])
async def test_what_no_database_can_hold_is_refused(metadata: MetadataStore, changes: dict[str, str | None]) -> None:
    with pytest.raises(InvalidInput):
        await metadata.set_configs(ONE, changes)
