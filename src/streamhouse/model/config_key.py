"""What a topic config is: its name, its type, and how a client's text for it is checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from streamhouse.model.errors import InvalidConfig

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_REPLICA = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


class ConfigType(Enum):
    """What DescribeConfigs calls a config's type; the values are Kafka's."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One topic config: how a client's string is checked and what it means when absent. `idle_because`: why it has no
    effect, if it has none."""

    name: str
    type: ConfigType
    default: str
    check: Callable[[str], str]
    help: str
    idle_because: str | None = None


def idle_key(name: str, type: ConfigType, default: str, check: Callable[[str], str], reason: str) -> ConfigKey:
    """One that is taken and told again, so that Kafka's tools need no change."""
    text = f"for Kafka's tools; has no effect, since {reason}"
    return ConfigKey(name=name, type=type, default=default, check=check, help=text, idle_because=reason)


def _digits(text: str) -> str:
    """Python takes 1_000 for a number, and Kafka's brokers do not."""
    if "_" in text:
        raise ValueError(text)
    return text


def integer(low: int, high: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            value = int(_digits(text))
        except ValueError:
            raise InvalidConfig(f"{text[:50]!r} is not a whole number") from None
        if not low <= value <= high:
            raise InvalidConfig(f"{value} is not between {low} and {high}")
        return str(value)

    return check


def boolean(text: str) -> str:
    """Java's spelling, in whatever case."""
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise InvalidConfig(f"{text[:50]!r} is not true or false")
    return value


def ratio(text: str) -> str:
    try:
        value = float(_digits(text))
    except ValueError:
        raise InvalidConfig(f"{text[:50]!r} is not a number") from None
    if not 0 <= value <= 1:
        raise InvalidConfig(f"{text[:50]!r} is not between 0 and 1")
    return str(value)


def choice(*allowed: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in allowed:
            raise InvalidConfig(f"{text[:50]!r} is not one of {', '.join(allowed)}")
        return text

    return check


def cleanup_policy(text: str) -> str:
    """Of neither, nothing is ever removed, as with Kafka since 4.2."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if any(part not in ("delete", "compact") for part in parts) or len(set(parts)) != len(parts):
        raise InvalidConfig(f"{text[:50]!r} is not 'delete', 'compact', both separated by a comma, or empty")
    return ",".join(parts)


def plain_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise InvalidConfig(f"{text[:50]!r} is not 1 to 128 letters, digits, '.', '_' or '-'")
    return text


def plain_name_or_nothing(text: str) -> str:
    return plain_name(text) if text else text


def throttled_replicas(text: str) -> str:
    """Kafka's list of `partition:broker` pairs, or * for all."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if parts != ["*"] and not all(_REPLICA.fullmatch(part) for part in parts):
        raise InvalidConfig(f"{text[:50]!r} is not '*' or pairs of partition and broker, such as 0:1,1:2")
    return ",".join(parts)
