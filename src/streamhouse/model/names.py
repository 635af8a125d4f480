"""Names that come from outside, checked at the door, and the ids we hand out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from streamhouse.model.errors import InvalidName

# Kafka's own rule, so that a name valid here is valid in every client.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_MAX_GROUP_BYTES = 249


def check_topic_name(name: str) -> str:
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise InvalidName(
            f"{name[:300]!r} is not a topic name",
            hint="use 1 to 249 letters, digits, '.', '_' or '-', other than '.' and '..'",
        )
    return name


def collision_key(name: str) -> str | None:
    """What is the same for topics that Kafka keeps from existing side by side, since in its metrics' names '.' and '_'
    are one; None if the name has neither."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def name_collides(name: str, other: str) -> InvalidName:
    return InvalidName(
        f"topic {name!r} collides with topic {other!r}", hint="names that differ only in '.' and '_' are the same"
    )


def check_agent_id(name: str) -> str:
    if not _ID.fullmatch(name) or name in (".", ".."):
        raise InvalidName(f"{name[:200]!r} is not an agent id", hint="use letters, digits, '.', '_' or '-'")
    return name


def check_sink_id(name: str) -> str:
    """It becomes part of the keys of what the sink stages."""
    if not _ID.fullmatch(name) or name in (".", ".."):
        raise InvalidName(f"{name[:200]!r} is not a sink id", hint="use 1 to 128 letters, digits, '.', '_' or '-'")
    return name


def check_group_id(name: str) -> str:
    if not name or len(name.encode("utf-8", "surrogatepass")) > _MAX_GROUP_BYTES or "\0" in name:
        raise InvalidName(f"{name[:300]!r} is not a group id", hint="use 1 to 249 bytes of text without NUL")
    return name


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition by its topic's identity: a topic deleted and made again is another topic."""

    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.partition}"
