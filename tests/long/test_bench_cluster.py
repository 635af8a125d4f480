"""The benchmarks of a cluster and of the doors run: their quick form measures something positive and writes it down."""

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


def test_every_door_is_measured_beside_another(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "doors")

    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(tmp_path)
    assert len(rows) == 4
    assert all(row["figure"] > 0 and row["limit"] > 0 for row in rows)
