"""Topic configs as people write them, `7d` and `1GiB`, made into what is stored and what Kafka's clients see: plain
milliseconds and bytes. For every door but Kafka's own, which takes and tells what a Kafka broker does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from streamhouse.model.config_key import ConfigKey, ConfigType
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.topic import CONFIG_KEYS, unknown_config
from streamhouse.model.units import parse_duration_ms, parse_size_bytes

# What has no unit keeps its meaning, and its own judge.
_PLAIN_NUMBER = re.compile(r"\s*[+-]?[0-9_]+\s*")
_NUMBERS = (ConfigType.INT, ConfigType.LONG)


def without_units(config: Mapping[str, str]) -> dict[str, str]:
    """The same configs, with durations in milliseconds and sizes in bytes; what it does not know it leaves as it is."""
    return {name: _without_unit(name, text) for name, text in config.items()}


def check_topic_configs(config: Mapping[str, str]) -> dict[str, str]:
    """The same, and each is one that Kafka or we know, with a value that it may have anywhere."""
    checked: dict[str, str] = {}
    for name, text in without_units(config).items():
        key = CONFIG_KEYS.get(name)
        if key is None:
            raise unknown_config(name)
        try:
            checked[name] = key.check(text)
        except InvalidConfig as problem:
            raise InvalidConfig(f"topic config {name}: {problem.message}", hint=problem.hint) from None
    return checked


def _without_unit(name: str, text: str) -> str:
    key = CONFIG_KEYS.get(name)
    if key is None or key.type not in _NUMBERS or _PLAIN_NUMBER.fullmatch(text):
        return text
    if name.endswith(".ms"):
        return _parsed(key, text, parse_duration_ms, "a duration", "7d, 12h, 30m, 10s, 250ms, or milliseconds")
    if name.endswith(".bytes"):
        return _parsed(key, text, parse_size_bytes, "a size", "1GiB, 64MiB, 512KiB, or bytes")
    return text


def _parsed(key: ConfigKey, text: str, parse: Callable[[str], int], kind: str, examples: str) -> str:
    try:
        return str(parse(text))
    except InvalidConfig:
        hint = f"write {examples}{', or -1 for no limit' if _may_be_unlimited(key) else ''}"
        raise InvalidConfig(f"topic config {key.name}: {text[:50]!r} is not {kind}", hint=hint) from None


def _may_be_unlimited(key: ConfigKey) -> bool:
    try:
        return key.check("-1") == "-1"
    except InvalidConfig:
        return False
