"""The command: `python -m demo [--records N] [--data-dir DIR]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from demo.failure import DemoFailed
from demo.pipeline import PipelineOutcome
from demo.report import make_revenue_table, make_table
from demo.scenario import run

_LEAST_RECORDS = 100
# Without a terminal a row stays on its line, for whoever reads the log.
_UNWRAPPED_WIDTH = 200


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description="Order events through one node and back.")
    parser.add_argument("--records", type=_record_count, default=100_000, metavar="N", help="how many (100,000)")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="keep the node's data here, to look at it later")
    arguments = parser.parse_args()
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _UNWRAPPED_WIDTH)
    try:
        if arguments.data_dir is not None:
            outcome = run(arguments.data_dir, arguments.records, console)
        else:
            with tempfile.TemporaryDirectory(prefix="streamhouse-demo-") as directory:
                outcome = run(Path(directory), arguments.records, console)
    except DemoFailed as problem:
        Console(stderr=True, highlight=False, markup=False).print(f"the demo failed: {problem}")
        return 1
    except KeyboardInterrupt:
        return 130
    console.print()
    if isinstance(outcome.pipeline, PipelineOutcome):
        console.print(make_revenue_table(outcome.pipeline))
        console.print()
    console.print(make_table(outcome))
    return 0


def _record_count(text: str) -> int:
    count = int(text)
    if count < _LEAST_RECORDS:
        raise argparse.ArgumentTypeError(f"at least {_LEAST_RECORDS}")
    return count


if __name__ == "__main__":
    sys.exit(main())
