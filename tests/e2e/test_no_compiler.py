"""A machine without a working compiler: the package installs, says that it is slow, and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from compat.clients import HUNG_MS
from node.process import Node
from node.raw import RawConnection, build_batch, read_values
from node.wait import HUNG_SECONDS

ROOT = Path(__file__).parents[2]
NEEDED = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where it was installed, and what pip said."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    # A tree of its own, without what was built in ours.
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    for name in NEEDED:
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "install", "-v", "--no-index", "--no-deps", "--no-build-isolation"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*pip, "--target", target, source],
        env={**environment, "CC": "false"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=10 * HUNG_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return target, done.stdout


def test_it_installs_without_kernels_and_says_so(installed: tuple[Path, str]) -> None:
    target, said = installed

    assert not list(target.rglob("*.so"))
    assert "kernels of streamhouse could not be compiled" in said
    assert "many times slower" in said


def test_a_node_warns_and_works(installed: tuple[Path, str], tmp_path: Path) -> None:
    target, _ = installed
    with Node(tmp_path / "node", "--segment-age", "100ms", env={"PYTHONPATH": str(target)}) as node:
        assert "WARNING" in node.stderr()
        assert "kernels are not compiled" in node.stderr()
        with urllib.request.urlopen(f"{node.http}/metrics", timeout=HUNG_SECONDS) as answer:
            assert b"streamhouse_kernels_missing 10" in answer.read()
        with RawConnection(node.address) as raw:
            raw.metadata("orders", create=True)
            for number in range(3):
                assert raw.produce("orders", build_batch(b"%d" % number)).error_code == 0
            assert node.terminate() == 0
        node.start()
        with RawConnection(node.address) as raw:
            assert list(read_values(raw.fetch("orders", 0, max_wait_ms=HUNG_MS).records).values()) == [b"0", b"1", b"2"]
        assert node.terminate() == 0
