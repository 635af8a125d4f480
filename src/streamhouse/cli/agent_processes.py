"""Several agents on one machine, a process for each: started together, again when one dies, drained together."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path

from streamhouse.cli.console import print_note
from streamhouse.cli.settings import VARIABLE_PREFIX, variable_name
from streamhouse.model.errors import InvalidConfig, Unavailable
from streamhouse.model.settings import Kind, Settings
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_READY = "ready "
_PR_SET_PDEATHSIG = 1


def settings_of_agents(settings: Settings, count: int) -> list[Settings]:
    """What differs between them: name, ports and data directory."""
    if not settings.metadata.startswith("postgres"):
        raise InvalidConfig(
            f"{count} agents need a metadata store that processes can share",
            hint="give --metadata postgresql://user@host/database",
        )
    name = settings.agent_id or "agent"
    # Its default is close above Kafka's, and there it makes room.
    flume_port = max(settings.flume_port, settings.kafka_port + count) if settings.kafka_port else settings.flume_port
    return [
        replace(
            settings,
            agent_id=f"{name}-{number}",
            node_id=settings.node_id + number - 1 if settings.node_id else 0,
            kafka_port=settings.kafka_port + number - 1 if settings.kafka_port else 0,
            http_port=settings.http_port + number - 1 if settings.http_port else 0,
            grpc_port=settings.grpc_port + number - 1 if settings.grpc_port else 0,
            flume_port=flume_port + number - 1 if settings.flume_port else 0,
            data_dir=str(Path(settings.data_dir) / f"agent-{number}"),
            # They share this machine and its disks, as an embedded agent does.
            durability=settings.durability or "wal",
        )
        for number in range(1, count + 1)
    ]


def as_environment(
    settings: Settings, environ: Mapping[str, str], given: Collection[str] = frozenset()
) -> dict[str, str]:
    """Settings as variables: unlike flags, they are not shown to everybody who lists processes. What was `given` is one
    though it is the default: it wins over what is set while nodes run."""
    variables = {name: value for name, value in environ.items() if not name.startswith(VARIABLE_PREFIX)}
    for item in fields(Settings):
        value = getattr(settings, item.name)
        if value != item.default or item.name in given:
            variables[variable_name(item.name)] = f"{value}ms" if item.metadata["kind"] is Kind.DURATION else str(value)
    return variables


class AgentProcess:
    """One agent's process, and the next one when it ends without being asked to."""

    def __init__(self, settings: Settings, given: Collection[str]) -> None:
        self._settings = settings
        self._given = given
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False
        self.ready_line = ""

    async def start(self) -> None:
        """Until it is ready; Unavailable if it ends before, having said why on stderr."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "streamhouse",
            "agent",
            env=as_environment(self._settings, os.environ, self._given),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            preexec_fn=_end_with_parent,
        )
        assert self._process.stdout is not None
        self.ready_line = (await self._process.stdout.readline()).decode().strip()
        if not self.ready_line.startswith(_READY):
            raise Unavailable(f"agent {self._settings.agent_id} ended before it was ready")

    async def keep_running(self) -> None:
        """Runs until it is stopped."""
        clock = SystemClock()
        waits = backoff_ms(first_ms=200)
        while True:
            assert self._process is not None
            exit_code = await self._process.wait()
            if self._is_stopping:
                return
            print_note(f"agent {self._settings.agent_id} ended with {exit_code}; starting it again")
            await clock.sleep_ms(next(waits))
            try:
                await self.start()
                waits = backoff_ms(first_ms=200)
            except Unavailable as problem:
                print_note(str(problem))

    def stop(self) -> None:
        """Ask it to drain; it hands over to those that are still there."""
        self._is_stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def wait(self) -> int:
        """Its exit code; to end by our signal, before it could drain because it had just begun, is no failure."""
        exit_code = 0 if self._process is None else await self._process.wait()
        return 0 if exit_code == -signal.SIGTERM else exit_code


def run_agents(settings: Settings, given: Collection[str], count: int, announce: Callable[[str], None]) -> int:
    """Run them until SIGTERM or SIGINT; blocking."""
    return asyncio.run(_run(settings_of_agents(settings, count), given, announce))


async def _run(each: list[Settings], given: Collection[str], announce: Callable[[str], None]) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    agents = [AgentProcess(settings, given) for settings in each]
    tasks = TaskGroup("agents")
    try:
        await asyncio.gather(*(agent.start() for agent in agents))
        for agent in agents:
            tasks.start(agent.keep_running(), "agent")
        # Any of them leads a client to all the others.
        announce(agents[0].ready_line)
        await stop.wait()
    finally:
        for agent in agents:
            agent.stop()
        exit_codes = [await agent.wait() for agent in agents]
        await tasks.cancel()
    return max(map(abs, exit_codes))


def _end_with_parent() -> None:
    """In the child: if this process is killed, the agent is told to drain and does not go on alone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
