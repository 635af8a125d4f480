"""The command: `python -m demo [--once] [--records N] [--data-dir DIR]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from demo.cluster import Cluster
from demo.ending import drain
from demo.failure import DemoFailed
from demo.report import drained_rows, make_revenue_table, make_table, shown_rows
from demo.scenario import TOPIC, show
from demo.services import Stores, stores
from demo.staying import stay

_LEAST_RECORDS = 100
# Without a terminal a row stays on its line, for whoever reads the log.
_UNWRAPPED_WIDTH = 200


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Three agents, orders, revenue on Spark; one is killed, nothing is lost.",
    )
    parser.add_argument("--once", action="store_true", help="end when all is shown, as without a terminal")
    parser.add_argument("--records", type=_record_count, default=100_000, metavar="N", help="how many (100,000)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="an empty one, to look at what is kept later")
    arguments = parser.parse_args()
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _UNWRAPPED_WIDTH)
    stays = sys.stdout.isatty() and not arguments.once
    try:
        if arguments.data_dir is not None:
            _run(_usable(arguments.data_dir), arguments.records, console, stays=stays)
        else:
            with tempfile.TemporaryDirectory(prefix="streamhouse-demo-") as directory:
                _run(Path(directory), arguments.records, console, stays=stays)
    except DemoFailed as problem:
        Console(stderr=True, highlight=False, markup=False).print(f"the demo failed: {problem}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(data_dir: Path, count: int, console: Console, *, stays: bool) -> None:
    with stores(data_dir) as services:
        if not services.is_shared:
            console.print("there is no PostgreSQL on this machine, which agents could share: one agent on SQLite")
        cluster = Cluster(services, data_dir, data_dir / "state")
        try:
            _run_on(services, cluster, data_dir, count, console, stays=stays)
        finally:
            cluster.close()


def _run_on(services: Stores, cluster: Cluster, data_dir: Path, count: int, console: Console, *, stays: bool) -> None:
    console.print(f"{', '.join(agent.name for agent in cluster.agents)}: Kafka at {cluster.bootstrap}")
    console.print(f"console at {cluster.console}")
    outcome = show(cluster, data_dir, data_dir / "state", count, console)
    console.print()
    if not isinstance(outcome.pipeline, str):
        console.print(make_revenue_table(outcome.pipeline))
        console.print()
    if not stays:
        console.print(make_table([*shown_rows(outcome), *drained_rows(drain(cluster, services, TOPIC, count))]))
        return
    console.print(make_table(shown_rows(outcome)))
    more = stay(cluster, TOPIC, console)
    console.print()
    console.print(make_table(drained_rows(drain(cluster, services, TOPIC, count + more))))


def _usable(data_dir: Path) -> Path:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        is_empty = next(data_dir.iterdir(), None) is None
    except OSError as problem:
        raise DemoFailed(f"cannot use the data directory: {problem}") from None
    if not is_empty:
        raise DemoFailed(f"the data directory {data_dir} is not empty")
    return data_dir.absolute()


def _record_count(text: str) -> int:
    count = int(text)
    if count < _LEAST_RECORDS:
        raise argparse.ArgumentTypeError(f"at least {_LEAST_RECORDS}")
    return count


if __name__ == "__main__":
    sys.exit(main())
