"""A group's machine as bytes for the store, and back."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import ClassicLimits
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.classic_snapshot import StoredGroup
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits
from streamhouse.core.groups.consumer_snapshot import ConsumerState, StoredConsumerGroup
from streamhouse.core.groups.group_kind import GroupKind
from streamhouse.metadata.groups import GroupRow
from streamhouse.model.errors import CorruptData

Machine: TypeAlias = ClassicGroup | ConsumerGroup

_PROTOCOLS = {GroupKind.CLASSIC: "classic", GroupKind.CONSUMER: "consumer"}


def kind_of(machine: Machine) -> GroupKind:
    return GroupKind.CLASSIC if isinstance(machine, ClassicGroup) else GroupKind.CONSUMER


def generation_of(machine: Machine) -> int:
    return machine.generation if isinstance(machine, ClassicGroup) else machine.group_epoch


def is_empty(machine: Machine) -> bool:
    return machine.state in (ClassicState.EMPTY, ClassicState.DEAD, ConsumerState.EMPTY, ConsumerState.DEAD)


def to_row(group_id: str, machine: Machine, empty_since_ms: int | None) -> GroupRow:
    protocol_type = machine.protocol_type or "" if isinstance(machine, ClassicGroup) else "consumer"
    return GroupRow(
        group_id=group_id,
        protocol=_PROTOCOLS[kind_of(machine)],
        protocol_type=protocol_type,
        generation=generation_of(machine),
        state=msgspec.json.encode(machine.stored()),
        empty_since_ms=empty_since_ms,
    )


def from_row(row: GroupRow, now_ms: int, classic: ClassicLimits, consumer: ConsumerLimits) -> Machine | None:
    """The machine as it was stored; None for a simple group, which has none."""
    try:
        if row.protocol == _PROTOCOLS[GroupKind.CLASSIC]:
            return ClassicGroup.restore(msgspec.json.decode(row.state, type=StoredGroup), now_ms, classic)
        if row.protocol == _PROTOCOLS[GroupKind.CONSUMER]:
            return ConsumerGroup.restore(msgspec.json.decode(row.state, type=StoredConsumerGroup), now_ms, consumer)
    except msgspec.MsgspecError as problem:
        raise CorruptData(f"the stored state of group {row.group_id!r} cannot be read: {problem}") from None
    return None
