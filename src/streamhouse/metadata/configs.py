"""What we ask of the metadata store for configs that are set while nodes run: of one broker, of all, or of a group."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from streamhouse.model.errors import InvalidInput

MAX_CONFIGURED = 10_000
"""Resources with configs of their own: every node keeps them in memory, and anybody may name a group."""


class ConfigKind(Enum):
    BROKER = "broker"
    GROUP = "group"


class Configured(NamedTuple):
    """What has configs: a node by its id, all nodes by "", or a group by its name."""

    kind: ConfigKind
    name: str


class ConfigStore(Protocol):
    async def list_configs(self) -> dict[Configured, dict[str, str]]:
        """All that are set."""

    async def set_configs(self, configured: Configured, changes: Mapping[str, str | None]) -> None:
        """Set each, or remove it where it is None, in one transaction; the others stay. InvalidInput when too many
        have configs of their own already."""


def too_many_configured() -> InvalidInput:
    return InvalidInput(
        f"{MAX_CONFIGURED} brokers and groups have configs of their own already", hint="delete those of others first"
    )
