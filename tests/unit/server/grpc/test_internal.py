"""The service between nodes and its client: what is asked arrives, what goes wrong comes back as what it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

import pytest

from log_parts.engines import finishes
from log_parts.waiting import until
from peers.scripted import (
    FETCHED,
    FOUND,
    HUNG_MS,
    NEW_SEGMENT,
    PARTITION,
    PRODUCED,
    WAL,
    WORK,
    ScriptedPeer,
    asking,
    connected,
    forever,
    listening,
    raises,
)
from services.proxy import proxy_before
from streamhouse.client.internal import PeerClient
from streamhouse.client.peer import ANY_EPOCH, LATEST, Fetched
from streamhouse.model import errors
from streamhouse.model.errors import BatchTooLarge, NotLeader, OutcomeUnknown, StreamHouseError, Unavailable
from streamhouse.wire.grpc import error_kinds
from streamhouse.wire.grpc import internal_pb2 as pb


@asynccontextmanager
async def asking_in_vain(peer: ScriptedPeer) -> AsyncIterator[PeerClient]:
    """A client of a peer that no longer answers, over a connection that stands: to make one may take longer than the
    call may."""
    async with asking(peer) as client:
        await client.flush(PARTITION, timeout_ms=HUNG_MS)
        peer.asked.clear()
        peer.first = forever
        yield client


# --- what is asked arrives ---


async def test_a_produce_arrives_as_it_was_sent_and_its_answer_comes_back() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        produced = await client.produce(PARTITION, memoryview(b"\x00batch\xff"), leader_epoch=5, timeout_ms=HUNG_MS)

    ((what, options),) = peer.asked
    assert produced == PRODUCED
    assert (what, options["partition"], options["batch"]) == ("produce", PARTITION, b"\x00batch\xff")
    assert options["leader_epoch"] == 5


async def test_a_produce_goes_to_any_epoch_unless_one_is_named() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS)

    assert peer.asked[0][1]["leader_epoch"] == ANY_EPOCH


async def test_a_fetch_arrives_as_it_was_sent_and_its_answer_comes_back() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        fetched = await client.fetch(PARTITION, 17, max_bytes=1_000, min_bytes=10, max_wait_ms=500, timeout_ms=HUNG_MS)

    ((_, options),) = peer.asked
    assert fetched == FETCHED
    assert (options["partition"], options["offset"]) == (PARTITION, 17)
    assert (options["max_bytes"], options["min_bytes"], options["max_wait_ms"]) == (1_000, 10, 500)


async def test_a_time_arrives_and_what_is_at_it_comes_back() -> None:
    peer = ScriptedPeer()
    nothing = ScriptedPeer(found=replace(FOUND, offset=None))
    async with asking(peer) as client, asking(nothing) as other:
        found = await client.offset_at(PARTITION, LATEST, timeout_ms=HUNG_MS)
        not_found = await other.offset_at(PARTITION, 2**40, timeout_ms=HUNG_MS)

    ((what, options),) = peer.asked
    assert (found, not_found) == (FOUND, nothing.found)
    assert (what, options["partition"], options["timestamp_ms"]) == ("offset_at", PARTITION, LATEST)


async def test_segments_to_replace_arrive_as_they_were_sent() -> None:
    peer = ScriptedPeer()
    commit_id = uuid4()
    async with asking(peer) as client:
        await client.replace_segments(PARTITION, commit_id, ["a", "b"], [NEW_SEGMENT] * 2, timeout_ms=HUNG_MS)

    ((what, options),) = peer.asked
    assert (what, options["partition"], options["commit_id"]) == ("replace_segments", PARTITION, commit_id)
    assert (options["removed"], options["added"]) == (["a", "b"], [NEW_SEGMENT] * 2)


async def test_segments_that_may_have_been_replaced_are_reported_as_such() -> None:
    async with asking_in_vain(ScriptedPeer()) as client:
        with pytest.raises(OutcomeUnknown):
            await client.replace_segments(PARTITION, uuid4(), ["a"], [NEW_SEGMENT], timeout_ms=200)


async def test_a_flush_and_a_nudge_arrive() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        assert await client.flush(PARTITION, timeout_ms=HUNG_MS) == 12
        await client.nudge_transfers(timeout_ms=HUNG_MS)

    assert [what for what, _ in peer.asked] == ["flush", "nudge_transfers"]
    assert peer.asked[0][1]["partition"] == PARTITION


async def test_what_a_node_has_done_is_told_as_it_is() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        assert await client.work(timeout_ms=HUNG_MS) == WORK
        assert await client.wal(timeout_ms=HUNG_MS) == WAL


async def test_a_message_as_large_as_the_largest_request_passes() -> None:
    peer = ScriptedPeer(fetched=Fetched(batches=b"r" * 2**20, high_watermark=1, log_start_offset=0, leader_epoch=1))
    batch = b"b" * 2**20
    async with asking(peer, max_request_bytes=2**20, max_message_bytes=2**20) as client:
        await client.produce(PARTITION, batch, timeout_ms=HUNG_MS)
        fetched = await client.fetch(PARTITION, 0, max_bytes=2**20, timeout_ms=HUNG_MS)

    assert peer.asked[0][1]["batch"] == batch
    assert len(fetched.batches) == 2**20


async def test_many_calls_share_one_connection_and_run_side_by_side() -> None:
    release = asyncio.Event()
    peer = ScriptedPeer(first=lambda: release.wait())
    async with asking(peer) as client:
        calls = [asyncio.ensure_future(client.flush(PARTITION, timeout_ms=HUNG_MS)) for _ in range(50)]
        await until(lambda: len(peer.asked) == 50, "all calls are under way")
        release.set()

        assert await asyncio.gather(*calls) == [12] * 50


# --- what goes wrong comes back ---


@pytest.mark.parametrize("kind", error_kinds._KINDS, ids=lambda kind: kind.__name__)
async def test_every_error_comes_back_as_the_same_class_with_the_same_words(kind: type[StreamHouseError]) -> None:
    async with asking(ScriptedPeer(first=raises(kind("it happened", hint="mend it")))) as client:
        with pytest.raises(StreamHouseError) as caught:
            await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS)

    assert type(caught.value) is kind
    assert str(caught.value) == "it happened (mend it)"


async def test_an_error_of_a_class_that_peers_do_not_know_comes_back_as_the_class_above_it() -> None:
    class Special(NotLeader):
        pass

    async with asking(ScriptedPeer(first=raises(Special("not me")))) as client:
        with pytest.raises(NotLeader, match="not me"):
            await client.flush(PARTITION, timeout_ms=HUNG_MS)


@pytest.mark.parametrize("text", ["Grüße \U0001f30d\ud800", "x" * 100_000, "line\nbreak\0"])
async def test_no_message_is_too_long_or_too_strange_to_come_back(text: str) -> None:
    async with asking(ScriptedPeer(first=raises(NotLeader(text)))) as client:
        with pytest.raises(NotLeader):
            await client.flush(PARTITION, timeout_ms=HUNG_MS)


async def test_a_bug_there_is_an_error_here_that_does_not_show_its_insides(caplog: pytest.LogCaptureFixture) -> None:
    async with asking(ScriptedPeer(first=raises(RuntimeError("secret")))) as client:
        with pytest.raises(StreamHouseError) as caught:
            await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS)

    assert type(caught.value) is StreamHouseError
    assert "secret" not in str(caught.value)
    assert "secret" in caplog.text


async def test_a_batch_larger_than_peers_take_is_refused_before_it_is_sent() -> None:
    peer = ScriptedPeer()
    async with listening(peer) as port, connected(port, max_message_bytes=1_000) as client:
        with pytest.raises(BatchTooLarge):
            await client.produce(PARTITION, b"b" * 1_000, timeout_ms=HUNG_MS)

    assert peer.asked == []


async def test_a_batch_larger_than_this_peer_takes_is_refused_by_it_and_surely_not_stored() -> None:
    peer = ScriptedPeer()
    async with asking(peer, max_request_bytes=2**18, max_message_bytes=2**18) as client:
        with pytest.raises(Unavailable, match="larger than max") as caught:
            await client.produce(PARTITION, b"b" * 2**20, timeout_ms=HUNG_MS)

        assert not isinstance(caught.value, OutcomeUnknown)
        assert await client.produce(PARTITION, b"b" * 2**17, timeout_ms=HUNG_MS) == PRODUCED
    assert len(peer.asked) == 1


async def test_more_calls_than_the_peer_takes_at_once_are_refused_and_surely_did_nothing() -> None:
    release = asyncio.Event()
    peer = ScriptedPeer(first=lambda: release.wait())
    async with asking(peer, max_calls=2) as client:
        calls = [asyncio.ensure_future(client.flush(PARTITION, timeout_ms=HUNG_MS)) for _ in range(2)]
        await until(lambda: len(peer.asked) == 2, "both calls are under way")

        with pytest.raises(Unavailable) as caught:
            await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS)
        release.set()

        assert not isinstance(caught.value, OutcomeUnknown)
        assert await asyncio.gather(*calls) == [12, 12]
        assert await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS) == PRODUCED


# --- deadlines and cancellation ---


async def test_a_peer_that_does_not_answer_in_time_is_unavailable_and_stops_working_on_it() -> None:
    peer = ScriptedPeer()
    async with asking_in_vain(peer) as client:
        with pytest.raises(Unavailable) as caught:
            await finishes(client.flush(PARTITION, timeout_ms=300), "the flush")

        assert not isinstance(caught.value, OutcomeUnknown)
        # On a slow machine the time may be over before the peer is asked at all.
        await until(lambda: peer.cancelled == len(peer.asked), "the peer has heard")


async def test_a_produce_that_is_not_answered_in_time_may_have_been_stored() -> None:
    async with asking_in_vain(ScriptedPeer()) as client:
        with pytest.raises(OutcomeUnknown):
            await finishes(client.produce(PARTITION, b"batch", timeout_ms=300), "the produce")


async def test_a_handler_has_a_little_less_time_than_its_caller_waits() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        await client.flush(PARTITION, timeout_ms=5_000)
        await client.fetch(PARTITION, 0, max_bytes=1, max_wait_ms=3_000, timeout_ms=5_000)

    (_, flush), (_, fetch) = peer.asked
    assert 0 < flush["timeout_ms"] < 5_000
    assert fetch["max_wait_ms"] == 3_000
    assert 0 < fetch["timeout_ms"] < 5_000


async def test_a_wait_never_takes_longer_than_the_call_may() -> None:
    peer = ScriptedPeer()
    async with asking(peer) as client:
        named = pb.Partition(topic_id=PARTITION.topic_id.bytes, number=PARTITION.partition)
        await client._fetch(pb.FetchRequest(partition=named, max_wait_ms=2**32 - 1), timeout=5)

    ((_, fetch),) = peer.asked
    assert fetch["max_wait_ms"] + fetch["timeout_ms"] < 5_000


async def test_a_call_that_is_cancelled_here_is_cancelled_there() -> None:
    peer = ScriptedPeer(first=forever)
    async with asking(peer) as client:
        call = asyncio.ensure_future(client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS))
        await until(lambda: peer.asked, "the call is under way")
        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: peer.cancelled == 1, "the peer has heard")
        peer.first = None
        assert await client.flush(PARTITION, timeout_ms=HUNG_MS) == 12


# --- connections ---


async def test_where_nobody_listens_is_unavailable_at_once() -> None:
    async with listening(ScriptedPeer()) as port:
        pass
    async with connected(port) as client:
        with pytest.raises(Unavailable) as caught:
            await finishes(client.produce(PARTITION, b"batch", timeout_ms=60_000), "the refusal")

    assert not isinstance(caught.value, OutcomeUnknown)
    assert str(port) in str(caught.value)


async def test_a_port_that_accepts_and_says_nothing_is_unavailable_after_the_connect_timeout() -> None:
    silent = await asyncio.start_server(lambda reader, writer: forever(), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with connected(port, connect_timeout_ms=200) as client:
        with pytest.raises(Unavailable) as caught:
            await finishes(client.produce(PARTITION, b"batch", timeout_ms=60_000), "the connect time-out")
    silent.close()

    assert not isinstance(caught.value, OutcomeUnknown)


async def test_a_port_that_speaks_something_else_is_unavailable() -> None:
    async def shout(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    other = await asyncio.start_server(shout, "127.0.0.1", 0)
    async with connected(other.sockets[0].getsockname()[1], connect_timeout_ms=500) as client:
        with pytest.raises(Unavailable):
            await finishes(client.flush(PARTITION, timeout_ms=60_000), "the refusal")
    other.close()


async def test_a_peer_that_was_started_again_at_its_address_is_found_again() -> None:
    async with listening(ScriptedPeer()) as port:
        client = connected(port)
        opened = await client.__aenter__()
        await opened.flush(PARTITION, timeout_ms=HUNG_MS)
    with pytest.raises(Unavailable):
        await opened.flush(PARTITION, timeout_ms=HUNG_MS)

    async with listening(ScriptedPeer(), port=port):

        async def answers() -> None:
            while True:
                try:
                    await opened.flush(PARTITION, timeout_ms=HUNG_MS)
                except Unavailable:
                    await asyncio.sleep(0.01)
                else:
                    return

        await finishes(answers(), "the connection is made again")
    await client.__aexit__(None, None, None)


async def test_a_produce_whose_answer_is_lost_may_have_been_stored_and_a_fetch_is_just_unavailable() -> None:
    peer = ScriptedPeer(first=forever)
    async with listening(peer) as port, proxy_before(port) as proxy, connected(proxy.port) as client:
        produce = asyncio.ensure_future(client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS))
        fetch = asyncio.ensure_future(client.fetch(PARTITION, 0, max_bytes=1, timeout_ms=HUNG_MS))
        await until(lambda: len(peer.asked) == 2, "both calls are under way")
        proxy.cut()

        with pytest.raises(OutcomeUnknown):
            await finishes(produce, "the produce")
        with pytest.raises(Unavailable) as caught:
            await finishes(fetch, "the fetch")
        assert not isinstance(caught.value, OutcomeUnknown)


async def test_calls_under_way_when_the_client_is_closed_fail_and_are_not_cancelled() -> None:
    peer = ScriptedPeer(first=forever)
    async with asking(peer) as client:
        call = asyncio.ensure_future(client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS))
        await until(lambda: peer.asked, "the call is under way")
        await client.close()

        with pytest.raises(OutcomeUnknown):
            await finishes(call, "the call")
        with pytest.raises(Unavailable):
            await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS)


async def test_a_client_can_be_closed_while_it_connects() -> None:
    silent = await asyncio.start_server(lambda reader, writer: forever(), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with connected(port) as client:
        call = asyncio.ensure_future(client.flush(PARTITION, timeout_ms=HUNG_MS))
        await asyncio.sleep(0)
        await client.close()

        with pytest.raises(Unavailable):
            await finishes(call, "the call")
    silent.close()


def test_the_errors_that_peers_may_see_are_all_there() -> None:
    known = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StreamHouseError)}

    assert known <= set(error_kinds._KINDS)
