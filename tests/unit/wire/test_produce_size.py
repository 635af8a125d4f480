"""A Produce request's topics and partitions are counted, and the counting stops, before anything is built of them."""

from __future__ import annotations

import pytest

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka.messages import produce
from streamhouse.wire.kafka.produce_size import check_batch_count

VERSIONS = range(produce.MIN_VERSION, produce.MAX_VERSION + 1)


def body(version: int, topics: int, partitions: int) -> memoryview:
    request = produce.ProduceRequest(
        acks=-1,
        topic_data=[
            produce.TopicProduceData(
                name=f"topic-{topic}",
                partition_data=[
                    produce.PartitionProduceData(index=index, records=b"r" * 200) for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )
    return memoryview(b"".join(produce.encode_request(request, version)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("topics", "partitions"), [(0, 0), (1, 1), (3, 5), (10, 100)])
def test_exactly_as_many_as_allowed_pass_and_one_more_does_not(version: int, topics: int, partitions: int) -> None:
    request = body(version, topics, partitions)
    count = topics * (1 + partitions)
    check_batch_count(request, 0, len(request), version, count)
    if count:
        with pytest.raises(MalformedRequest):
            check_batch_count(request, 0, len(request), version, count - 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_anywhere_is_malformed_or_short(version: int) -> None:
    request = body(version, 2, 2)
    for end in range(len(request)):
        try:
            check_batch_count(request, 0, end, version, 100)
        except MalformedRequest:
            continue
        # Legal as far as it was walked: the records' own bytes are not looked at here, the decoder refuses them.
        with pytest.raises(MalformedRequest):
            produce.decode_request(request, 0, end, version)
