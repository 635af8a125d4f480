"""Apache Kafka's programs: its jars through Maven, run on loopback in processes of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.maven import Artifact, fetch_jars
from node.wait import eventually

VERSION = "4.3.0"
_PARTS = (
    "kafka_2.13",
    "kafka-tools",
    "connect-runtime",
    "connect-mirror",
    "connect-file",
    "connect-json",
    "kafka-streams",
)
_LOGGING = Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_LOG4J = """
rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = [%d] %p %m (%c)%n%ex
"""
# Short-lived programs on a small machine: start soon, and leave the second core to the node.
_JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
TOOL_SECONDS = 120
STOP_SECONDS = 60


def fetch_kafka(directory: Path) -> Path:
    return fetch_jars(
        [*(Artifact("org.apache.kafka", part, VERSION) for part in _PARTS), _LOGGING],
        directory / f"kafka-{VERSION}",
    )


class Jvm:
    """Starts programs from the jars; what they write to stderr is for people who look into a failure."""

    def __init__(self, jars: Path, scratch: Path) -> None:
        self.jars = jars
        self.scratch = scratch
        self._log4j = scratch / "log4j2.properties"
        self._log4j.write_text(_LOG4J)

    def command(self, main: str, *arguments: str, classes: Path | None = None) -> list[str]:
        path = f"{self.jars.absolute()}/*" + (f":{classes.absolute()}" if classes else "")
        return [*_JAVA, f"-Dlog4j2.configurationFile={self._log4j}", "-cp", path, main, *arguments]

    def run(self, main: str, *arguments: str, stdin: str = "") -> str:
        """What it printed; AssertionError if it ended badly, or tells of an exception."""
        done = self.try_to_run(main, *arguments, stdin=stdin)
        said = f"{main} {' '.join(arguments)}\n{done.stdout}\n{done.stderr[-4000:]}"
        assert done.returncode == 0, f"exit code {done.returncode} of {said}"
        assert "Exception" not in done.stdout + done.stderr, said
        return done.stdout

    def try_to_run(self, main: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """How it ended, well or not."""
        return subprocess.run(
            self.command(main, *arguments), input=stdin, capture_output=True, text=True, timeout=TOOL_SECONDS
        )

    def start(self, main: str, *arguments: str, name: str, classes: Path | None = None) -> Program:
        return Program(self.command(main, *arguments, classes=classes), self.scratch / f"{name}.log")


class Program:
    """One that runs until it is told to end. Its output of all runs is in one file."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            error.add_note(f"{self._log.name}:\n{self.output()[-6000:]}")
        self.kill()

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self._process.terminate()
        self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self.running:
            self._process.kill()
        self._process.wait(STOP_SECONDS)

    def until(self, text: str) -> None:
        """Until it has printed this."""
        eventually(lambda: text in self.output() or not self.running, f"{text!r} in {self._log.name}", timeout=120)
        assert text in self.output(), f"it ended without saying {text!r}:\n{self.output()[-6000:]}"
