"""An agent is alive while it is heard of, does not drain, and has not let a lease run out in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from streamhouse.core.placement.liveness import live_agents, next_expiry_ms, ran_out
from streamhouse.metadata.cluster import AgentInfo, AgentRow, Placement, ShardPlacement
from streamhouse.model.names import TopicPartition

LIVENESS_MS = 60_000
RELEASED_MS = -1_750_000_000_000
"""What is left of a lease that is stored as expired at time 0, as a database says in 2025."""


def agent(agent_id: str, silent_ms: int, *, is_draining: bool = False) -> AgentRow:
    info = AgentInfo(agent_id=agent_id, address="", kafka_address="a:9092", zone="", agent_group="default")
    return AgentRow(info=info, node_id=1, started_at_ms=0, silent_ms=silent_ms, is_draining=is_draining)


def partition(agent_id: str, lease_left_ms: int) -> Placement:
    return Placement(
        topic="orders",
        partition=TopicPartition(UUID(int=1), 0),
        agent_id=agent_id,
        epoch=1,
        lease_left_ms=lease_left_ms,
        wal_agent_id="",
        pinned_to="",
        log_start_offset=0,
        committed_end=0,
        durable_end=0,
    )


def shard(agent_id: str, lease_left_ms: int) -> ShardPlacement:
    return ShardPlacement(shard=0, agent_id=agent_id, epoch=1, lease_left_ms=lease_left_ms)


def alive(agents: list[AgentRow], *leases: Placement | ShardPlacement) -> list[str]:
    return [row.info.agent_id for row in live_agents(agents, leases, liveness_ms=LIVENESS_MS)]


@pytest.mark.parametrize(("silent_ms", "expected"), [(0, ["a"]), (59_999, ["a"]), (60_000, []), (10**9, [])])
def test_an_agent_is_alive_until_it_was_silent_for_too_long(silent_ms: int, expected: list[str]) -> None:
    assert alive([agent("a", silent_ms)]) == expected


def test_a_heartbeat_that_is_ahead_of_the_databases_clock_is_a_heartbeat() -> None:
    assert alive([agent("a", -5)]) == ["a"]


def test_a_draining_agent_may_not_lead() -> None:
    assert alive([agent("a", 0, is_draining=True), agent("b", 0)]) == ["b"]


def test_the_order_given_is_kept() -> None:
    assert alive([agent("b", 0), agent("c", 70_000), agent("a", 0)]) == ["b", "a"]


def test_who_was_found_dead_is_dead_though_no_lease_tells_of_it() -> None:
    found_dead = replace(agent("a", 1_000), is_found_dead=True)
    assert alive([found_dead, agent("b", 1_000)], partition("b", 9_000)) == ["b"]


def test_a_row_without_a_node_id_or_an_address_is_nobody() -> None:
    """Somebody made it by hand: clients could not be sent there."""
    nameless, nowhere = replace(agent("a", 0), node_id=0), agent("b", 0)
    nowhere = replace(nowhere, info=replace(nowhere.info, kafka_address=""))
    assert alive([nameless, nowhere, agent("c", 0)]) == ["c"]


@pytest.mark.parametrize("lease", [partition, shard])
@pytest.mark.parametrize(
    ("silent_ms", "lease_left_ms", "is_alive"),
    [
        (20_000, 10_000, True),  # the lease is live
        (20_000, 1, True),
        (20_000, 0, False),  # it ran out this very millisecond
        (20_000, -5_000, False),  # the last heartbeat was before the lease ran out
        (20_000, -19_999, False),
        (20_000, -20_000, True),  # a heartbeat as it ran out
        (20_000, -20_001, True),  # a heartbeat since
        (0, -5_000, True),
        (59_999, RELEASED_MS, True),
    ],
)
def test_an_agent_that_lets_a_lease_run_out_is_suspect_until_its_next_heartbeat(
    lease: Callable[[str, int], Placement | ShardPlacement], silent_ms: int, lease_left_ms: int, is_alive: bool
) -> None:
    assert alive([agent("a", silent_ms)], lease("a", lease_left_ms)) == (["a"] if is_alive else [])


def test_one_lease_that_ran_out_in_silence_is_enough() -> None:
    leases: list[Placement | ShardPlacement] = [
        partition("a", -30_000),
        partition("a", 9_000),
        shard("a", -1_000),
        partition("a", RELEASED_MS),
    ]
    for order in (leases, leases[::-1]):
        assert alive([agent("a", 5_000)], *order) == []
        assert alive([agent("a", 1_000)], *order) == ["a"]


def test_the_leases_of_others_say_nothing_about_an_agent() -> None:
    assert alive([agent("a", 5_000), agent("b", 5_000)], partition("b", -1), partition("", 0)) == ["a"]


@pytest.mark.parametrize(
    ("lease_left_ms", "expected"),
    [(30_000, False), (1, False), (0, True), (-1, True), (-7 * 24 * 3_600_000, True), (RELEASED_MS, False)],
)
def test_a_lease_runs_out_unless_it_is_live_or_was_released(lease_left_ms: int, expected: bool) -> None:
    assert ran_out(lease_left_ms) is expected


def test_the_next_expiry_is_that_of_the_first_live_lease_of_another_agent() -> None:
    leases: list[Placement | ShardPlacement] = [
        partition("b", 9_000),
        shard("c", 7_000),
        partition("me", 3_000),
        partition("b", 0),
        partition("b", -1),
    ]
    assert next_expiry_ms(leases, me="me") == 7_000


def test_there_is_no_next_expiry_when_nobody_else_holds_a_live_lease() -> None:
    assert next_expiry_ms([partition("me", 3_000), partition("b", 0), shard("b", RELEASED_MS)], me="me") is None
    assert next_expiry_ms([], me="me") is None
