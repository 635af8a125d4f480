"""How the cluster heals, seed by seed: who is dead is left alone, who is slow gets on, and nothing goes in circles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from sim.cluster import node as nodes
from sim.cluster import simulation as simulations
from sim.cluster.agent import EPOCH_MS
from sim.cluster.network import Weather
from sim.cluster.schedule import AGENTS, STORM_SECONDS, Fault
from sim.cluster.simulation import TOPICS, Simulation, Violation
from streamhouse.core.placement import attempts, liveness
from streamhouse.log import handing_over

SEEDS = range(12)
CRASH_SECONDS = 2.0
SLOW = Weather(usual_ms=180.0)
"""A call takes a third of a lease on average, there and back, and now and then a whole one."""


def a_simulation(seed: int, weather: Weather, *faults: Fault) -> Simulation:
    simulation = Simulation(seed)
    simulation.schedule = replace(
        simulation.schedule, weather=weather, faults=faults, sync_fails=0.0, answers_lost=0.0, segment_bytes=1024
    )
    simulation.network.weather = weather
    simulation.answers_lost = 0.0
    return simulation


def transfers_to_a_dead_agent(seed: int) -> int:
    """Between its death and the end of the storm, when it is started again.

    Without topics whose records are on its disk, and whose leases nobody takes over: those would tell of its death."""
    with (
        patch.object(simulations, "TOPICS", (replace(TOPICS[0], partition_count=6),)),
        patch.object(nodes, "SETTINGS", replace(nodes.SETTINGS, liveness=5_000)),
    ):
        simulation = a_simulation(seed, Weather(), Fault(CRASH_SECONDS, "crash", AGENTS[seed % 3], seconds=60.0))
        simulation.run()
    died_ms, over_ms = (EPOCH_MS + int(seconds * 1000) for seconds in (CRASH_SECONDS, STORM_SECONDS))
    return sum(
        transfer.to_agent_id == AGENTS[seed % 3] and died_ms < transfer.created_at_ms < over_ms
        for transfer in simulation.database._transfers.values()
    )


def test_nothing_is_handed_over_to_the_dead() -> None:
    assert sum(transfers_to_a_dead_agent(seed) for seed in SEEDS) == 0


def test_without_the_note_of_a_death_something_would_be() -> None:
    """Its leases are taken over, after which nothing but its heartbeat tells of it, which is young."""
    is_heard_of = liveness.is_heard_of

    def by_heartbeat_alone(agent: liveness.RegisteredAgent, *, liveness_ms: int) -> bool:
        return is_heard_of(replace(agent, is_found_dead=False), liveness_ms=liveness_ms)  # type: ignore[type-var]

    with patch.object(liveness, "is_heard_of", by_heartbeat_alone):
        assert sum(transfers_to_a_dead_agent(seed) for seed in SEEDS) > 0


def tries_of_a_hand_over_that_fails(seed: int) -> int:
    """Within five seconds, of the partition that was tried most often."""
    pins = [Fault(0.5, "pin", AGENTS[(seed + number) % 3], amount=number) for number in range(4)]
    simulation = a_simulation(seed, Weather(), *pins)
    with patch.object(handing_over, "_QUICK_MS", -1):
        simulation.run()
    return max(Counter(transfer.partition for transfer in simulation.database._transfers.values()).values())


def test_what_cannot_be_handed_over_is_tried_less_and_less_often() -> None:
    assert max(tries_of_a_hand_over_that_fails(seed) for seed in SEEDS) <= 4


def test_without_the_waits_it_would_be_tried_in_circles() -> None:
    with patch.object(attempts, "wait_ms", lambda _failures: 0):
        assert max(tries_of_a_hand_over_that_fails(seed) for seed in SEEDS) > 20


def unwell(seeds: Sequence[int]) -> list[int]:
    """Those seeds after which, though all that is wrong is that everything is slow and stays so, not all is well."""
    found = []
    for seed in seeds:
        simulation = a_simulation(seed, SLOW, Fault(CRASH_SECONDS, "crash", "agent-2", seconds=1.5))
        with patch.object(simulation.network, "heal"):
            try:
                simulation.run()
            except Violation:
                found.append(seed)
    return found


def test_leaders_whose_calls_take_a_good_part_of_a_lease_get_on() -> None:
    assert unwell(SEEDS) == []


def unled_without_the_store(seed: int) -> list[str]:
    """Partitions that the only agent with a way to the bucket does not lead, three leases after another died while the
    third had lost its way, in silence; and how many epochs that took."""
    blind, dead, well = (AGENTS[(seed + number) % 3] for number in range(3))
    unled: list[str] = []
    with patch.object(simulations, "TOPICS", TOPICS[:1]):
        simulation = a_simulation(
            seed,
            Weather(),
            Fault(1.8, "cut from bucket", blind, seconds=60.0),
            Fault(1.2, "crash", dead, seconds=60.0),
        )
        simulation.network.timeout_ms["bucket"] = 5_000

        def look() -> None:
            node = simulation.agents[well].node
            led = {key for key, leader in node.leaders.items() if leader.has_begun} if node is not None else set()
            for partition, record in simulation.database.partitions.items():
                if partition not in led or record.epoch > 8:
                    unled.append(f"{record.topic}/{partition.partition}: {record.leader_agent_id}, {record.epoch}")

        simulation.loop.call_later(4.5, look)
        simulation.run()
    return unled


def test_who_reaches_the_store_takes_over_what_another_cannot_read() -> None:
    assert [unled for seed in SEEDS for unled in unled_without_the_store(seed)] == []
