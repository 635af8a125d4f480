"""The test's hand on a member's process, and what the member has told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from node.wait import HUNG_SECONDS, eventually

KINDS = ("confluent", "consumer-protocol", "aiokafka", "kafka-python")
CLASSIC_KINDS = ("confluent", "aiokafka", "kafka-python")
SESSION_MS = 6_000
"""The shortest that brokers allow, so that a member that vanishes is noticed soon."""
LONG_SESSION_MS = 60_000
"""For a member that vanishes and must be back in time, however long its new process takes to start."""
_TESTS = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Seen:
    partition: int
    offset: int
    value: str


class Member:
    """Started at once. It ends by `leave`, `crash`, or with the block that it was opened in.

    `session_ms` is for classic members; that of the consumer protocol is the broker's."""

    def __init__(
        self,
        kind: str,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        assignor: str = "range",
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
    ) -> None:
        self.kind = kind
        self.seen: list[Seen] = []
        self.owned: frozenset[int] = frozenset()
        self.revoked: list[frozenset[int]] = []
        self.refusals: list[str] = []
        self._left = False
        options = {
            "kind": kind,
            "bootstrap": bootstrap,
            "group": group,
            "topic": topic,
            "assignor": assignor,
            "instance_id": instance_id,
            "session_ms": session_ms,
        }
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the member
        self._process = subprocess.Popen(
            [sys.executable, "-m", "group_members.program", json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=_TESTS,
            env={**os.environ, "PYTHONPATH": str(_TESTS)},
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def values(self) -> list[str]:
        return [one.value for one in list(self.seen)]

    def leave(self) -> None:
        """Close the client in order, as an application that ends does."""
        self._process.send_signal(signal.SIGTERM)
        self._wait()
        assert self._left, f"{self.kind} did not leave in order:\n{self.stderr()}"

    def crash(self) -> None:
        """Nobody tells the group."""
        self._process.kill()
        self._wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-4000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            error.add_note(f"{self.kind} owns {set(self.owned)} and has seen {len(self.seen)} records")
            error.add_note(f"refused: {self.refusals[-5:]}, stderr:\n{self.stderr()}")
        if self.running:
            self.crash()
        self._errors.close()

    def _wait(self) -> None:
        self._process.wait(HUNG_SECONDS)
        self._listener.join(HUNG_SECONDS)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                # The last line of a process that was killed may be cut.
                if line.endswith(b"\n"):
                    self._hear(json.loads(line))

    def _hear(self, told: dict[str, Any]) -> None:
        match told["event"]:
            case "records":
                self.seen.extend(Seen(*record) for record in told["records"])
            case "owned":
                self.owned = frozenset(told["partitions"])
            case "revoked":
                self.revoked.append(frozenset(told["partitions"]))
            case "refused":
                self.refusals.append(told["reason"])
            case "left":
                self._left = True


def each_partition_has_one_owner(members: Iterable[Member], partitions: int) -> bool:
    """Every partition is owned once, and every member owns some."""
    owned = [member.owned for member in members]
    return all(owned) and sorted(at for one in owned for at in one) == list(range(partitions))


def wait_for_one_owner_each(members: Iterable[Member], partitions: int) -> None:
    members = list(members)
    try:
        eventually(lambda: each_partition_has_one_owner(members, partitions), "each partition to have one owner")
    except AssertionError as never:
        for member in members:
            state = "running" if member.running else "ended"
            never.add_note(f"{member.kind} ({state}) owns {sorted(member.owned)}: {member.stderr()}")
        raise
