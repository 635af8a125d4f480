"""The benchmarks of a cluster run: their quick form measures something positive and writes it down."""

from __future__ import annotations

from pathlib import Path

from e2e.test_bench_smoke import rows_of, run_bench


def test_a_cluster_is_measured_while_it_gains_and_loses_agents(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "failover,scale")

    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["name"]: row for row in rows_of(tmp_path)}
    for agents in ("1 agent", "2 agents"):
        assert rows[f"wal, requests of 100 B, {agents}"]["figure"] > 0
        assert rows[f"WAL objects under load, requests of 100 B, {agents}"]["figure"] > 0
    killed = rows["kill -9, object, leases of 2 s: acknowledged again, p50"]
    assert killed["figure"] >= killed["limit"], "somebody else led while the dead agent's lease ran"
