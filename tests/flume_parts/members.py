"""Members of groups that do what Flume's document says, byte by byte."""

from __future__ import annotations

from flume_parts import raw
from flume_parts.raw import RawFlume
from log_parts.kafka import Kafka
from node.wait import eventually
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import leave_group

HOUR_MS = 3_600_000
"""No session of these tests ends by itself, but those that are told to."""


class Member:
    """A member as the document has it: heartbeats, and joins again when told to."""

    def __init__(self, flume: RawFlume, group: str, topic: str, *, session_ms: int = HOUR_MS) -> None:
        self.flume, self.group, self.topic, self.session_ms = flume, group, topic, session_ms
        self.member_id = ""
        self.join()

    def join(self) -> None:
        code, self.generation, self.leader, self.member_id, self.members = self.flume.join(
            self.group, [self.topic], member_id=self.member_id, session_ms=self.session_ms
        )
        assert code == raw.NONE

    def beat(self) -> int:
        code = self.flume.heartbeat(self.group, self.generation, self.member_id)
        if code == raw.REBALANCE_NEEDED:
            self.join()
        return code

    def partitions(self) -> list[int]:
        code, assigned = self.flume.assignment(self.group, self.generation, self.member_id)
        assert code == raw.NONE
        assert {topic for topic, _ in assigned} <= {self.topic}
        return [partition for _, partition in assigned]


def share(*members: Member) -> list[list[int]]:
    """Until all heartbeats are content and every partition has one owner."""

    def settled() -> list[list[int]] | None:
        codes = [member.beat() for member in members]
        shares = [member.partitions() for member in members]
        whole = sorted(partition for share in shares for partition in share) == [0, 1, 2]
        return shares if whole and codes == [raw.NONE] * len(members) else None

    found = eventually(settled, "a division of the partitions")
    assert found is not None
    return found


def remove(kafka: Kafka, group: str, member_id: str) -> None:
    """As an operator does it with Kafka's tools: the member is not told."""
    identity = leave_group.MemberIdentity(member_id=member_id)
    response = kafka.call(leave_group, leave_group.LeaveGroupRequest(group_id=group, members=[identity]), 5)
    assert (response.error_code, response.members[0].error_code) == (ErrorCode.NONE, ErrorCode.NONE)
