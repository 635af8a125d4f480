"""`streamhouse cluster verify`: one line for each violation, a summary, and an exit code that says it, too."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stored_cluster.logs import StoredLogs, execute
from stored_cluster.shell import ClusterShell
from streamhouse.cli.main import run
from streamhouse.metadata.store import SegmentRow

HOURS_AGO = 1_000_000_000


def verify(shell: ClusterShell, *options: str) -> tuple[int, str]:
    code, out, _ = shell.run("cluster", "verify", "--objects", f"file://{shell.objects}", *options)
    return code, out


@pytest.fixture
def segments(shell: ClusterShell) -> list[SegmentRow]:
    """Of `orders/0`, with a WAL object behind them."""

    async def write(logs: StoredLogs) -> list[SegmentRow]:
        (partition,) = await logs.create()
        lease = await logs.lead(partition)
        rows = [await logs.add_segment(lease) for _ in range(3)]
        await logs.add_wal_object(lease)
        return rows

    return shell.change_logs(write)


def test_a_sound_cluster_is_one_line_and_exit_code_zero(shell: ClusterShell, segments: list[SegmentRow]) -> None:
    assert verify(shell) == (0, "checked 1 partition, 3 segments, 1 WAL object: 0 violations, 0 notes\n")

    code, out = verify(shell, "--deep", "--json")
    assert code == 0
    shown = json.loads(out)
    assert shown.pop("bytes_read") > sum(row.size_bytes for row in segments)
    assert shown == {"partitions": 1, "segments": 3, "wal_objects": 1, "violations": [], "notes": []}


def test_each_violation_is_a_line_and_the_exit_code_is_one(
    shell: ClusterShell, segments: list[SegmentRow], database: Path
) -> None:
    execute(database, "DELETE FROM segments WHERE base_offset = 3")
    missing = segments[0].object_key
    (shell.objects / missing).unlink()

    code, out = verify(shell)

    assert code == 1
    assert out.splitlines() == [
        "violation I3 orders/0: gap: no segment holds 3 to 5",
        f"violation I7 orders/0: segment 0 to 2: object {missing} is not there",
        "checked 1 partition, 2 segments, 1 WAL object: 2 violations, 0 notes",
    ]
    code, out = verify(shell, "--json")
    assert code == 1
    assert json.loads(out)["violations"][0] == {
        "invariant": "I3",
        "subject": "orders/0",
        "message": "gap: no segment holds 3 to 5",
    }


def test_damage_is_found_only_by_reading(shell: ClusterShell, segments: list[SegmentRow]) -> None:
    path = shell.objects / segments[1].object_key
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)

    assert verify(shell)[0] == 0
    code, out = verify(shell, "--deep")
    assert code == 1
    assert "does not match its checksum" in out


def test_an_object_without_a_row_is_a_note_and_no_failure(
    shell: ClusterShell, segments: list[SegmentRow], database: Path
) -> None:
    orphan = shell.objects / segments[0].object_key.replace("-00000001-", "-00000002-")
    orphan.write_bytes(b"x")

    assert "0 notes" in verify(shell)[1]
    os.utime(orphan, (HOURS_AGO, HOURS_AGO))
    code, out = verify(shell)

    assert code == 0
    assert out.splitlines()[0].startswith("note I7 object segments/")
    assert "1 note" in out
    assert "0 notes" in verify(shell, "--garbage-grace", "36500d")[1]


def test_an_object_store_that_is_not_there_is_an_error(shell: ClusterShell, tmp_path: Path) -> None:
    code, _, said = shell.run("cluster", "verify", "--data-dir", str(tmp_path / "nothing"))
    assert (code, "there is no object store" in said) == (2, True)


def test_a_noun_without_a_verb_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster"]) == 2
    assert "verify" in capsys.readouterr().out
