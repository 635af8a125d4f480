"""Writing one batch and waiting for it: for doors that, unlike Kafka's, have a task for each call."""

from __future__ import annotations

import asyncio

from streamhouse.broker.broker import Broker
from streamhouse.core.record_rules import RecordRules
from streamhouse.format.batch import read_header
from streamhouse.log.budget import ByteBudget
from streamhouse.log.leader import Acknowledgement, Appended, PartitionLeader
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import Fenced, OutcomeUnknown, StreamHouseError, Unavailable


async def produce(
    broker: Broker, leader: PartitionLeader, batch: Buffer, *, is_admitted: bool = False, timeout_ms: int
) -> Appended:
    """Check a batch, append it, and wait until it is durable. `is_admitted`: its records were judged before, and are
    not judged again.

    Whatever is raised before the append means that nothing was stored. After it, losing the lease or the disk does not
    take back what may be written already: that is OutcomeUnknown."""
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    await _wait_for_room(leader.buffer, deadline)
    await _wait_for_room(broker.buffer, deadline)
    settled = _Settled()
    rules = leader.rules.once_admitted if is_admitted else leader.rules
    appended = await _append(broker, leader, rules, memoryview(batch), settled, deadline)
    broker.commit_appends()
    try:
        async with asyncio.timeout_at(deadline):
            await settled.future
    except TimeoutError:
        raise OutcomeUnknown(
            f"{leader.topic}/{leader.partition.partition} did not sync within {timeout_ms} ms"
        ) from None
    except (Fenced, Unavailable) as problem:
        raise OutcomeUnknown(f"it may or may not be stored: {problem.message}", hint=problem.hint) from problem
    return appended


async def _append(
    broker: Broker,
    leader: PartitionLeader,
    rules: RecordRules,
    batch: memoryview,
    acknowledgement: Acknowledgement,
    deadline: float,
) -> Appended:
    """At once, unless it must be looked at first, or comes behind one that is being looked at."""
    admission = broker.admission
    if not admission.is_needed(leader, read_header(batch)) and not admission.is_under_way(leader):
        return broker.produce(leader, batch, acknowledgement)
    try:
        async with asyncio.timeout_at(deadline), admission.turn(leader):
            (admitted,) = await admission.admit([(rules, batch)])
            if isinstance(admitted, StreamHouseError):
                raise admitted
            return leader.append(admitted.batch, admitted.header, acknowledgement)
    except TimeoutError:
        raise Unavailable("the records could not be looked at in time", hint="try again") from None


async def _wait_for_room(budget: ByteBudget, deadline: float) -> None:
    """Where Kafka's listener stops reading its socket, a call waits."""
    while budget.is_full:
        freed = asyncio.Event()
        budget.when_free(freed.set)
        try:
            async with asyncio.timeout_at(deadline):
                await freed.wait()
        except TimeoutError:
            raise Unavailable("the buffer for records is full", hint="try again when uploads have caught up") from None
        finally:
            budget.forget(freed.set)


class _Settled:
    """An acknowledgement that can be awaited, and that nobody may be waiting for any more."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def durable(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def failed(self, problem: StreamHouseError) -> None:
        if not self.future.done():
            self.future.set_exception(problem)
