"""What a client may do with a resource, as Kafka's bit fields: all that the resource supports, since nobody is refused.

A bit's place is the code of Kafka's `AclOperation`; which operations a resource has is Kafka's `AclEntry`."""

from __future__ import annotations

from enum import IntEnum


class _Operation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: _Operation) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED_FOR = -(2**31)
TOPIC_OPERATIONS = _bits(
    _Operation.READ,
    _Operation.WRITE,
    _Operation.CREATE,
    _Operation.DELETE,
    _Operation.ALTER,
    _Operation.DESCRIBE,
    _Operation.DESCRIBE_CONFIGS,
    _Operation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = _bits(_Operation.READ, _Operation.DELETE, _Operation.DESCRIBE)
CLUSTER_OPERATIONS = _bits(
    _Operation.CREATE,
    _Operation.ALTER,
    _Operation.DESCRIBE,
    _Operation.CLUSTER_ACTION,
    _Operation.DESCRIBE_CONFIGS,
    _Operation.ALTER_CONFIGS,
    _Operation.IDEMPOTENT_WRITE,
)
