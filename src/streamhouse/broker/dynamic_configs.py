"""Configs that are set while nodes run: the defaults of topic configs, for one node or for all, and those of groups.

What an operator gave this node by flag or variable wins over them: whoever can restart a node has the last word. They
win over its settings file, and over the defaults."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from streamhouse.metadata.cluster import Change
from streamhouse.metadata.configs import ConfigKind, ConfigStore, Configured
from streamhouse.model.broker_config import BROKER_CONFIG_KEYS, broker_spelling
from streamhouse.model.config_key import ConfigKey
from streamhouse.model.errors import InvalidConfig, InvalidInput, StreamHouseError
from streamhouse.model.group_config import GROUP_CONFIG_KEYS, check_group_config
from streamhouse.model.topic import CONFIG_KEYS

_log = logging.getLogger(__name__)
ALL_BROKERS = Configured(ConfigKind.BROKER, "")


class ConfigSource(Enum):
    """Who said so, the strongest first."""

    GIVEN = auto()
    """By flag or variable, when the node was started."""
    NODE = auto()
    CLUSTER = auto()
    SETTING = auto()
    DEFAULT = auto()


class SourcedValue(NamedTuple):
    source: ConfigSource
    value: str


class DynamicConfigs:
    def __init__(
        self,
        *,
        store: ConfigStore,
        settings: Mapping[str, str],
        given: Collection[str] = (),
        group_settings: Mapping[str, str] = MappingProxyType({}),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`settings`: the topic configs that are settings of this node; `given`: those of them that a flag or variable
        has set; `group_settings`: the same for group configs. `changed` is called when defaults of topic configs may be
        others."""
        self._store = store
        self._settings = settings
        self._given = frozenset(given)
        self._group_settings = group_settings
        self._changed = changed
        self._stored: Mapping[Configured, Mapping[str, str]] = {}
        self._node: Configured | None = None
        self._wake = asyncio.Event()
        self._changes = asyncio.Lock()

    # --- asking ---

    def topic_default(self, name: str) -> list[SourcedValue]:
        """Every value that this node has for a topic config, the one that counts first."""
        return self.values(broker_spelling(name), CONFIG_KEYS[name])

    def values(self, spelling: str, key: ConfigKey) -> list[SourcedValue]:
        """The same for a config by the name that it has as a broker's."""
        found = []
        setting = self._settings.get(key.name)
        if setting is not None and key.name in self._given:
            found.append(SourcedValue(ConfigSource.GIVEN, setting))
        for source, configured in ((ConfigSource.NODE, self._node), (ConfigSource.CLUSTER, ALL_BROKERS)):
            value = None if configured is None else self.own(configured).get(spelling)
            if value is not None:
                found.append(SourcedValue(source, value))
        if setting not in (None, key.default) and key.name not in self._given:
            found.append(SourcedValue(ConfigSource.SETTING, setting))
        found.append(SourcedValue(ConfigSource.DEFAULT, key.default))
        return found

    def topic_defaults(self) -> dict[str, str]:
        """Every topic config's value where the topic has none of its own."""
        return {name: self.topic_default(name)[0].value for name in CONFIG_KEYS}

    def own(self, configured: Configured) -> Mapping[str, str]:
        """What was set of a node, of all, or of a group."""
        return self._stored.get(configured, {})

    def inherited(self, configured: Configured, name: str) -> str:
        """What holds where nothing was set of one."""
        key = changeable(configured.kind, name)
        if configured.kind is ConfigKind.BROKER:
            return self.values(name, key)[0].value
        return self._group_settings.get(name, key.default)

    def configured(self, kind: ConfigKind) -> list[str]:
        """The names of those that have configs of their own."""
        return [each.name for each in self._stored if each.kind is kind]

    # --- changing ---

    async def change(
        self,
        configured: Configured,
        change: Callable[[Mapping[str, str]], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Store what `change` makes of what was set before: new values, and None for what is to be removed."""
        async with self._changes:
            await self._look()
            changes = {
                name: self._checked(configured, name, value)
                for name, value in change(self._stored.get(configured, {})).items()
            }
            if configured.kind is ConfigKind.GROUP:
                own = self.own(configured)
                config = {name: value for name, value in {**own, **changes}.items() if value is not None}
                check_group_config(config, own, self._group_settings)
            if changes and not validate_only:
                await self._store.set_configs(configured, changes)
                await self._look()

    def _checked(self, configured: Configured, name: str, value: str | None) -> str | None:
        if value is None and configured.kind is ConfigKind.GROUP:
            return None  # whatever it is called: of a name that does not exist nothing is left to remove
        key = changeable(configured.kind, name)
        if value is None:
            return None
        if configured == self._node and key.name in self._given:
            raise InvalidConfig(
                f"{name} was given to node {configured.name} by a flag or a variable, which wins",
                hint="start the node without it, or change it there",
            )
        try:
            return key.check(value)
        except InvalidConfig as problem:
            # Kafka's clients expect of a broker that it calls the request wrong, and of a group the config.
            refusal = InvalidInput if configured.kind is ConfigKind.BROKER else InvalidConfig
            raise refusal(f"{configured.kind.value} config {name}: {problem.message}") from None

    # --- following ---

    def wake(self, change: Change) -> None:
        """Somebody has changed something: if it is a config, look soon."""
        if change is Change.CONFIGS:
            self._wake.set()

    async def joined(self, node_id: int) -> None:
        """This node has its id now, and with it its own configs."""
        self._node = Configured(ConfigKind.BROKER, str(node_id))
        await self.refresh()
        self._changed()

    async def refresh(self) -> None:
        async with self._changes:
            await self._look()

    async def follow(self, interval_ms: int) -> None:
        """Runs until cancelled: looks when something has changed, and from time to time."""
        while True:
            try:
                async with asyncio.timeout(interval_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                await self.refresh()
            except StreamHouseError as problem:
                _log.warning("cannot look for changed configs, trying again later: %s", problem)

    async def _look(self) -> None:
        before, self._stored = self._stored, await self._store.list_configs()
        brokers = (ALL_BROKERS, self._node)
        if any(each and before.get(each) != self._stored.get(each) for each in brokers):
            self._changed()


def changeable(kind: ConfigKind, name: str) -> ConfigKey:
    """The config of that name, if it can be set while nodes run."""
    keys = BROKER_CONFIG_KEYS if kind is ConfigKind.BROKER else GROUP_CONFIG_KEYS
    key = keys.get(name)
    if key is not None:
        return key
    if kind is ConfigKind.GROUP:
        raise InvalidConfig(f"unknown group config {name[:100]!r}", hint=f"there are {', '.join(sorted(keys))}")
    raise InvalidInput(
        f"broker config {name[:100]!r} cannot be set while nodes run",
        hint=f"these can: {', '.join(sorted(keys))}; a node's settings are its flags, variables and file",
    )
