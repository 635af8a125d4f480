"""The segments in the object store over REST: in lines, so many listings at once, and nothing but segments."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rest_parts.caller import RestCaller
from rest_parts.sending import send
from streamhouse.client.rest import RestClient
from streamhouse.model.errors import StorageUnavailable, Unavailable
from streamhouse.objects.faulty import Operation
from streamhouse.server.http.rest import stored_segments
from streamhouse.testing import Broker


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    with Broker(http=True, default_partitions=1) as broker:
        broker.create_topic("orders", 1)
        send(broker, "orders", partition=0, count=3)
        broker.flush()
        yield broker


@pytest.fixture
def rest(own_broker: Broker) -> RestCaller:
    return RestCaller(own_broker.endpoint)


def test_segments_are_lines_and_their_count_is_the_last(own_broker: Broker, rest: RestCaller) -> None:
    (segment,) = rest.get("topics/orders/partitions/0/segments")["segments"]
    own_broker._run(own_broker._objects.create("segments/other", [b"x"]))  # which is none
    answer = rest.call("GET", "segments")
    assert (answer.status, answer.content_type) == (200, "application/x-ndjson")
    first, last = map(json.loads, answer.body.splitlines())
    assert first["segment"] | {"modified_at_ms": 0} == {
        "key": segment["object_key"], "size_bytes": segment["size_bytes"], "modified_at_ms": 0
    }  # fmt: skip
    assert last == {"count": 1}
    prefix = segment["object_key"].rpartition("/")[0]
    assert len(rest.call("GET", f"segments?prefix={prefix}/").body.splitlines()) == 2
    assert rest.call("GET", "segments?prefix=segments/none").body == b'{"count":0}\n'


@pytest.mark.parametrize("prefix", ["", "wal/", "staging", "segment", "segments/../wal", "/segments/"])
def test_what_else_is_in_the_bucket_is_nobodys_business(rest: RestCaller, prefix: str) -> None:
    rest.refused(400, "invalid-input", "GET", f"segments?prefix={prefix}")


def test_a_store_that_fails_is_the_last_line(own_broker: Broker) -> None:
    own_broker._objects.fail(Operation.LIST, times=None)
    with RestClient(own_broker.endpoint) as client, pytest.raises((Unavailable, StorageUnavailable)):
        list(client.stored_segments("segments/"))


def test_only_so_many_list_the_bucket_at_once(rest: RestCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_segments, "_AT_ONCE", 0)
    rest.refused(503, "unavailable", "GET", "segments")
