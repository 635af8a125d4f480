"""Calls for partitions that another node leads: sent to it, and again when it has changed, but never twice for one."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from log_parts.batches import sent
from peers.scripted import FETCHED, FOUND, NEW_SEGMENT, PRODUCED, ScriptedPeer
from services.clock import ManualClock
from streamhouse.broker.forwarding import Forwarder
from streamhouse.client.peer import LATEST, Peers
from streamhouse.model.errors import (
    BatchTooLarge,
    CorruptBatch,
    MetadataUnavailable,
    NotFound,
    NotLeader,
    OffsetOutOfRange,
    OutcomeUnknown,
    StaleEpoch,
    StorageUnavailable,
    StreamHouseError,
    Unavailable,
)
from streamhouse.model.topic import Topic

TOPIC = Topic(name="orders", topic_id=UUID(int=7), partition_count=2, config={}, created_at_ms=0)
IDEMPOTENT = bytes(sent(producer=(9, 0, 0)))
PLAIN = bytes(sent())
AGENT = "agent-1"


class Script:
    """What each try meets, in turn; the last forever."""

    def __init__(self, *outcomes: StreamHouseError | None) -> None:
        self._outcomes = list(outcomes)

    async def __call__(self) -> None:
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if outcome is not None:
            raise outcome


class Cluster:
    """A forwarder on agent-1, and the other agents that it can reach."""

    def __init__(self, *leaders: str | None) -> None:
        """`leaders`: who leads after each look at the metadata store; the last one stays."""
        self.local = ScriptedPeer()
        self.agents: dict[str, ScriptedPeer] = {}
        self.connects: list[str] = []
        self.clock = ManualClock()
        self.refreshes = 0
        self.refresh_problem: StreamHouseError | None = None
        self._leaders = list(leaders)
        self.peers = Peers(self._connect)
        self.forwarder = Forwarder(
            agent_id=AGENT,
            local=self.local,
            peers=self.peers,
            leader_address=self._leader_address,
            refresh_routes=self._refresh,
            clock=self.clock,
        )

    def agent(self, name: str, first: Callable[[], object] | None = None) -> ScriptedPeer:
        self.agents[f"{name}:9093"] = ScriptedPeer(first=first)
        return self.agents[f"{name}:9093"]

    def _connect(self, address: str) -> ScriptedPeer:
        self.connects.append(address)
        return self.agents[address]

    def _leader_address(self, topic_id: UUID, partition: int) -> tuple[str, str] | None:
        assert (topic_id, partition) == (TOPIC.topic_id, 1)
        leader = self._leaders[0]
        return None if leader is None else (leader, f"{leader}:9093")

    async def _refresh(self) -> None:
        self.refreshes += 1
        if self.refresh_problem is not None:
            raise self.refresh_problem
        if len(self._leaders) > 1:
            self._leaders.pop(0)

    async def produce(self, batch: bytes = PLAIN, **options: int) -> object:
        return await self.forwarder.produce(TOPIC, 1, batch, **options)


# --- where it goes ---


async def test_what_is_led_here_is_done_here() -> None:
    cluster = Cluster(AGENT)

    assert await cluster.produce() == PRODUCED
    assert await cluster.forwarder.fetch(TOPIC, 1, 5, max_bytes=10) == FETCHED
    assert [what for what, _ in cluster.local.asked] == ["produce", "fetch"]
    assert cluster.connects == []


async def test_what_another_leads_is_sent_to_it_over_one_connection() -> None:
    cluster = Cluster("agent-2")
    other = cluster.agent("agent-2")

    assert await cluster.produce(PLAIN) == PRODUCED
    assert await cluster.forwarder.fetch(TOPIC, 1, 5, max_bytes=10, min_bytes=1, max_wait_ms=200) == FETCHED

    (_, produce), (_, fetch) = other.asked
    assert produce["batch"] == PLAIN
    assert (fetch["offset"], fetch["max_bytes"], fetch["min_bytes"], fetch["max_wait_ms"]) == (5, 10, 1, 200)
    assert (cluster.connects, cluster.local.asked) == (["agent-2:9093"], [])


async def test_that_records_were_judged_before_is_told_only_by_who_says_so() -> None:
    cluster = Cluster("agent-2")
    other = cluster.agent("agent-2")
    await cluster.produce(PLAIN)
    await cluster.produce(PLAIN, is_admitted=True)

    assert [options["is_admitted"] for _, options in other.asked] == [False, True]


@pytest.mark.parametrize("partition", [-1, 2])
async def test_a_partition_that_does_not_exist_is_not_looked_for(partition: int) -> None:
    cluster = Cluster(AGENT)
    with pytest.raises(NotFound):
        await cluster.forwarder.produce(TOPIC, partition, PLAIN)

    assert cluster.refreshes == 0


async def test_bytes_that_are_no_batch_are_not_sent() -> None:
    cluster = Cluster("agent-2")
    with pytest.raises(CorruptBatch):
        await cluster.produce(b"short")

    assert cluster.connects == []


# --- when the leader has changed ---


@pytest.mark.parametrize("batch", [PLAIN, IDEMPOTENT], ids=["plain", "idempotent"])
@pytest.mark.parametrize("problem", [NotLeader("not me"), Unavailable("cannot be reached"), StorageUnavailable("full")])
async def test_a_refusal_is_followed_to_the_new_leader(problem: StreamHouseError, batch: bytes) -> None:
    cluster = Cluster("agent-2", "agent-3")
    cluster.agent("agent-2", Script(problem))
    successor = cluster.agent("agent-3")

    assert await cluster.produce(batch) == PRODUCED
    assert len(successor.asked) == 1
    assert cluster.refreshes == 1


async def test_a_leader_that_moved_here_is_followed_here_and_one_that_moved_away_is_followed_there() -> None:
    moved_here = Cluster("agent-2", AGENT)
    moved_here.agent("agent-2", Script(NotLeader("not me")))
    moved_away = Cluster(AGENT, "agent-2")
    moved_away.local.first = Script(NotLeader("no longer"))
    moved_away.agent("agent-2")

    assert await moved_here.produce() == PRODUCED
    assert await moved_away.produce() == PRODUCED


async def test_a_partition_that_nobody_leads_is_waited_for() -> None:
    cluster = Cluster(None, None, None, "agent-2")
    cluster.agent("agent-2")

    assert await cluster.produce() == PRODUCED
    assert cluster.refreshes == 3


async def test_an_agent_at_a_new_address_is_found_there_and_its_old_connection_is_closed() -> None:
    peers: dict[str, ScriptedPeer] = {"a:1": ScriptedPeer(), "a:2": ScriptedPeer()}
    known = Peers(peers.__getitem__)

    assert known.at("agent-2", "a:1") is known.at("agent-2", "a:1") is peers["a:1"]
    assert known.at("agent-2", "a:2") is peers["a:2"]
    await known.close()
    assert [peer.asked for peer in peers.values()] == [[("close", {})], [("close", {})]]


async def test_without_the_metadata_store_the_routes_that_are_known_are_tried_again() -> None:
    cluster = Cluster("agent-2")
    cluster.refresh_problem = MetadataUnavailable("gone")
    cluster.agent("agent-2", Script(Unavailable("restarting"), Unavailable("restarting"), None))

    assert await cluster.produce() == PRODUCED


async def test_after_its_time_the_last_refusal_is_reported() -> None:
    cluster = Cluster("agent-2")
    other = cluster.agent("agent-2", Script(NotLeader("not me")))
    with pytest.raises(NotLeader, match="not me"):
        await cluster.produce(timeout_ms=2_000)

    assert cluster.clock.monotonic_ms() <= 2_000
    assert len(other.asked) > 3
    assert all(0 < asked["timeout_ms"] <= 2_000 for _, asked in other.asked)


@pytest.mark.parametrize("problem", [BatchTooLarge("no"), CorruptBatch("no"), OffsetOutOfRange("no"), NotFound("no")])
async def test_what_would_fail_anywhere_is_not_tried_again(problem: StreamHouseError) -> None:
    cluster = Cluster("agent-2")
    other = cluster.agent("agent-2", Script(problem))
    with pytest.raises(type(problem)):
        await cluster.produce(IDEMPOTENT)

    assert len(other.asked) == 1


# --- when it is not known what has happened ---


async def test_a_plain_batch_that_may_be_stored_is_not_sent_again() -> None:
    cluster = Cluster("agent-2", "agent-3")
    other = cluster.agent("agent-2", Script(OutcomeUnknown("lost")))
    successor = cluster.agent("agent-3")
    with pytest.raises(OutcomeUnknown):
        await cluster.produce(PLAIN)

    assert (len(other.asked), successor.asked) == (1, [])


async def test_a_plain_batch_that_may_be_stored_here_is_not_sent_to_the_new_leader() -> None:
    cluster = Cluster(AGENT, "agent-2")
    cluster.local.first = Script(OutcomeUnknown("deposed while it was written"))
    successor = cluster.agent("agent-2")
    with pytest.raises(OutcomeUnknown):
        await cluster.produce(PLAIN)

    assert successor.asked == []


async def test_an_idempotent_batch_that_may_be_stored_is_sent_again_as_it_was() -> None:
    cluster = Cluster("agent-2", "agent-3")
    cluster.agent("agent-2", Script(OutcomeUnknown("lost")))
    successor = cluster.agent("agent-3")

    assert await cluster.produce(IDEMPOTENT) == PRODUCED
    assert [asked["batch"] for _, asked in successor.asked] == [IDEMPOTENT]


async def test_refusals_after_a_lost_answer_do_not_make_the_outcome_known() -> None:
    cluster = Cluster("agent-2")
    cluster.agent("agent-2", Script(OutcomeUnknown("lost"), NotLeader("not me")))

    with pytest.raises(OutcomeUnknown, match="lost"):
        await cluster.produce(IDEMPOTENT, timeout_ms=2_000)


async def test_a_fetch_is_repeated_whatever_happened() -> None:
    cluster = Cluster("agent-2")
    cluster.agent("agent-2", Script(Unavailable("lost"), NotLeader("not me"), None))

    assert await cluster.forwarder.fetch(TOPIC, 1, 0, max_bytes=10) == FETCHED


async def test_a_time_is_looked_for_again_whatever_happened() -> None:
    cluster = Cluster("agent-2")
    cluster.agent("agent-2", Script(NotLeader("not me"), OutcomeUnknown("no answer"), Unavailable("not now"), None))

    assert await cluster.forwarder.offset_at(TOPIC, 1, LATEST) == FOUND


async def test_segments_are_replaced_whatever_happened_before_under_the_same_commit_id() -> None:
    cluster = Cluster("agent-2")
    lost, busy = OutcomeUnknown("no answer"), Unavailable("being replaced")
    other = cluster.agent("agent-2", Script(NotLeader("not me"), lost, busy, None))
    commit_id = UUID(int=5)

    await cluster.forwarder.replace_segments(TOPIC, 1, commit_id, ["a"], [NEW_SEGMENT])

    assert [asked["commit_id"] for _, asked in other.asked] == [commit_id] * 4


async def test_a_refusal_to_replace_segments_is_final() -> None:
    cluster = Cluster("agent-2")
    other = cluster.agent("agent-2", Script(StaleEpoch("they are gone")))

    with pytest.raises(StaleEpoch, match="they are gone"):
        await cluster.forwarder.replace_segments(TOPIC, 1, UUID(int=5), ["a"], [NEW_SEGMENT])
    assert len(other.asked) == 1


async def test_one_try_of_what_can_be_repeated_does_not_take_all_the_time() -> None:
    cluster = Cluster("agent-2")
    other = cluster.agent("agent-2")
    await cluster.produce(IDEMPOTENT, timeout_ms=60_000)
    await cluster.produce(PLAIN, timeout_ms=60_000)
    await cluster.forwarder.fetch(TOPIC, 1, 0, max_bytes=10, max_wait_ms=500, timeout_ms=60_000)

    idempotent, plain, fetch = (asked for _, asked in other.asked)
    assert idempotent["timeout_ms"] < 10_000
    assert plain["timeout_ms"] == 60_000
    assert (fetch["timeout_ms"] < 10_000, fetch["max_wait_ms"]) == (True, 500)
