"""Consumer groups over REST: seen from outside, moved, and read as a member whom the node keeps between requests."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from node.wait import eventually
from rest_parts.caller import API, RestCaller
from rest_parts.sending import send
from streamhouse.client.address import parse_bootstrap
from streamhouse.model.errors import Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.server.http.rest.group_sessions import GroupSessions
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.testing import Broker
from streamhouse.wire.http.rest.groups import JoinRequest

LONG_MS = 30_000


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


class Member:
    """A caller that is a member of a group."""

    def __init__(self, rest: RestCaller, group: str, topic: str, **asked: object) -> None:
        self._rest = rest
        self.joined = rest.post(f"groups/{group}/members", {"topics": [topic], "reset": "earliest"} | asked, status=201)
        self.path = f"groups/{group}/members/{self.joined['member_id']}"

    def poll(self, **asked: object) -> Any:
        return self._rest.post(f"{self.path}/poll", asked)

    def read(self, count: int) -> list[tuple[int, int]]:
        """So many records, by partition and offset."""
        records: list[Any] = []

        def more() -> bool:
            records.extend(self.poll()["records"])
            return len(records) >= count

        eventually(more, f"{count} records")
        assert len(records) == count
        return sorted((record["partition"], record["offset"]) for record in records)

    def commit(self, *offsets: dict[str, object]) -> None:
        self._rest.post(f"{self.path}/commit", {"offsets": list(offsets)} if offsets else {}, status=204)

    def leave(self) -> None:
        self._rest.delete(self.path)


def committed(rest: RestCaller, group: str) -> dict[int, int]:
    partitions = rest.get(f"groups/{group}")["partitions"]
    return {each["partition"]: each["committed_offset"] for each in partitions if each["committed_offset"] is not None}


def a_group() -> str:
    return f"group-{uuid4().hex[:8]}"


def test_a_member_reads_all_commits_it_and_its_successor_goes_on_there(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    group = a_group()
    send(broker, topic, partition=0, count=3)
    send(broker, topic, partition=1, count=2)
    first = Member(rest, group, topic)
    assert first.joined["assignment"] == [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 1}]
    assert first.read(5) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    first.commit()
    assert committed(rest, group) == {0: 3, 1: 2}
    first.leave()
    rest.refused(404, "not-found", "POST", f"{first.path}/poll", {})
    send(broker, topic, partition=1, count=1)
    assert Member(rest, group, topic).read(1) == [(1, 2)]


def test_records_have_their_topic_and_are_shown_as_asked(broker: Broker, rest: RestCaller, topic: str) -> None:
    send(broker, topic, partition=0, count=1)
    member = Member(rest, a_group(), topic)
    (record,) = eventually(lambda: member.poll(value_format="base64")["records"], "a record")
    assert (record["topic"], record["partition"], record["offset"]) == (topic, 0, 0)
    assert (record["key"], record["value"], record["value_format"]) == (None, "MA==", "base64")


def test_what_was_not_committed_is_read_again(broker: Broker, rest: RestCaller, topic: str) -> None:
    group = a_group()
    send(broker, topic, partition=0, count=4)
    member = Member(rest, group, topic)
    member.read(4)
    member.commit({"topic": topic, "partition": 0, "offset": 1})
    member.leave()
    assert Member(rest, group, topic).read(3) == [(0, 1), (0, 2), (0, 3)]


def test_members_share_the_partitions_and_take_over_from_who_leaves(rest: RestCaller, topic: str) -> None:
    group = a_group()
    first, second = Member(rest, group, topic), Member(rest, group, topic)

    def assigned(member: Member) -> list[int]:
        return [each["partition"] for each in member.poll(max_wait_ms=0)["assignment"]]

    eventually(lambda: sorted(assigned(first) + assigned(second)) == [0, 1] and assigned(first), "one each")
    second.leave()
    eventually(lambda: assigned(first) == [0, 1], "all with the one that stayed")


def test_a_commit_of_a_partition_that_is_anothers_is_refused(rest: RestCaller, topic: str) -> None:
    member = Member(rest, a_group(), topic)
    offsets = {"offsets": [{"topic": topic, "partition": 7, "offset": 0}]}
    rest.refused(409, "stale-generation", "POST", f"{member.path}/commit", offsets)
    twice = {"offsets": [{"topic": topic, "partition": 0, "offset": 0}] * 2}
    rest.refused(400, "invalid-input", "POST", f"{member.path}/commit", twice)


def test_a_poll_waits_for_the_first_record(broker: Broker, rest: RestCaller, topic: str) -> None:
    member = Member(rest, a_group(), topic)
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(member.poll, max_wait_ms=LONG_MS)
        send(broker, topic, partition=1, count=1)
        assert [record["offset"] for record in polling.result()["records"]] == [0]


def test_a_member_seeks_to_a_time_and_to_an_offset(broker: Broker, rest: RestCaller, topic: str) -> None:
    for at in range(4):
        send(broker, topic, partition=0, count=1, timestamp_ms=1000 * at)
    member = Member(rest, a_group(), topic)
    member.read(4)
    sought = rest.post(f"{member.path}/seek", {"timestamp_ms": 1500})["offsets"]
    # Where there is no such record, the end.
    assert {each["partition"]: each["offset"] for each in sought} == {0: 2, 1: 0}
    assert member.read(2) == [(0, 2), (0, 3)]
    rest.post(f"{member.path}/seek", {"offsets": [{"topic": topic, "partition": 0, "offset": 3}]})
    assert member.read(1) == [(0, 3)]
    rest.refused(400, "invalid-input", "POST", f"{member.path}/seek", {})
    both = {"timestamp_ms": 1, "offsets": []}
    rest.refused(400, "invalid-input", "POST", f"{member.path}/seek", both)


def test_who_hangs_up_during_a_poll_does_not_lose_its_records(
    broker: Broker, rest: RestCaller, topic: str, connect: Callable[[], socket.socket]
) -> None:
    member = Member(rest, a_group(), topic)
    body = json.dumps({"max_wait_ms": LONG_MS}).encode()
    connection = connect()
    connection.sendall(
        f"POST {API}/{member.path}/poll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Streamhouse-Member-Secret: {member.joined['member_secret']}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    _wait_for_poll(broker, member)
    connection.close()
    connections = broker.node.doors.http._listener._server.server_state.connections
    eventually(lambda: not connections, "the end of the connection")
    send(broker, topic, partition=0, count=2)
    assert member.read(2) == [(0, 0), (0, 1)]
    member.leave()


def test_a_member_that_leaves_ends_its_own_poll(broker: Broker, rest: RestCaller, topic: str) -> None:
    member = Member(rest, a_group(), topic)
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(rest.refused, 404, "not-found", "POST", f"{member.path}/poll", {"max_wait_ms": LONG_MS})
        _wait_for_poll(broker, member)
        member.leave()
        assert "keeps no member" in polling.result()["detail"]


def test_a_member_that_asks_for_nothing_is_taken_out(topic: str) -> None:
    with Broker(http=True) as broker:
        broker.create_topic(topic, 1)
        rest = RestCaller(broker.endpoint)
        idle = Member(rest, "idle", topic, max_idle_ms=5_000)
        busy = Member(rest, "busy", topic, max_idle_ms=60_000)
        broker.faults.pass_time(10_000)  # less than a lease lasts
        # To ask for the member itself would keep it.
        eventually(lambda: not rest.get("groups/idle")["members"], "the end of the idle member")
        rest.refused(404, "not-found", "GET", idle.path)
        assert rest.get(busy.path)["member_id"] == busy.joined["member_id"]


def test_members_leave_when_their_node_is_stopped(broker: Broker, topic: str) -> None:
    async def join_and_stop() -> None:
        sessions = GroupSessions(parse_bootstrap(broker.bootstrap)[0], SystemClock())
        await sessions.join(group, JoinRequest(topics=[topic]))
        assert len(rest.get(f"groups/{group}")["members"]) == 1
        await sessions.close()

    rest, group = RestCaller(broker.endpoint), a_group()
    asyncio.run(join_and_stop())
    assert rest.get(f"groups/{group}")["members"] == []


def test_a_node_keeps_so_many_members_and_no_more(broker: Broker, topic: str) -> None:
    async def join_twice() -> None:
        sessions = GroupSessions(parse_bootstrap(broker.bootstrap)[0], SystemClock(), max_sessions=1)
        try:
            joined = await sessions.join("bounded", JoinRequest(topics=[topic]))
            with pytest.raises(Unavailable):
                await sessions.join("bounded", JoinRequest(topics=[topic]))
            await sessions.leave("bounded", joined.consumer.member_id, joined.secret.text)
            await sessions.join("bounded", JoinRequest(topics=[topic]))
        finally:
            await sessions.close()

    asyncio.run(join_twice())


def test_who_joins_must_name_topics_that_there_are(rest: RestCaller, topic: str) -> None:
    rest.refused(404, "not-found", "POST", "groups/any/members", {"topics": [topic, "no-such-topic"]})
    rest.refused(400, "malformed-request", "POST", "groups/any/members", {"topics": []})
    rest.refused(400, "malformed-request", "POST", "groups/any/members", {"topics": [topic], "max_idle_ms": 1})
    rest.refused(404, "not-found", "GET", "groups/any/members/nobody")
    rest.refused(404, "not-found", "DELETE", "groups/any/members/nobody")


def test_who_has_only_read_a_members_id_does_not_act_as_that_member(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    group = a_group()
    member = Member(rest, group, topic)
    stranger = RestCaller(broker.endpoint)
    (seen,) = stranger.get(f"groups/{group}")["members"]
    path = f"groups/{group}/members/{seen['member_id']}"
    asked: list[tuple[str, str, object]] = [
        ("GET", path, None),
        ("POST", f"{path}/poll", {"max_wait_ms": 0}),
        ("POST", f"{path}/commit", {"offsets": [{"topic": topic, "partition": 0, "offset": 1}]}),
        ("POST", f"{path}/seek", {"timestamp_ms": 0}),
        ("DELETE", path, None),
    ]
    for method, at, body in asked:
        assert "secret" in stranger.refused(400, "invalid-input", method, at, body)["detail"]
        wrong = stranger.call(method, at, body, headers={"Streamhouse-Member-Secret": "wr\u00f6ng"})
        assert wrong.status == 400
    assert "member_secret" not in seen
    assert rest.get(member.path)["member_secret"] is None, "told once, to whoever joined"
    member.poll(max_wait_ms=0)
    member.leave()


def test_a_groups_description_has_its_members_and_its_lag(broker: Broker, rest: RestCaller, topic: str) -> None:
    group = a_group()
    send(broker, topic, partition=0, count=5)
    member = Member(rest, group, topic, client_id="reader-1")
    member.read(5)
    member.commit({"topic": topic, "partition": 0, "offset": 2})
    described = rest.get(f"groups/{group}")
    assert (described["group_id"], described["type"], described["lag"]) == (group, "consumer", 3)
    (seen,) = described["members"]
    assert (seen["member_id"], seen["client_id"]) == (member.joined["member_id"], "reader-1")
    assert seen["partitions"] == [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 1}]
    first, second = described["partitions"]
    assert (first["committed_offset"], first["end_offset"], first["lag"]) == (2, 5, 3)
    assert (second["committed_offset"], second["lag"], second["member_id"]) == (None, None, seen["member_id"])
    assert group in [each["group_id"] for each in rest.get("groups")["groups"]]
    rest.refused(404, "not-found", "GET", "groups/nobodys")
    member.leave()


def test_the_lag_of_a_group_is_not_known_where_records_are_of_which_it_has_committed_nothing(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    group = a_group()
    send(broker, topic, partition=0, count=3)
    member = Member(rest, group, topic)
    first, second = rest.get(f"groups/{group}")["partitions"]
    assert (first["log_start_offset"], first["end_offset"], first["lag"]) == (0, 3, None)
    assert (second["log_start_offset"], second["end_offset"], second["lag"]) == (0, 0, None)
    assert rest.get(f"groups/{group}")["lag"] is None
    member.read(3)
    member.commit({"topic": topic, "partition": 0, "offset": 3})
    assert rest.get(f"groups/{group}")["lag"] == 0, "of the other there is nothing to read"
    send(broker, topic, partition=1, count=1)
    assert rest.get(f"groups/{group}")["lag"] is None
    member.leave()
    assert rest.get(f"groups/{group}")["lag"] == 0, "the other is nobody's now"


def test_where_a_log_ends_and_how_far_behind_a_group_is_are_not_known_of_agents_that_were_never_heard(
    broker: Broker, rest: RestCaller, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = a_group()
    rest.post(f"groups/{group}/reset", {"to": "latest", "topics": [topic]})
    monkeypatch.setattr(KnownEnds, "unheard", lambda _, placement: "a2" if placement.partition.partition else None)
    described = rest.get(f"groups/{group}")
    heard, unheard = described["partitions"]
    assert (heard["committed_offset"], heard["end_offset"], heard["lag"]) == (0, 0, 0)
    assert (unheard["committed_offset"], unheard["end_offset"], unheard["lag"]) == (0, None, None)
    assert described["lag"] is None


def test_a_reset_moves_a_group_once_it_has_no_members(broker: Broker, rest: RestCaller, topic: str) -> None:
    group = a_group()
    for at in range(4):
        send(broker, topic, partition=0, count=1, timestamp_ms=1000 * at)
    member = Member(rest, group, topic)
    member.read(4)
    member.commit()
    for dry_run in (True, False):  # a dry run must not promise what would be refused
        asked = {"to": "earliest", "dry_run": dry_run}
        refused = rest.refused(400, "invalid-input", "POST", f"groups/{group}/reset", asked)
        assert "has members" in refused["detail"]
    rest.refused(400, "invalid-input", "DELETE", f"groups/{group}")
    member.leave()

    def reset(**asked: object) -> dict[int, tuple[int | None, int | None]]:
        answer = rest.post(f"groups/{group}/reset", asked)
        assert (answer["group_id"], answer["dry_run"]) == (group, asked.get("dry_run", False))
        return {each["partition"]: (each["old_offset"], each["new_offset"]) for each in answer["partitions"]}

    assert reset(to="earliest", dry_run=True)[0] == (4, 0)
    assert committed(rest, group)[0] == 4
    assert reset(to="time", timestamp_ms=1500)[0] == (4, 2)
    assert reset(to="shift", shift_by=-1)[0] == (2, 1)
    assert reset(to="offset", offset=3)[0] == (1, 3)
    assert reset(to="offset", offset=1000, topics=[topic])[0] == (3, 4)
    assert reset(to="latest")[0] == (4, 4)
    assert committed(rest, group)[0] == 4
    rest.delete(f"groups/{group}")
    rest.refused(404, "not-found", "GET", f"groups/{group}")
    rest.refused(404, "not-found", "DELETE", f"groups/{group}")


@pytest.mark.parametrize(
    "asked",
    [
        {"to": "offset"},
        {"to": "time"},
        {"to": "shift"},
        {"to": "earliest", "offset": 3},
        {"to": "time", "timestamp_ms": 1, "shift_by": 1},
        {"to": "latest"},
    ],
)
def test_a_reset_that_says_too_little_or_too_much_is_refused(rest: RestCaller, asked: dict[str, object]) -> None:
    """The last one: of a group that committed nothing, so that nobody knows of which topics."""
    rest.refused(400, "invalid-input", "POST", f"groups/{a_group()}/reset", asked)


def test_a_group_that_is_not_there_yet_can_be_given_a_place_to_start(rest: RestCaller, topic: str) -> None:
    group = a_group()
    rest.post(f"groups/{group}/reset", {"to": "latest", "topics": [topic]})
    assert committed(rest, group) == {0: 0, 1: 0}
    rest.refused(404, "not-found", "POST", f"groups/{group}/reset", {"to": "latest", "topics": ["no-such-topic"]})


def test_a_group_is_shared_with_members_of_the_older_protocol(broker: Broker, rest: RestCaller, topic: str) -> None:
    from confluent_kafka import Consumer

    group = a_group()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) is None and consumer.assignment(), "the classic member")
        member = Member(rest, group, topic)

        def shared() -> bool:
            """One partition for each of the two."""
            consumer.poll(0.1)
            return len(consumer.assignment()) == len(member.poll(max_wait_ms=0)["assignment"]) == 1

        eventually(shared, "a partition for each")
        assert rest.get(f"groups/{group}")["type"] == "consumer"
    finally:
        consumer.close()


@pytest.mark.parametrize(
    "name", ["x" * 250, "a%00b", "%27%3B%20DROP%20TABLE%20groups", "<script>", "%ED%A0%80", "../x"]
)
def test_a_hostile_group_name_finds_nothing_and_breaks_nothing(rest: RestCaller, name: str) -> None:
    answer = rest.call("GET", f"groups/{name.replace('<', '%3C').replace('>', '%3E')}")
    assert answer.status in (400, 404)
    assert answer.json
    assert rest.call("GET", "/health/live").status == 200


def _wait_for_poll(broker: Broker, member: Member) -> None:
    sessions = broker.node.doors.http._rest._admin._sessions._sessions
    (session,) = (each for (_, member_id), each in sessions.items() if member_id == member.joined["member_id"])
    eventually(session.consumer._polling.locked, "the poll")
