"""Errors that only Kafka tells apart: each has a code of its own there."""

from __future__ import annotations

from streamhouse.model.errors import InvalidInput, NotFound, StaleEpoch, Unsupported


class InvalidAcks(InvalidInput):
    pass


class InvalidReplicaAssignment(InvalidInput):
    pass


class InvalidReplicationFactor(InvalidInput):
    pass


class UnsupportedVersion(InvalidInput):
    """What is asked for came with a later version of the request."""


class UnsupportedCompression(Unsupported):
    """The codec came with a later version of the request."""


class UnknownTopicId(NotFound):
    pass


class UnknownLeaderEpoch(StaleEpoch):
    """The client has heard of a newer leader than this one."""
