"""Groups that go from one protocol to the other under faults, with members of both in them: from a seed."""

from __future__ import annotations

import os

import pytest

from mixed_groups.simulation import Simulation

FIRST = int(os.environ.get("SWEEP_SEED", "0")) * 1_000_000
SEEDS = range(FIRST, FIRST + int(os.environ.get("SWEEP", "12")))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_has_one_owner_and_no_commit_is_lost_whichever_protocol_the_members_speak(seed: int) -> None:
    simulation = Simulation(seed)
    try:
        for number in range(4):
            static = f"i{number}" if number < 2 else None
            simulation.start_client(("eager", "cooperative", "newer")[number % 3], static)
        simulation.storm(200)
        simulation.there_and_back()
        simulation.settle()
        simulation.switch_all_to_classic()
        simulation.settle()
    finally:
        simulation.loop.close()
    assert simulation.switched > 3
    assert simulation.restarts > 3
    assert len(simulation.store.kinds) > 3, "the group was converted there and back"
