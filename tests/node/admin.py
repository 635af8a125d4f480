"""What an operator asks of a cluster, asked again when the client loses the node that it asked.

librdkafka drops a node that is not named in an answer about the cluster, and with it what was asked of it. That is so
when an agent was not heard of for a moment, say because the machine stood still. It leaves it to its user to ask again,
who then finds done what was done all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from node.wait import HUNG_SECONDS

QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}
_TRIES = 5
# The client ends its wait before we end ours, so that it is the one to say what failed.
_REQUEST_SECONDS = HUNG_SECONDS / 2


def create_topic(bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    admin = _connect(bootstrap)
    wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
    _ask(
        lambda: admin.create_topics([wanted], request_timeout=_REQUEST_SECONDS)[topic],
        done=KafkaError.TOPIC_ALREADY_EXISTS,
    )


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = _connect(bootstrap)
    _ask(
        lambda: admin.delete_topics([topic], request_timeout=_REQUEST_SECONDS)[topic],
        done=KafkaError.UNKNOWN_TOPIC_OR_PART,
    )


def grow_topic(bootstrap: str, topic: str, count: int) -> None:
    admin = _connect(bootstrap)
    _ask(
        lambda: admin.create_partitions([NewPartitions(topic, count)], request_timeout=_REQUEST_SECONDS)[topic],
        done=KafkaError.INVALID_PARTITIONS,
    )


def _connect(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUICK})


def _ask(call: Callable[[], Future[Any]], *, done: int) -> None:
    """`done`: the refusal that is as good as an answer to who has asked before."""
    for tries_before in range(_TRIES):
        try:
            call().result(HUNG_SECONDS)
        except KafkaException as problem:
            code = problem.args[0].code()
            if tries_before > 0 and code == done:
                return
            if tries_before == _TRIES - 1 or code != KafkaError._DESTROY_BROKER:
                raise
        else:
            return
