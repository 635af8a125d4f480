"""A member as a client library is one: it sends heartbeats, takes what it is given and gives back what it must.

It is the careless kind that the group must cope with: it uses a partition from the moment that it hears of it, and
stops using one only when its own revocation is done."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamhouse.core.groups.consumer_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    HeartbeatReply,
    HeartbeatRequest,
    TopicIdPartition,
)
from streamhouse.core.groups.outcome import GroupError, Refusal

REBALANCE_TIMEOUT_MS = 30_000


@dataclass(slots=True, kw_only=True)
class Client:
    member_id: str
    names: tuple[str, ...] = ()
    regex: str = ""
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = JOIN_EPOCH
    owned: frozenset[TopicIdPartition] = frozenset()
    to_revoke: frozenset[TopicIdPartition] = frozenset()
    must_report: bool = False
    unsure: bool = False
    announces: bool = False
    fatal: GroupError | None = None
    epochs_seen: list[int] = field(default_factory=list)

    def heartbeat(self) -> HeartbeatRequest:
        """The next heartbeat: everything when joining or unsure, otherwise only what is new."""
        if self.epoch == JOIN_EPOCH or self.unsure:
            return HeartbeatRequest(
                member_id=self.member_id,
                member_epoch=self.epoch,
                instance_id=self.instance_id,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                subscribed_topic_names=self.names,
                subscribed_topic_regex=self.regex,
                server_assignor=self.assignor,
                owned=self.owned,
            )
        return HeartbeatRequest(
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=self.names if self.announces else None,
            subscribed_topic_regex=self.regex if self.announces else None,
            owned=self.owned if self.must_report and not self.to_revoke else None,
        )

    def farewell(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            member_id=self.member_id,
            member_epoch=LEAVE_EPOCH if self.instance_id is None else STATIC_LEAVE_EPOCH,
            instance_id=self.instance_id,
        )

    def subscribe(self, names: tuple[str, ...], regex: str) -> None:
        self.names, self.regex = names, regex
        self.announces = True

    def hear(self, request: HeartbeatRequest, reply: HeartbeatReply | GroupError | Refusal) -> None:
        """Take the answer to the newest heartbeat."""
        if not isinstance(reply, HeartbeatReply):
            self._refused(reply.error if isinstance(reply, Refusal) else reply)
            return
        self.epoch = reply.member_epoch
        self.epochs_seen.append(reply.member_epoch)
        self.unsure = False
        if request.subscribed_topic_names == self.names and request.subscribed_topic_regex == self.regex:
            self.announces = False
        if request.owned == self.owned:
            self.must_report = False
        if reply.assignment is not None:
            assignment = frozenset(reply.assignment)
            if assignment != self.owned - self.to_revoke:
                self.must_report = True
            self.to_revoke = self.owned - assignment
            self.owned |= assignment

    def hear_nothing(self) -> None:
        """No answer came in time: say everything again."""
        self.unsure = True

    def finish_revoking(self) -> None:
        self.owned -= self.to_revoke
        self.to_revoke = frozenset()

    def _refused(self, error: GroupError) -> None:
        if error in (GroupError.UNKNOWN_MEMBER_ID, GroupError.FENCED_MEMBER_EPOCH):
            self.epoch = JOIN_EPOCH
            self.owned = self.to_revoke = frozenset()
            self.must_report = self.unsure = False
        else:
            self.fatal = error
