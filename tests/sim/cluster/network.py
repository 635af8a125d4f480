"""The way from an agent to a service and back: it takes time, and what goes wrong on it is drawn from the seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from sim.cluster.loop import VirtualLoop
from streamhouse.model.errors import StreamHouseError, Unavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often a call fails without effect, takes effect with its answer lost, or takes effect only after the caller
    has given it up; and how long one takes."""

    refused: float = 0.0
    answer_lost: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    usual_ms: float = 4.0


class Network:
    def __init__(self, loop: VirtualLoop, random: Random, weather: Weather) -> None:
        self._loop = loop
        self._random = random
        self.weather = weather
        self.timeout_ms = {"database": 800, "bucket": 800}
        """After how long a caller gives a call to a service up; much longer, if connections may be half open."""
        self._cuts: set[tuple[str, str]] = set()

    def cut(self, agent_id: str, service: str) -> None:
        """`service` is "database" or "bucket"; agent id "*" is everybody."""
        self._cuts.add((agent_id, service))

    def mend(self, agent_id: str, service: str) -> None:
        self._cuts.discard((agent_id, service))

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self._cuts.clear()
        self.weather = Weather()

    def delay(self) -> float:
        """Seconds, most of them short."""
        weather = self.weather
        if weather.slow and self._random.random() < weather.slow:
            return self._random.uniform(0.05, 0.6)
        return self._random.random() ** 2 * weather.usual_ms * 3 / 1000 + 0.0002

    async def call(self, agent_id: str, service: str, unavailable: type[Unavailable], work: Callable[[], T]) -> T:
        """`work` is what the service does; it is done even if the caller dies or stops waiting meanwhile."""
        exchange = _Exchange(self, self._loop, (agent_id, service), unavailable, work)
        exchange.send(self._random)
        return await exchange.answer

    def is_cut(self, link: tuple[str, str]) -> bool:
        return bool(self._cuts) and (link in self._cuts or ("*", link[1]) in self._cuts)


class _Exchange:
    def __init__(
        self,
        network: Network,
        loop: VirtualLoop,
        link: tuple[str, str],
        unavailable: type[Unavailable],
        work: Callable[[], Any],
    ) -> None:
        self._network = network
        self._loop = loop
        self._link = link
        self._unavailable = unavailable
        self._work = work
        self._answer_lost = False
        self._timeout_s = network.timeout_ms[link[1]] / 1000
        self.answer = loop.create_future()

    def send(self, random: Random) -> None:
        weather = self._network.weather
        fate = random.random()
        if fate < weather.refused:
            self._later(self._network.delay(), self._refuse)
            return
        self._answer_lost = fate < weather.refused + weather.answer_lost
        if fate > 1 - weather.late:
            self._answer_lost = True
            self._later(random.uniform(0.5, 4.0) * self._timeout_s, self._arrive)
            self._later(self._timeout_s, self._refuse)
        else:
            self._later(self._network.delay(), self._arrive)

    def _arrive(self) -> None:
        if self._network.is_cut(self._link):
            self._later(self._timeout_s, self._refuse)
            return
        try:
            result = self._work()
        except StreamHouseError as problem:
            self._later(self._network.delay(), self._raise, problem)
        else:
            self._later(self._network.delay(), self._return, result)

    def _return(self, result: object) -> None:
        if self._answer_lost or self._network.is_cut(self._link):
            self._refuse()
        elif not self.answer.done():
            self.answer.set_result(result)

    def _raise(self, problem: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(problem)
            # The caller may be dead; that nobody looks at it is no mistake.
            self.answer.exception()

    def _refuse(self) -> None:
        self._raise(self._unavailable(f"no answer from the {self._link[1]}"))

    def _later(self, delay: float, callback: Callable[..., None], *args: object) -> None:
        self._loop.call_later(delay, callback, *args, context=self._loop.nobody)
