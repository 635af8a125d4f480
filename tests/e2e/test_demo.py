"""`make demo`, with fewer events: what it prints, how it ends, and that it fails when something is wrong."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from node.wait import eventually

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # the demo is not part of the package

from demo.agent import Agent  # noqa: E402
from demo.audit import Audit  # noqa: E402
from demo.failure import DemoFailed  # noqa: E402
from demo.orders import Event, make_orders  # noqa: E402
from demo.revenue import by_minute, by_region, expected_of  # noqa: E402

RECORDS = 5_000
_HUNG_SECONDS = 1_500
# Spark starts on whatever this machine has left.
pytestmark = pytest.mark.timeout(_HUNG_SECONDS)


def demo_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "demo", *map(str, arguments)]


def run_demo(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        demo_command(*arguments),
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
    assert re.search(r"^agents: 3, ready after [\d.]+ s$", rows["cluster"])
    assert rows["nothing lost"] == "5,000 of 5,000 events came back, exactly once and equal"
    assert re.search(r"exit code 0 of 2, 5,000 records in segments$", rows["drained"])
    assert rows["cluster verify --deep"].endswith(": 0 violations")
    for what in ("produce, acks=all, idempotent", "consume from the start"):
        assert re.search(r"[1-9][\d,]* records/s, [\d,.]+ MB/s$", rows[what])
    for what in ("acknowledged at 1,000/s", "end to end at 1,000/s"):
        assert re.search(r"^p50 [\d.]+ ms, p99 [\d.]+ ms over 500 events$", rows[what])
    assert re.search(r"^[1-9]\d* \(\d+ while running, \d+ by the drain\)$", rows["segments written"])
    assert {"segment sizes", "agents' memory, processor time"} <= rows.keys()


def test_an_agent_is_killed_and_every_order_is_acknowledged_all_the_same(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    (killed,) = re.findall(r"^kill -9 (agent-[23]), which led \d of 6 partitions$", demo[0].stdout, re.MULTILINE)
    rows = table_rows(demo[0].stdout)
    assert re.search(r"^it led [1-6] of 6 partitions, which the others lead now$", rows[f"kill -9 {killed}"])
    assert re.search(
        r"^1,000 orders at 400/s, all acknowledged; the longest wait [\d.]+ s$", rows["orders across the kill"]
    )


def test_the_pipeline_runs_on_while_the_agent_is_lost(demo: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    output, rows = demo[0].stdout, table_rows(demo[0].stdout)
    assert output.index("revenue per minute: first results after") < output.index("kill -9 agent-")
    assert re.search(r"^5,000 orders to [1-9]\d* sums per minute and region; ", rows["pipeline on Spark"])
    assert rows["its results"] == "topic and Delta table are equal to what the orders say, dead letters: 0"


def test_the_delta_table_has_the_revenue_of_every_minute_once(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    orders = [json.loads(event.value) for event in make_orders(RECORDS)]
    expected = Counter(
        (order["placed_at"][: len("2026-11-01T08:00")], order["country"], order["currency"])
        for order in orders
        if order["status"] != "cancelled"
    )
    rows = DeltaTable(demo[1] / "lake" / "revenue").to_pyarrow_table().to_pylist()
    found = {(row["minute"].strftime("%Y-%m-%dT%H:%M"), row["region"], row["currency"]): row["orders"] for row in rows}
    assert found == expected
    assert len(rows) == len(expected)


def test_the_revenue_of_every_region_is_shown(demo: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, _, output = demo[0].stdout.partition("Revenue, as the pipeline has it")
    revenue = [line.split() for line in output.partition("What happened")[0].splitlines()]
    orders = {cells[0]: int(cells[2].replace(",", "")) for cells in revenue if len(cells) == 6 and cells[0] != "region"}

    events = [json.loads(event.value) for event in make_orders(RECORDS)]
    assert orders == Counter(order["country"] for order in events if order["status"] != "cancelled")


def test_progress_is_plain_lines_where_there_is_no_terminal(
    demo: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    lines = demo[0].stdout.splitlines()
    assert "produce, as fast as it goes: 3,499 of 3,499" in lines
    assert "consume from the start: 5,000 of 5,000" in lines
    assert "revenue per minute and region: 5,000 of 5,000" in lines
    assert any(re.fullmatch(r"console at http://127\.0\.0\.1:\d+/", line) for line in lines)
    assert "\x1b" not in demo[0].stdout


def test_without_postgresql_one_agent_is_killed_and_comes_back(tmp_path: Path) -> None:
    # What it looks for, in places where it is not.
    hidden = "import services.postgres as p; p._find_binaries = lambda: (_ for _ in ()).throw(RuntimeError('none'))"
    (tmp_path / "without_postgres.py").write_text(
        f"import sys; sys.path[:0] = {[str(REPOSITORY), str(REPOSITORY / 'tests')]!r}\n{hidden}\n"
        "from demo.__main__ import main; sys.exit(main())\n"
    )
    finished = subprocess.run(
        [sys.executable, tmp_path / "without_postgres.py", "--records", "100"],
        capture_output=True,
        text=True,
        timeout=_HUNG_SECONDS,
        check=False,
        env={**os.environ, "JAVA_HOME": str(tmp_path), "TEST_PG_DSN": ""},
    )
    assert finished.returncode == 0, finished.stderr
    assert "one agent on SQLite" in finished.stdout
    rows = table_rows(finished.stdout)
    assert rows["kill -9 agent-1"] == "it led 6 of 6 partitions, and leads them again"
    assert rows["nothing lost"] == "100 of 100 events came back, exactly once and equal"


def test_at_a_terminal_it_stays_until_ctrl_c_and_counts_what_came_meanwhile(tmp_path: Path) -> None:
    """On a machine without Java, where the pipeline is left out."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        demo_command("--records", 100),
        cwd=REPOSITORY,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "JAVA_HOME": str(tmp_path), "COLUMNS": "200", "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while b"end it with Ctrl-C" not in shown:
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        shown += rest_of(ours)
        assert process.wait(_HUNG_SECONDS) == 0
    finally:
        process.kill()
        os.close(ours)
    assert re.search(rb"exit code 0 of 2, [\d,]+ records in segments", shown), shown.decode()
    assert b"left out: there is no Java on this machine" in shown
    assert b"Revenue" not in shown


def rest_of(terminal: int) -> bytes:
    """Until the other end is closed, which Linux reports as an error."""
    content = b""
    try:
        while more := os.read(terminal, 65536):
            content += more
    except OSError:
        pass
    return content


def test_a_data_directory_that_is_used_already_fails_the_demo(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory, reason in ((tmp_path, "is not empty"), (tmp_path / "file", "cannot use the data directory")):
        failed = run_demo("--records", 100, "--data-dir", directory)
        assert failed.returncode == 1
        assert reason in failed.stderr
        assert failed.stdout == ""


def test_an_agent_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    agent = Agent("agent-1", tmp_path / "file")
    try:
        with pytest.raises(DemoFailed, match="cannot use the data directory"):
            agent.wait_ready()
        eventually(lambda: not agent.is_running, "its end")
    finally:
        agent.kill()


def test_a_sale_that_is_missing_or_counted_twice_shows_in_the_revenue() -> None:
    events = make_orders(50)
    sale = next(event for event in events if b'"cancelled"' not in event.value)
    sums = by_minute(expected_of(events))
    assert by_minute(expected_of([event for event in events if event is not sale])) != sums
    assert by_minute(expected_of([*events, sale])) != sums
    # In another minute, although each region has as many minutes and as much revenue as before.
    moved = [{**row, "minute": "2026-11-01T09:59"} for row in expected_of([sale])]
    others = expected_of([event for event in events if event is not sale])
    assert by_minute([*others, *moved]) != sums
    assert by_region([]) == {}


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
