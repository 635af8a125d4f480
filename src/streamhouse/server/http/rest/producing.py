"""Records in: one or many in a request, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from starlette.responses import Response

from streamhouse.broker import records
from streamhouse.model.errors import BatchTooLarge, InvalidInput, NotFound, StreamHouseError, Unavailable
from streamhouse.model.topic import Topic
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.registry import API, Call, Rest, respond
from streamhouse.wire.http.rest.formats import bytes_of, headers_of
from streamhouse.wire.http.rest.plain_records import plain_columns, stored_run
from streamhouse.wire.http.rest.problems import problem_of
from streamhouse.wire.http.rest.records import ProduceAnswer, ProduceRecord, ProduceRequest, ProduceResult

Outcome = records.StoredRecord | StreamHouseError
_MANY = 8
"""From so many on it is worth a look whether they are alike."""

_BODY_EXAMPLE = {
    "records": [
        {"key": "customer-7", "value": {"amount": 3, "currency": "EUR"}, "headers": {"trace": "a1b2"}},
        {"value": "AAEC", "value_format": "base64", "partition": 0, "timestamp_ms": 1767225600000},
    ]
}
_ANSWER_EXAMPLE = {
    "records": [
        {"partition": 2, "offset": 41, "timestamp_ms": 1767225600123},
        {"partition": 0, "offset": 7, "timestamp_ms": 1767225600000},
    ]
}


def add_producing(rest: Rest, context: DoorContext) -> None:
    producing = _Producing(context)
    rest.route(
        "POST",
        f"{API}/topics/{{topic}}/records",
        producing.produce,
        summary="Store records",
        description="One or many. Keys are text and values JSON unless formats say otherwise; null is null in every "
        "format. Records of one partition are stored in their order. When all are refused for one reason, that is the "
        "answer.",
        tag="records",
        body=ProduceRequest,
        answer=ProduceAnswer,
        errors=(InvalidInput, NotFound, BatchTooLarge, Unavailable),
        other_answers={207: "Some were not stored: each says its own"},
        body_example=_BODY_EXAMPLE,
        answer_example=_ANSWER_EXAMPLE,
    )


class _Producing:
    def __init__(self, context: DoorContext) -> None:
        self._door = context.records
        self._clock = context.broker.clock

    async def produce(self, call: Call) -> Response:
        request: ProduceRequest = call.body
        topic = await self._door.topic_to_write(call.path["topic"])
        if len(request.records) >= _MANY:
            answer = await self._produce_plain(topic, request)
            if answer is not None:
                return answer
        wanted = [_new_record(each, request) for each in request.records]
        valid = [each for each in wanted if isinstance(each, records.NewRecord)]
        stored = iter(await self._door.append(topic, valid) if valid else ())
        return _answer([next(stored) if isinstance(each, records.NewRecord) else each for each in wanted])

    async def _produce_plain(self, topic: Topic, request: ProduceRequest) -> Response | None:
        """The same for many that go to one partition and are alike; None if they are not."""
        now_ms = self._clock.now_ms()
        columns = plain_columns(request, now_ms)
        partition = None if columns is None else self._only_partition(topic, request)
        if columns is None or partition is None:
            return None
        runs = await self._door.append_columns(topic, partition, columns)
        times_ms = memoryview(columns.timestamps).cast("q").tolist()
        if len(runs) == 1 and not isinstance(stored := runs[0].outcome, StreamHouseError):
            stamp_ms = stored.append_time_ms if stored.append_time_ms >= 0 else times_ms[0]
            if stored.append_time_ms >= 0 or times_ms.count(stamp_ms) == len(times_ms):
                return respond(stored_run(partition, stored.base_offset, len(times_ms), stamp_ms))
        return _answer([*_outcomes(partition, runs, times_ms)])

    def _only_partition(self, topic: Topic, request: ProduceRequest) -> int | None:
        """Where all of them go; None if they part, or if there is no such partition."""
        given = {record.partition for record in request.records}
        if len(given) != 1:
            return None
        (partition,) = given
        if partition is not None:
            return partition if partition < topic.partition_count else None
        if topic.partition_count == 1:
            return 0
        return None if any(bytes(record.key) for record in request.records) else self._door.next_partition(topic)


def _outcomes(partition: int, runs: Sequence[records.AppendedRun], times_ms: Sequence[int]) -> Iterator[Outcome]:
    at = 0
    for count, outcome in runs:
        for index in range(count):
            if isinstance(outcome, StreamHouseError):
                yield outcome
            else:
                stamp_ms = outcome.append_time_ms if outcome.append_time_ms >= 0 else times_ms[at + index]
                yield records.StoredRecord(partition, outcome.base_offset + index, stamp_ms)
        at += count


def _new_record(given: ProduceRecord, request: ProduceRequest) -> records.NewRecord | InvalidInput:
    try:
        return records.NewRecord(
            key=bytes_of(given.key, given.key_format or request.key_format),
            value=bytes_of(given.value, given.value_format or request.value_format),
            headers=headers_of(given.headers),
            partition=given.partition,
            timestamp_ms=given.timestamp_ms,
        )
    except InvalidInput as problem:
        return problem


def _answer(outcomes: Sequence[Outcome]) -> Response:
    refused = [each for each in outcomes if isinstance(each, StreamHouseError)]
    reasons = [each for each in refused if not isinstance(each, records.NotTried)]
    if len(refused) == len(outcomes) and len(set(map(type, reasons))) == 1:
        raise reasons[0]
    results = [_result(each) for each in outcomes]
    return respond(ProduceAnswer(records=results), 207 if refused else 200)


def _result(outcome: Outcome) -> ProduceResult:
    if isinstance(outcome, StreamHouseError):
        return ProduceResult(error=problem_of(outcome))
    return ProduceResult(partition=outcome.partition, offset=outcome.offset, timestamp_ms=outcome.timestamp_ms)
