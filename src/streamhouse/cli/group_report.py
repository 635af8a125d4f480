"""What the `group` commands show of a group: its members, how far it is, and where it was moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamhouse.cli.console import print_facts, print_line, print_table

if TYPE_CHECKING:
    from streamhouse.client.group_progress import Move, Progress
    from streamhouse.client.groups_admin import GroupDescription, GroupPartition


def assigned_text(partitions: Sequence[GroupPartition]) -> str | None:
    """`orders/0,1 payments/2`; None for nothing."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return " ".join(f"{topic}/{','.join(map(str, indexes))}" for topic, indexes in by_topic.items()) or None


def total_lag(progress: Sequence[Progress]) -> int | None:
    """None if it is not known in a partition that has records."""
    if any(one.lag is None and one.end_offset for one in progress):
        return None
    return sum(one.lag or 0 for one in progress)


def group_as_json(description: GroupDescription, progress: Sequence[Progress]) -> dict[str, object]:
    return {
        "group": description.group_id,
        "state": description.state,
        "type": description.kind,
        "assignor": description.assignor,
        "lag": total_lag(progress),
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [{"topic": topic, "partition": index} for topic, index in member.partitions],
            }
            for member in description.members
        ],
        "partitions": [
            {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "committed_offset": one.committed_offset,
                "end_offset": one.end_offset,
                "lag": one.lag,
                "member_id": one.member.member_id if one.member else None,
            }
            for one in progress
        ],
    }


def move_as_json(move: Move) -> dict[str, object]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "old_offset": move.old_offset,
        "new_offset": move.old_offset if move.new_offset is None else move.new_offset,
    }


def print_description(description: GroupDescription, progress: Sequence[Progress]) -> None:
    print_facts(
        [
            ("group", description.group_id),
            ("state", description.state),
            ("type", description.kind),
            ("assignor", description.assignor or None),
            ("members", len(description.members)),
            ("lag", total_lag(progress)),
        ]
    )
    if description.members:
        print_line("")
        print_table(
            ("member", "client", "host", "assigned"),
            [(m.member_id, m.client_id, m.host, assigned_text(m.partitions)) for m in description.members],
        )
    if progress:
        print_line("")
        print_table(
            ("topic", "partition", "committed", "end offset", "lag", "client"),
            [
                (
                    one.partition.topic,
                    one.partition.partition,
                    one.committed_offset,
                    one.end_offset,
                    one.lag,
                    one.member.client_id if one.member else None,
                )
                for one in progress
            ],
        )


def print_moves(group_id: str, moves: Sequence[Move], *, dry_run: bool) -> None:
    print_table(
        ("topic", "partition", "old offset", "new offset"),
        [
            (
                move.partition.topic,
                move.partition.partition,
                move.old_offset,
                move.old_offset if move.new_offset is None else move.new_offset,
            )
            for move in moves
        ],
    )
    print_line("")
    count = sum(move.new_offset is not None for move in moves)
    what = f"{count} partition{'s' if count != 1 else ''} of {group_id}"
    print_line(f"would move {what}; nothing was changed" if dry_run else f"moved {what}")
