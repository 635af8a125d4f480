"""The two group protocols that a group id is open to, and whether a group with members goes from one to the other."""

from __future__ import annotations

from enum import Enum


class GroupKind(Enum):
    """A group's kind, as ListGroups names it. An empty group becomes what its first member is; while it has members, a
    consumer group may have those of both protocols."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"


class MigrationPolicy(Enum):
    """Kafka's `group.consumer.migration.policy`: which conversions a group with members may go through."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """A classic group becomes a consumer group when the first member of that protocol joins."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """A consumer group becomes a classic group when the last member of its own protocol has left."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)
