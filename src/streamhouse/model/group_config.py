"""The configs of a group, under Kafka's names for them, and what a group may be given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamhouse.model.config_key import INT32_MAX, ConfigKey, ConfigType, integer
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.idle_configs import IDLE_GROUP_CONFIG_KEYS

_HEARTBEAT = "consumer.heartbeat.interval.ms"
SESSION_TIMEOUT = "consumer.session.timeout.ms"
_LIMITS = {_HEARTBEAT: (5_000, 15_000), SESSION_TIMEOUT: (45_000, 60_000)}
"""Those that a broker of Kafka has by default for what its groups may be given."""

GROUP_CONFIG_KEYS: Mapping[str, ConfigKey] = MappingProxyType(
    {
        key.name: key
        for key in (
            ConfigKey(
                name=_HEARTBEAT,
                type=ConfigType.INT,
                default="5000",
                check=integer(1, INT32_MAX),
                help="how often the members of a group with the consumer protocol are to beat",
            ),
            ConfigKey(
                name=SESSION_TIMEOUT,
                type=ConfigType.INT,
                default="45000",
                check=integer(1, INT32_MAX),
                help="the silence that ends a membership of a group with the consumer protocol",
            ),
            *IDLE_GROUP_CONFIG_KEYS,
        )
    }
)


def check_group_config(config: Mapping[str, str], stored: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Raises InvalidConfig if a group cannot have these, each of which has passed its own check. What is `stored`
    already may stay, and what a node's `settings` say any group may have."""
    defaults = {name: settings.get(name, key.default) for name, key in GROUP_CONFIG_KEYS.items()}
    for name, (low, high) in _LIMITS.items():
        value = config.get(name)
        if value not in (None, stored.get(name)):
            least, most = min(low, int(defaults[name])), max(high, int(defaults[name]))
            if not least <= int(value) <= most:
                raise InvalidConfig(f"group config {name}: {value} is not between {least} and {most}")
    effective = {**defaults, **config}
    if int(effective[_HEARTBEAT]) >= int(effective[SESSION_TIMEOUT]):
        raise InvalidConfig(f"group config {_HEARTBEAT} must be less than {SESSION_TIMEOUT}")
