"""Where partitions end as far as a node has heard: never less than before, but where records were given up; and of whom
it has never heard."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import ClusterState
from streamhouse.metadata.cluster import Placement
from streamhouse.model.names import TopicPartition
from streamhouse.server.http.rest.known_ends import KnownEnds

PARTITION = TopicPartition(UUID(int=1), 0)


def work(ends: Mapping[TopicPartition, int]) -> NodeWork:
    return NodeWork(
        records_in=0,
        bytes_in=0,
        records_out=0,
        bytes_out=0,
        produce_p50_ms=None,
        produce_p99_ms=None,
        buffered_bytes=0,
        buffer_limit_bytes=1000,
        ends=ends,
    )


def state(leader: str = "a", *, epoch: int = 1, durable_end: int = 0, is_led: bool = True) -> ClusterState:
    placement = Placement(
        topic="orders",
        partition=PARTITION,
        agent_id=leader,
        epoch=epoch,
        lease_left_ms=5_000 if is_led else 0,
        wal_agent_id="" if is_led else leader,
        pinned_to="",
        log_start_offset=0,
        committed_end=0,
        durable_end=durable_end,
    )
    return ClusterState(agents=[], placements=[placement], shards=[], liveness_ms=10_000)


def end(known: KnownEnds, of: ClusterState, answers: Mapping[str, NodeWork]) -> int:
    return known.update(of, answers)[PARTITION]


def test_what_a_leader_said_stays_when_it_is_gone() -> None:
    known = KnownEnds()
    assert end(known, state(), {"a": work({PARTITION: 100})}) == 100
    assert end(known, state(), {}) == 100
    assert end(known, state(is_led=False), {}) == 100
    assert known.of(state(is_led=False, durable_end=40).placements[0]) == 100
    assert end(known, state(durable_end=120), {}) == 120


def test_an_answer_that_is_older_than_another_takes_nothing_back() -> None:
    known = KnownEnds()
    known.note(PARTITION, 2, 190)
    assert end(known, state(epoch=2), {"a": work({PARTITION: 150})}) == 190
    assert end(known, state("b", epoch=1), {"b": work({PARTITION: 140})}) == 190
    known.note(PARTITION, 2, 120)
    assert end(known, state(epoch=2), {}) == 190


def test_records_that_were_given_up_count_no_more() -> None:
    known = KnownEnds()
    assert end(known, state(), {"a": work({PARTITION: 100})}) == 100
    assert end(known, state("b", epoch=2, durable_end=60), {"b": work({PARTITION: 60})}) == 60


def test_one_that_leads_no_longer_tells_of_what_it_holds() -> None:
    known = KnownEnds()
    assert end(known, state(is_led=False), {"a": work({PARTITION: 100})}) == 100


def test_agents_are_missing_whose_records_nobody_has_told_of() -> None:
    known = KnownEnds()
    assert known.missing(state(), ["b"]) == ["a"]
    assert known.missing(state(is_led=False), ["b"]) == ["a"]
    # It answers, and takes the partition over at this moment.
    assert known.missing(state(), ["a", "b"]) == []
    known.update(state(), {"a": work({PARTITION: 100})})
    assert known.missing(state(), ["b"]) == []


def test_a_partition_that_was_deleted_is_forgotten() -> None:
    known = KnownEnds()
    known.update(state(), {"a": work({PARTITION: 100})})
    known.update(ClusterState(agents=[], placements=[], shards=[], liveness_ms=10_000), {})
    assert end(known, state(), {}) == 0
