"""How a topic is shown: what is known of its partitions, and its configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from streamhouse.cli.console import count_of, print_facts, print_line, print_note, print_table
from streamhouse.model.idle_configs import IDLE_CONFIG_KEYS
from streamhouse.model.units import show_duration, show_size

if TYPE_CHECKING:
    from streamhouse.client.admin import PartitionDescription, TopicDescription

_IDLE = frozenset(key.name for key in IDLE_CONFIG_KEYS)


def topic_as_json(
    description: TopicDescription, waiting: Mapping[int, str] = MappingProxyType({})
) -> dict[str, object]:
    return {
        "name": description.name,
        "topic_id": str(description.topic_id),
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader if partition.leader >= 0 else None,
                "leader_epoch": partition.leader_epoch if partition.leader >= 0 else None,
                "waits_for": waiting.get(partition.partition),
                "start_offset": partition.start_offset,
                "end_offset": partition.end_offset,
            }
            for partition in description.partitions
        ],
        "configs": {
            config.name: {
                "value": config.value,
                "is_default": config.is_default,
                "has_effect": _has_effect(config.name),
            }
            for config in description.configs
        },
    }


def print_description(description: TopicDescription, waiting: Mapping[int, str], *, shows_all: bool) -> None:
    print_facts(
        [
            ("topic", description.name),
            ("id", str(description.topic_id)),
            ("partitions", len(description.partitions)),
            ("offsets held", _offsets_held(description.partitions)),
        ]
    )
    print_line("")
    _print_partitions(description.partitions, waiting)
    print_line("")
    print_configs(description, shows_all=shows_all)


def _offsets_held(partitions: Sequence[PartitionDescription]) -> int | str | None:
    """Those that nobody leads may hold more."""
    held = [
        p.end_offset - p.start_offset for p in partitions if p.start_offset is not None and p.end_offset is not None
    ]
    if len(held) == len(partitions):
        return sum(held)
    return f"{sum(held)} or more" if held else None


def _print_partitions(partitions: Sequence[PartitionDescription], waiting: Mapping[int, str]) -> None:
    from streamhouse.cluster.orders import waiting_note

    headings = ("partition", "leader", "epoch", "start offset", "end offset")
    rows: list[tuple[object, ...]] = []
    for p in partitions:
        if p.leader >= 0:
            rows.append((p.partition, p.leader, p.leader_epoch, p.start_offset, p.end_offset, ""))
        else:
            missing = waiting.get(p.partition)
            note = "no leader" if missing is None else waiting_note(missing)
            rows.append((p.partition, None, None, p.start_offset, p.end_offset, note))
    if any(row[-1] for row in rows):
        print_table((*headings, "note"), rows)
    else:
        print_table(headings, [row[:-1] for row in rows])


def print_configs(description: TopicDescription, *, shows_all: bool = False) -> None:
    """Those that are set or do something; the others are there for Kafka's tools, and most who look need none."""
    shown = [config for config in description.configs if shows_all or not config.is_default or _has_effect(config.name)]
    rows = [
        (
            config.name,
            _readable(config.name, config.value),
            "default" if config.is_default else "topic",
            "" if _has_effect(config.name) else "no effect here",
        )
        for config in shown
    ]
    if any(row[-1] for row in rows):
        print_table(("config", "value", "source", "note"), rows)
    else:
        print_table(("config", "value", "source"), [row[:-1] for row in rows])
    if hidden := len(description.configs) - len(shown):
        print_note(f"and {count_of(hidden, 'config')} without an effect here, which --all shows")


def _has_effect(name: str) -> bool:
    """As far as we know: what is not in our list is shown, since a Kafka broker may tell of more."""
    return name not in _IDLE


def _readable(name: str, value: str | None) -> str | None:
    """With what a large number means beside it."""
    if value is None or not re.fullmatch(r"-?[0-9]{1,18}", value):
        return value
    number, unit = int(value), name.rpartition(".")[2]
    if unit not in ("ms", "bytes") or number == 0:
        return value
    if number < 0:
        return f"{value} (no limit)" if name.startswith("retention.") else value
    shown = show_duration(number) if unit == "ms" else show_size(number)
    return value if shown in (value, f"{value}ms") else f"{value} ({shown})"
