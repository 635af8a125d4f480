"""`make demo`, with fewer events: what it prints, how it ends, and that it fails when something is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # the demo is not part of the package

from demo.audit import Audit, read_segments  # noqa: E402
from demo.failure import DemoFailed  # noqa: E402
from demo.orders import Event, make_orders  # noqa: E402

RECORDS = 5_000
_HUNG_SECONDS = 240


def run_demo(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=_HUNG_SECONDS,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    data_dir = tmp_path_factory.mktemp("demo")
    return run_demo("--records", RECORDS, "--data-dir", data_dir), data_dir


def table_rows(output: str) -> dict[str, str]:
    """The rows of the table at the end, by their first column."""
    _, _, table = output.partition("What happened")
    return dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in table.splitlines() if "  " in line.strip())


def test_the_demo_ends_well_and_says_nothing_on_stderr(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    finished, _ = demo
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""


def test_the_table_says_what_happened(demo: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    rows = table_rows(demo[0].stdout)
    assert rows["events"].startswith("5,000 orders, ")
    assert rows["verified"] == "5,000 events came back exactly once and equal, both times"
    assert rows["drained"].endswith("exit code 0, 5,000 records in the object store")
    for what in ("produce, acks=all, idempotent", "consume from memory", "consume from segments, restarted"):
        assert re.search(r"[1-9][\d,]* records/s, [\d,.]+ MB/s$", rows[what])
    for what in ("acknowledged at 1,000/s", "end to end at 1,000/s"):
        assert re.search(r"^p50 [\d.]+ ms, p99 [\d.]+ ms over 500 events$", rows[what])
    assert re.search(r"^[1-9]\d* \([1-9]\d* while running, \d+ by the drain\)$", rows["segments written"])
    assert re.search(
        r"^5,000 orders to [1-9]\d* sums per minute and region in [\d.]+ s, Spark's start included$",
        rows["pipeline on Spark"],
    )
    assert rows["its result"] == "equal to what the orders say, dead letters: 0"
    assert {"node ready after", "segment sizes", "WAL", "node memory, processor time"} <= rows.keys()


def test_the_revenue_of_every_region_is_shown(demo: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, _, output = demo[0].stdout.partition("Revenue, as the pipeline has it")
    revenue = [line.split() for line in output.partition("What happened")[0].splitlines()]
    orders = {cells[0]: int(cells[2].replace(",", "")) for cells in revenue if len(cells) == 6 and cells[0] != "region"}

    events = [json.loads(event.value) for event in make_orders(RECORDS)]
    assert orders == Counter(order["country"] for order in events if order["status"] != "cancelled")


def test_without_java_the_pipeline_is_left_out_and_the_demo_says_so(tmp_path: Path) -> None:
    finished = run_demo("--records", 100, JAVA_HOME=str(tmp_path))

    assert finished.returncode == 0, finished.stderr
    assert table_rows(finished.stdout)["pipeline on Spark"] == "left out: there is no Java on this machine"
    assert "Revenue" not in finished.stdout


def test_progress_is_plain_lines_where_there_is_no_terminal(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    lines = demo[0].stdout.splitlines()
    assert "produce, as fast as it goes: 4,499 of 4,499" in lines
    assert "consume after the restart: 5,000 of 5,000" in lines
    assert "revenue per minute and region: 5,000 of 5,000" in lines
    assert "\x1b" not in demo[0].stdout


def test_the_object_store_holds_every_event_after_the_demo(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    stored = read_segments(demo[1] / "objects", "orders")
    assert stored.records == RECORDS
    assert 0 < stored.stored_bytes < stored.raw_bytes


def test_a_topic_that_is_there_already_fails_the_demo(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    again = run_demo("--records", 100, "--data-dir", demo[1])
    assert again.returncode == 1
    assert "cannot create the topic" in again.stderr
    assert "What happened" not in again.stdout


def test_a_node_that_cannot_start_fails_the_demo_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failed = run_demo("--records", 100, "--data-dir", tmp_path / "file")
    assert failed.returncode == 1
    assert "the node did not become ready" in failed.stderr
    assert "cannot use the data directory" in failed.stderr


class Received:
    """As much of a consumer's message as the audit looks at."""

    def __init__(self, event: Event, offset: int, *, value: bytes | None = None, key: bytes | None = None) -> None:
        self._event = event
        self._offset = offset
        self._value = value
        self._key = key

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value or self._event.value

    def key(self) -> bytes:
        return self._key or self._event.key

    def timestamp(self) -> tuple[int, int]:
        return 1, self._event.timestamp_ms


def audited(sent: list[Event], received: list[Received]) -> None:
    audit = Audit(sent)
    for message in received:
        audit.received(message)  # type: ignore[arg-type]
    audit.conclude()


def test_the_audit_passes_what_came_back_as_it_was_sent() -> None:
    events = make_orders(3)
    audited(events, [Received(event, offset) for offset, event in enumerate(events)])


def test_the_audit_names_every_way_in_which_events_can_go_wrong() -> None:
    events = make_orders(3)
    good = [Received(event, offset) for offset, event in enumerate(events)]
    broken = {
        "1 events did not come back": good[:2],
        "received twice, or was never sent": [*good, Received(events[0], 3)],
        "came where 2 was next": [*good[:2], Received(events[2], 5)],
        "another key or timestamp": [*good[:2], Received(events[2], 2, key=b"somebody else")],
        "2 problems": [*good[:2], Received(events[2], 2, value=b"{}")],
    }
    for message, received in broken.items():
        with pytest.raises(DemoFailed, match=message):
            audited(events, received)


def test_orders_are_the_same_in_every_run_and_each_is_another() -> None:
    events = make_orders(1_000)
    assert events == make_orders(1_000)
    assert len({event.value for event in events}) == 1_000
    assert events[:10] == make_orders(10)
