"""The script that shows a cluster to somebody at a terminal: it must end well, and show what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from node.process import clean_environment

SCRIPT = Path(__file__).parent.parent / "e2e_multi_agent.sh"


def test_three_agents_and_a_server_survive_the_loss_of_one() -> None:
    done = subprocess.run(
        [SCRIPT], env={**clean_environment(), "PYTHON": sys.executable}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert done.stdout.endswith("passed\n")
