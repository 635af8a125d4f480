"""Staging, adoption and abandonment over HTTP, as a sink's driver and tasks ask for them."""

from __future__ import annotations

import urllib.request
from uuid import uuid4

import pytest

from log_parts.batches import real
from streamhouse.client.planning import PlanningClient
from streamhouse.format.object_keys import manifest_key, staged_object_key
from streamhouse.format.records import decode_records
from streamhouse.model.errors import InvalidInput, NotFound, StreamHouseError
from streamhouse.testing import Broker
from streamhouse.wire.http.planning import AdoptRequest, StagedObject, StagedRun


def stage(client: PlanningClient, sink_id: str, topic: str, *values: bytes) -> StagedObject:
    """By URL, as executors without keys do."""
    key = staged_object_key(sink_id, 0, 0, uuid4())
    (url,) = client.stage([key])
    data = bytes(real(*values))
    with urllib.request.urlopen(urllib.request.Request(url, data, method="PUT")) as answer:
        assert answer.status == 201
    run = StagedRun(topic=topic, partition=1, start_byte=0, end_byte=len(data), record_count=len(values))
    return StagedObject(key=key, runs=[run])


def values_in(client: PlanningClient, topic: str) -> list[bytes | None]:
    return [record.value for record in decode_records(client.tail(topic, 1, 0, 2**20))]


def test_what_was_staged_is_adopted_once(broker: Broker, client: PlanningClient) -> None:
    broker.create_topic("adopted", 2)
    first, second = (stage(client, "once", "adopted", b"a", b"b") for _ in range(2))
    answer = client.adopt(AdoptRequest(sink_id="once", batch_id=0, objects=[first]))
    assert (answer.is_repeat, answer.record_count) == (False, 2)
    answer = client.adopt(AdoptRequest(sink_id="once", batch_id=0, objects=[second]))
    assert (answer.is_repeat, answer.record_count) == (True, 2)
    assert values_in(client, "adopted") == [b"a", b"b"]


def test_what_was_abandoned_is_not_adopted(broker: Broker, client: PlanningClient) -> None:
    broker.create_topic("abandoned", 2)
    staged = stage(client, "given-up", "abandoned", b"a")
    client.abandon([staged.key])
    with pytest.raises(NotFound, match="run the batch again"):
        client.adopt(AdoptRequest(sink_id="given-up", batch_id=0, objects=[staged]))
    assert values_in(client, "abandoned") == []


def test_a_manifest_is_not_for_clients_to_write(broker: Broker, client: PlanningClient) -> None:
    """It says which bytes of which objects become records, and of which topics."""
    with pytest.raises(InvalidInput):
        client.stage([manifest_key("forger", 0, uuid4())])
    broker.create_topic("forged", 2)
    staged = stage(client, "forger", "forged", b"a")
    manifest = StagedObject(key=manifest_key("forger", 0, uuid4()), runs=staged.runs)
    with pytest.raises(InvalidInput):
        client.adopt(AdoptRequest(sink_id="forger", batch_id=0, objects=[manifest]))
    assert values_in(client, "forged") == []


def test_garbage_is_given_up_for_good_and_its_caller_is_told(broker: Broker, client: PlanningClient) -> None:
    broker.create_topic("soiled", 2)
    key = staged_object_key("messy", 0, 0, uuid4())
    (url,) = client.stage([key])
    with urllib.request.urlopen(urllib.request.Request(url, bytes(200), method="PUT")):
        pass
    run = StagedRun(topic="soiled", partition=1, start_byte=0, end_byte=200, record_count=1)
    request = AdoptRequest(sink_id="messy", batch_id=0, objects=[StagedObject(key=key, runs=[run])])
    with pytest.raises(StreamHouseError, match="record batches"):
        client.adopt(request)
    with pytest.raises(InvalidInput, match="given up"):
        client.adopt(request)
    assert values_in(client, "soiled") == []


@pytest.mark.parametrize("key", ["segments/x", "staging/x", "staging/../x", "wal/x"])
def test_other_objects_cannot_be_staged_or_abandoned(client: PlanningClient, key: str) -> None:
    with pytest.raises(InvalidInput):
        client.stage([key])
    with pytest.raises(InvalidInput):
        client.abandon([key])
