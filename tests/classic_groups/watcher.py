"""Watches what a group tells its members and lets them commit, over restarts, and fails if a promise is broken."""

from __future__ import annotations

import json

from streamhouse.core.groups.classic_messages import ClassicReply, JoinReply, SyncReply


def client_of(member_id: str) -> str:
    """A static member that comes back has a new id; its client is the same."""
    return member_id.split("-")[0]


class Watcher:
    def __init__(self) -> None:
        self.newest = 0
        self.commits = 0
        self._leader: dict[int, str] = {}
        self._owner: dict[tuple[int, int], str] = {}

    def answered(self, reply: ClassicReply, current: int) -> None:
        match reply:
            case JoinReply(error=None):
                assert reply.generation == current >= self.newest, "a generation that is over was announced"
                self.newest = current
                leader = self._leader.setdefault(current, client_of(reply.leader))
                assert client_of(reply.leader) == leader, f"generation {current} has two leaders"
            case SyncReply(error=None) if reply.assignment:
                assigned = json.loads(reply.assignment)
                assert assigned["generation"] == current, "an assignment of another generation was given"
                for partition in assigned["partitions"]:
                    owner = self._owner.setdefault((current, partition), assigned["client"])
                    assert owner == assigned["client"], f"partition {partition} has two owners in generation {current}"

    def commit_accepted(self, client: str, generation: int, partitions: frozenset[int], current: int) -> None:
        assert generation == current, "a commit of another generation was accepted"
        assert all(self._owner[generation, partition] == client for partition in partitions)
        self.commits += 1
