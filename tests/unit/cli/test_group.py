"""Which offset a reset chooses, what lag is, and how options of `group reset` go together."""

from __future__ import annotations

import pytest

from streamhouse.cli.group_report import assigned_text, group_as_json, print_description, total_lag
from streamhouse.cli.main import run
from streamhouse.client.group_progress import Progress
from streamhouse.client.groups_admin import CLASSIC, GroupDescription, GroupPartition
from streamhouse.core.groups.offset_reset import PartitionPosition, ResetKind, ResetTarget, choose_offset, lag


def position(committed: int | None = 50, at_time: int | None = None) -> PartitionPosition:
    return PartitionPosition(start_offset=10, end_offset=100, committed_offset=committed, offset_at_time=at_time)


@pytest.mark.parametrize(
    ("target", "where", "chosen"),
    [
        (ResetTarget(ResetKind.EARLIEST), position(), 10),
        (ResetTarget(ResetKind.LATEST), position(), 100),
        (ResetTarget(ResetKind.OFFSET, 42), position(), 42),
        (ResetTarget(ResetKind.OFFSET, 42), position(committed=None), 42),
        (ResetTarget(ResetKind.TIME, 1_700_000_000_000), position(at_time=77), 77),
        (ResetTarget(ResetKind.TIME, 1_700_000_000_000), position(at_time=None), 100),
        (ResetTarget(ResetKind.SHIFT, 5), position(), 55),
        (ResetTarget(ResetKind.SHIFT, -5), position(), 45),
    ],
)
def test_each_target_chooses_its_offset(target: ResetTarget, where: PartitionPosition, chosen: int) -> None:
    assert choose_offset(target, where) == chosen


@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        (ResetTarget(ResetKind.OFFSET, 0), 10),
        (ResetTarget(ResetKind.OFFSET, 10_000), 100),
        (ResetTarget(ResetKind.SHIFT, -1_000), 10),
        (ResetTarget(ResetKind.SHIFT, 1_000), 100),
    ],
)
def test_an_offset_outside_the_log_becomes_its_nearest_end(target: ResetTarget, chosen: int) -> None:
    assert choose_offset(target, position()) == chosen


def test_where_nothing_was_committed_there_is_nothing_to_shift() -> None:
    assert choose_offset(ResetTarget(ResetKind.SHIFT, 5), position(committed=None)) is None


@pytest.mark.parametrize(
    ("committed", "end", "expected"), [(3, 10, 7), (10, 10, 0), (12, 10, 0), (None, 10, None), (3, None, None)]
)
def test_lag_is_what_was_not_read_yet(committed: int | None, end: int | None, expected: int | None) -> None:
    assert lag(committed, end) == expected


def progress(*offsets: tuple[int | None, int | None]) -> list[Progress]:
    """In a partition for each of what is committed and where the log ends."""
    return [
        Progress(
            partition=GroupPartition("orders", index), committed_offset=committed, end_offset=end_offset, member=None
        )
        for index, (committed, end_offset) in enumerate(offsets)
    ]


@pytest.mark.parametrize(
    ("offsets", "total"),
    [
        ([], 0),
        ([(3, 10), (8, 10)], 9),
        ([(3, 10), (None, 0)], 7),
        ([(3, 10), (5, None)], 7),
        ([(3, 10), (None, 10)], None),
        ([(None, 10)], None),
    ],
    ids=["nothing", "all committed", "no records", "deleted", "not committed in one", "not committed at all"],
)
def test_the_lag_of_a_group_is_known_if_it_is_wherever_there_are_records(
    offsets: list[tuple[int | None, int | None]], total: int | None
) -> None:
    assert total_lag(progress(*offsets)) == total


def test_a_lag_that_is_not_known_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    group = GroupDescription(group_id="billing", state="Stable", kind=CLASSIC, assignor="range", members=())
    uncommitted = progress((None, 10))

    assert group_as_json(group, uncommitted)["lag"] is None
    print_description(group, uncommitted)
    assert "lag       -\n" in capsys.readouterr().out


def test_assigned_partitions_are_put_together_by_topic() -> None:
    partitions = [GroupPartition("orders", 0), GroupPartition("orders", 2), GroupPartition("payments", 1)]
    assert assigned_text(partitions) == "orders/0,2 payments/1"
    assert assigned_text([]) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--to-earliest"], "--all-topics"),
        (["--topic", "t", "--all-topics", "--to-earliest"], "either --topic"),
        (["--topic", "t"], "give one of --to-earliest"),
        (["--topic", "t", "--to-earliest", "--shift-by", "0"], "give one of --to-earliest"),
        (["--topic", "t", "--to-offset", "-1"], "--to-offset"),
        (["--topic", "t", "--to-time", "tomorrow"], "'tomorrow' is not a time"),
    ],
)
def test_a_reset_that_does_not_say_one_thing_is_wrong_usage(
    options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["group", "reset", "billing", *options]) == 2
    assert reason in capsys.readouterr().err
