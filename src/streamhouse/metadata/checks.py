"""What every metadata store refuses before a statement runs, so that both databases refuse the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamhouse.metadata.pins import LONGEST_PIN_ID, LONGEST_PIN_MS, MAX_PINNED_PARTITIONS
from streamhouse.metadata.store import CommittedOffset, SegmentCommit, SegmentRow
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition, name_collides
from streamhouse.model.topic import Topic

_INT64_MAX = 2**63 - 1


def check_text(what: str, text: str) -> str:
    """PostgreSQL has no NUL in its texts, and neither database takes what UTF-8 cannot say."""
    if "\0" in text or not _is_utf8(text):
        raise InvalidInput(f"{what} {text[:100]!r} cannot be stored", hint="use Unicode text without NUL")
    return text


def check_config_text(config: Mapping[str, str]) -> None:
    for name, value in config.items():
        check_text("config name", name)
        check_text("config value", value)


def check_config_changes(changes: Mapping[str, str | None]) -> None:
    check_config_text({name: value or "" for name, value in changes.items()})


def check_ttl(ttl_ms: int) -> None:
    if ttl_ms <= 0:
        raise InvalidInput(f"a lease of {ttl_ms} ms is none")


def check_count(what: str, count: int) -> None:
    if not 0 < count <= _INT64_MAX:
        raise InvalidInput(f"{count} is not a number of {what}")


def check_collision(name: str, colliding: Sequence[Any] | None) -> None:
    """`colliding`: the row of another topic with the same `collision_key`, if there is one."""
    if colliding is not None:
        raise name_collides(name, colliding[0])


def check_growth(topic: Topic, partition_count: int) -> None:
    if not topic.partition_count < partition_count <= _INT64_MAX:
        raise InvalidInput(f"{topic.name} cannot grow from {topic.partition_count} to {partition_count} partitions")


def check_offset(offset: int) -> None:
    if not 0 <= offset <= _INT64_MAX:
        raise InvalidInput(f"{offset} is not an offset")


def check_size(size_bytes: int) -> None:
    if not 0 <= size_bytes <= _INT64_MAX:
        raise InvalidInput(f"{size_bytes} is not a number of bytes")


def check_committed_offset(offset: CommittedOffset) -> None:
    """Below 0 is no position, but Kafka keeps it and some clients commit it: kafkajs resets groups with -1 and -2."""
    if not -_INT64_MAX - 1 <= offset.offset <= _INT64_MAX:
        raise InvalidInput(f"{offset.offset} is not an offset")
    if not _is_utf8(offset.metadata):
        raise InvalidInput(f"offset metadata {offset.metadata[:100]!r} cannot be stored", hint="use Unicode text")


def check_commits(commits: Sequence[SegmentCommit]) -> None:
    for commit in commits:
        check_segment(commit.segment, commit.partition, commit.epoch)


def check_segment(segment: SegmentRow, partition: TopicPartition, epoch: int) -> None:
    """What is registered by the leader of an epoch."""
    check_text("object key", segment.object_key)
    check_offset(segment.base_offset)
    check_offset(segment.end_offset)
    if segment.base_offset >= segment.end_offset or segment.epoch > epoch:
        raise InvalidInput(
            f"segment [{segment.base_offset}, {segment.end_offset}) of epoch {segment.epoch} "
            f"cannot be committed to {partition} at epoch {epoch}"
        )


def check_pin(pin_id: str, ttl_ms: int, offsets: Mapping[TopicPartition, int]) -> None:
    check_text("pin id", pin_id)
    if not 1 <= len(pin_id) <= LONGEST_PIN_ID:
        raise InvalidInput(f"a pin id has 1 to {LONGEST_PIN_ID} characters, not {len(pin_id)}")
    if len(offsets) > MAX_PINNED_PARTITIONS:
        raise InvalidInput(f"a pin holds at most {MAX_PINNED_PARTITIONS} partitions, not {len(offsets)}")
    if offsets and not 0 < ttl_ms <= LONGEST_PIN_MS:
        raise InvalidInput(
            f"a pin cannot last for {ttl_ms} ms", hint=f"it lasts up to {LONGEST_PIN_MS} ms, and can be set again"
        )
    for offset in offsets.values():
        check_offset(offset)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
