"""What a test has told its broker to do wrong at the Kafka port. While there is nothing, nothing is in the way: the
sessions are those of every node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol

from streamhouse.app.node import Node
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import check_topic_name
from streamhouse.model.setting_values import did_you_mean
from streamhouse.server.kafka.session import KafkaSession
from streamhouse.server.tcp import Connection, FrameHandler
from streamhouse.testing.faulty_session import FaultySession
from streamhouse.testing.kafka_refusals import REFUSALS
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.registry import APIS, Api

_LONGEST_DELAY_MS = 86_400_000
_OF_CLIENTS: Mapping[str, ErrorCode] = MappingProxyType(
    {
        "INVALID_MSG": ErrorCode.CORRUPT_MESSAGE,
        "INVALID_MSG_SIZE": ErrorCode.INVALID_FETCH_SIZE,
        "INVALID_REPLICATION_ASSIGNMENT": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "INVALID_TOPIC": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "MESSAGE_SIZE_TOO_LARGE": ErrorCode.MESSAGE_TOO_LARGE,
        "MSG_SIZE_TOO_LARGE": ErrorCode.MESSAGE_TOO_LARGE,
        "NOT_LEADER_FOR_PARTITION": ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "STALE_CTRL_EPOCH": ErrorCode.STALE_CONTROLLER_EPOCH,
        "TOPIC_EXCEPTION": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "UNKNOWN": ErrorCode.UNKNOWN_SERVER_ERROR,
        "UNKNOWN_TOPIC_OR_PART": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""What librdkafka and kafka-python call some errors."""


class CodedError(Protocol):
    """confluent-kafka's KafkaError is one."""

    def code(self) -> int: ...


class Drop(Enum):
    """When a connection ends: before the request is looked at, or when it was carried out, without its answer."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(slots=True, kw_only=True)
class KafkaFault:
    """One thing that goes wrong. `met`: how many requests it has met so far."""

    api: str | None
    topic: str | None = None
    remaining: int | None = None
    error: ErrorCode | None = None
    delay_ms: float = 0
    drop: Drop | None = None
    met: int = field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        return self.remaining is not None and self.met >= self.remaining

    def may_meet(self, api: Api | None) -> bool:
        return not self.is_over and (self.api is None or (api is not None and api.name == self.api))


class KafkaFaults:
    def __init__(self) -> None:
        self._faults: list[KafkaFault] = []
        self.heals = 0
        """How often all was healed: what a fault has delayed goes on then."""
        self._node: Node | None = None
        self._make_handler: Callable[[Connection], FrameHandler] | None = None
        """What the listener makes sessions with, while it makes faulty ones."""

    def attach(self, node: Node) -> None:
        """To a node that has just started: what was told before holds for it as well."""
        self._node, self._make_handler = node, None
        if self._faults:
            self._install()

    def add(self, fault: KafkaFault) -> None:
        self._faults.append(fault)
        self._install()

    def heal(self) -> None:
        self.heals += 1
        self._faults.clear()
        self._uninstall()

    @property
    def are_none(self) -> bool:
        return not self._faults

    def may_meet(self, api: Api | None) -> bool:
        return any(fault.may_meet(api) for fault in self._faults)

    def meet(self, api: Api | None, topics: Sequence[str] | None) -> list[KafkaFault]:
        """The faults that a request is to have, which have met it now: of all delays, and of the first of each other
        kind. `topics`: those that it names, None if it is not about topics."""
        met: list[KafkaFault] = []
        for fault in self._faults:
            if not fault.may_meet(api) or (fault.topic is not None and fault.topic not in (topics or ())):
                continue
            ends_it = fault.error is not None or fault.drop is not None
            if ends_it and any(other.error is not None or other.drop is not None for other in met):
                continue
            fault.met += 1
            met.append(fault)
        self._faults = [fault for fault in self._faults if not fault.is_over]
        if not self._faults:
            self._uninstall()
        return met

    def _install(self) -> None:
        """Before every session that there is and will be, where none is yet."""
        if self._node is None:
            return
        node, listener = self._node, self._node.kafka.traffic
        if self._make_handler is None:
            make = self._make_handler = listener.make_handler

            def make_faulty(connection: Connection) -> FrameHandler:
                session = make(connection)
                assert isinstance(session, KafkaSession)
                return FaultySession(connection, session, self, node)

            listener.make_handler = make_faulty
        for connection in listener.connections:
            if isinstance(connection.handler, KafkaSession):
                connection.hand_to(FaultySession(connection, connection.handler, self, node))

    def _uninstall(self) -> None:
        if self._node is None or self._make_handler is None:
            return
        listener, listener.make_handler = self._node.kafka.traffic, self._make_handler
        self._make_handler = None
        for connection in listener.connections:
            if isinstance(connection.handler, FaultySession):
                connection.handler.step_aside()


def api_named(name: Any) -> str:
    """As the protocol spells it, however it was written."""
    return _named(name, {api.name for api in APIS.values()}, "API")


def refusable_api(name: Any) -> str:
    api = api_named(name)
    if api not in REFUSALS:
        raise InvalidInput(f"a {api} request cannot be refused", hint=f"those can be: {', '.join(sorted(REFUSALS))}")
    return api


def error_named(error: Any) -> ErrorCode:
    """By name, as in Kafka's documentation or a client's, by number, or as an error of confluent-kafka."""
    if callable(getattr(error, "code", None)):
        error = error.code()
    if isinstance(error, int) and not isinstance(error, bool):
        names = [code.name for code in ErrorCode if code == error]
        if not names:
            raise InvalidInput(f"Kafka has no error code {error}", hint="name it, as NOT_LEADER_OR_FOLLOWER")
        error = names[0]
    by_clients = {_plain(name): code.name for name, code in _OF_CLIENTS.items()}
    name = by_clients.get(_plain(str(error)), error)
    code = ErrorCode[_named(name, {code.name for code in ErrorCode}, "error code")]
    if code is ErrorCode.NONE:
        raise InvalidInput("NONE is no error")
    return code


def topic_named(name: str | None, api: str | None) -> str | None:
    """The topic that a fault is limited to, if requests of the API are about topics."""
    if name is None:
        return None
    check_topic_name(name)
    of_topics = sorted(each for each, refusal in REFUSALS.items() if refusal.topics)
    if api is None or api_named(api) not in of_topics:
        which = "not every request names" if api is None else f"a {api} request names no"
        raise InvalidInput(f"{which} topics to choose among", hint=f"those do: {', '.join(of_topics)}")
    return name


def number_of(times: int | None) -> int | None:
    if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
        raise InvalidInput(f"times={times!r} is no number of times", hint="1 or more, or None: until `heal`")
    return times


def delay_of(delay_ms: float) -> float:
    if isinstance(delay_ms, bool) or not isinstance(delay_ms, int | float) or not 0 <= delay_ms < _LONGEST_DELAY_MS:
        raise InvalidInput(f"delay_ms={delay_ms!r} is no delay", hint="milliseconds, less than a day")
    return delay_ms


def _named(name: Any, known: set[str], kind: str) -> str:
    by_plain = {_plain(one): one for one in known}
    found = by_plain.get(_plain(str(name)))
    if found is None:
        meant = did_you_mean(_plain(str(name)), sorted(by_plain), "")
        hint = f"did you mean {by_plain[meant.removeprefix('did you mean ').rstrip('?')]}?" if meant else None
        raise InvalidInput(f"Kafka has no {kind} {name!r}", hint=hint or "https://kafka.apache.org/protocol names them")
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
