"""What a test can make go wrong in its broker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from streamhouse.app.node import Node
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.objects.faulty import FaultyStore, Moment, Operation
from streamhouse.testing.clock import MovableClock
from streamhouse.testing.kafka_faults import (
    CodedError,
    Drop,
    KafkaFault,
    KafkaFaults,
    api_named,
    delay_of,
    error_named,
    number_of,
    refusable_api,
    topic_named,
)
from streamhouse.testing.time_passing import let_time_pass


class Faults:
    """Each can be given while clients work, and holds until it has met so many requests, or until `heal`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        objects: FaultyStore,
        kafka: KafkaFaults,
        clock: MovableClock,
        node: Node,
    ) -> None:
        self._loop = loop
        self._kafka = kafka
        self._objects = objects
        self._clock = clock
        self._node = node

    def fail_puts(self, times: int | None = 1, *, lost_answer: bool = False) -> None:
        """The next uploads fail (None: until `heal`); with `lost_answer` they take effect all the same."""
        moment, remaining = Moment.AFTER if lost_answer else Moment.BEFORE, number_of(times)
        self._on_loop(lambda: self._objects.fail(Operation.CREATE, times=remaining, moment=moment))

    def slow_puts(self, delay_ms: float, times: int | None = 1) -> None:
        delay, remaining = delay_of(delay_ms), number_of(times)
        self._on_loop(lambda: self._objects.slow(Operation.CREATE, delay, times=remaining))

    def fail_reads(self, times: int | None = 1) -> None:
        remaining = number_of(times)
        self._on_loop(lambda: self._objects.fail(Operation.READ, times=remaining))

    # --- at the Kafka port ---

    def fail(
        self, api: str, error: str | int | CodedError, *, times: int | None = 1, topic: str | None = None
    ) -> KafkaFault:
        """The next requests of an API ("Produce", "Fetch", "OffsetCommit", …) are not carried out and answered with an
        error ("NOT_LEADER_OR_FOLLOWER", its number, or confluent-kafka's KafkaError); with `topic` only what they say
        of it. Of Metadata, only what it says of topics. The answer's `met` counts them."""
        return self._at_kafka_port(
            KafkaFault(
                api=refusable_api(api),
                error=error_named(error),
                remaining=number_of(times),
                topic=topic_named(topic, api),
            )
        )

    def slow(
        self, api: str | None = None, *, delay_ms: float, times: int | None = 1, topic: str | None = None
    ) -> KafkaFault:
        """The next requests, of an API or all, begin so much later, and so does what comes behind them."""
        return self._at_kafka_port(
            KafkaFault(
                api=None if api is None else api_named(api),
                delay_ms=delay_of(delay_ms),
                remaining=number_of(times),
                topic=topic_named(topic, api),
            )
        )

    def drop_connections(
        self,
        api: str | None = None,
        *,
        times: int | None = 1,
        lost_answer: bool = False,
        topic: str | None = None,
    ) -> KafkaFault | None:
        """Connections end: all of them, now; or with `api` those on which its next requests come, before anything is
        done about these, or with `lost_answer` when they were carried out."""
        if api is None:
            if lost_answer or topic is not None or times != 1:
                raise InvalidInput(
                    "without an API all connections end now, whatever times, lost_answer and topic say",
                    hint='name one: drop_connections("Produce", lost_answer=True)',
                )
            self._on_loop(self._node.kafka.traffic.abort)
            return None
        return self._at_kafka_port(
            KafkaFault(
                api=api_named(api),
                drop=Drop.ANSWER if lost_answer else Drop.REQUEST,
                remaining=number_of(times),
                topic=topic_named(topic, api),
            )
        )

    def rebalance(self, group: str) -> None:
        """Every member of the group joins again, as soon as it hears of it: with its next heartbeat. Members of the
        newer protocol (KIP-848) lose their partitions over it."""
        refusal = asyncio.run_coroutine_threadsafe(self._node.broker.groups.rebalance(group), self._loop).result()
        if refusal is not None:
            raise NotFound(f"group {group!r} cannot be rebalanced: {refusal.name}", hint="wait(group=…) for it first")

    def _at_kafka_port(self, fault: KafkaFault) -> KafkaFault:
        self._on_loop(lambda: self._kafka.add(fault))
        return fault

    # --- all of them ---

    def heal(self) -> None:
        """The object store works again, and so does the Kafka port. What has happened has happened: clocks stay where
        they are."""
        self._on_loop(self._objects.heal)
        self._on_loop(self._kafka.heal)

    def expire_leases(self) -> None:
        """Every lease runs out now; the node takes them again when it next renews."""
        self._on_loop(self._node.engine.leadership.expire)

    def jump_clock(self, duration_ms: int) -> None:
        """Set the wall clock forward or back."""
        if isinstance(duration_ms, bool) or not isinstance(duration_ms, int):
            raise InvalidInput(
                f"{duration_ms!r} is not how far a clock can jump", hint="milliseconds; back if negative"
            )
        self._clock.jump(duration_ms)

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass at once. Afterwards what retention deletes in such a time is gone; the sessions of group
        members have ended, unless they are longer: their clients could not beat, and join again. The broker keeps its
        leases, and goes on.

        Clients go on by the system's clock, so what they write from now on looks so much older than `Broker.now_ms`;
        the broker stamps it where the topic has message.timestamp.type=LogAppendTime."""
        asyncio.run_coroutine_threadsafe(let_time_pass(self._node, self._clock, duration_ms), self._loop).result()

    def _on_loop(self, action: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            try:
                action()
            finally:
                done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait()
