"""What goes wrong and when, drawn from a seed before anything starts, so that it can be printed and run again."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from sim.cluster.network import Weather

AGENTS = ("agent-1", "agent-2", "agent-3")
STORM_SECONDS = 5.5
_LEASE_IS_OVER_SECONDS = 1.1
_GROWS = 0.3
"""The share of storms in which a topic grows."""


@dataclass(frozen=True, slots=True)
class Fault:
    at: float
    kind: str
    agent_id: str = ""
    seconds: float = 0.0
    amount: int = 0

    def __str__(self) -> str:
        parts = [f"{self.at:6.3f} {self.kind}", self.agent_id]
        if self.seconds:
            parts.append(f"for {self.seconds:.3f} s")
        if self.amount:
            parts.append(str(self.amount))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    weather: Weather
    sync_fails: float
    answers_lost: float
    segment_bytes: int
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        rates = f"sync_fails={self.sync_fails}, answers_lost={self.answers_lost}, segment_bytes={self.segment_bytes}"
        return "\n".join([f"{self.weather}, {rates}", *(str(fault) for fault in self.faults)])


_WEIGHTS = {
    "crash": 4,
    "pause": 5,
    "cut from database": 3,
    "cut from bucket": 2,
    "drain": 3,
    "pin": 2,
    "database away": 1,
    "bucket away": 1,
    "wall clock jumps": 1,
    "database clock jumps": 1,
    "elect unclean": 1,
}


def draw(seed: int) -> Schedule:
    random = Random(seed)
    # Each seed has a climate of its own: some calm with a few hard blows, some with everything a little wrong.
    roughness = random.choice((0.0, 0.3, 1.0))
    weights = {kind: weight * random.choice((0, 1, 1, 3)) for kind, weight in _WEIGHTS.items()}
    kinds = [kind for kind, weight in weights.items() for _ in range(weight)] or ["crash"]
    faults = [_draw_fault(random, random.choice(kinds)) for _ in range(random.randint(2, 9))]
    if weights["elect unclean"]:
        faults += [_draw_election(random, fault) for fault in faults if fault.seconds > _LEASE_IS_OVER_SECONDS]
    if random.random() < _GROWS:
        faults.append(Fault(random.uniform(0.4, STORM_SECONDS - 1.5), "grow", amount=random.randrange(2)))
    return Schedule(
        weather=Weather(
            refused=roughness * random.random() * 0.06,
            answer_lost=roughness * random.random() * 0.06,
            late=roughness * random.random() * 0.03,
            slow=random.choice((0.0, 0.02, 0.15)),
            usual_ms=random.choice((1.0, 4.0, 15.0)),
        ),
        sync_fails=random.choice((0.0, 0.0, 0.05)),
        answers_lost=random.choice((0.0, 0.03)),
        # With the smallest, a segment holds one or two batches, and so ends inside a range of the WAL.
        segment_bytes=random.choice((8, 1024, 1024)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _draw_fault(random: Random, kind: str) -> Fault:
    at = random.uniform(0.4, STORM_SECONDS - 0.5)
    agent_id = random.choice(AGENTS)
    # From a hiccup to twice the time after which an agent counts as gone.
    seconds = random.choice((0.05, 0.3, 1.0, 2.0, 3.0)) * random.uniform(0.5, 1.3)
    if kind == "wall clock jumps":
        return Fault(at, kind, agent_id, amount=random.choice((-3_600_000, 3_600_000, -900, 900)))
    if kind == "database clock jumps":
        return Fault(at, kind, amount=random.choice((-800, 800, 1_500)))
    if kind == "pin":
        return Fault(at, kind, agent_id, amount=random.randrange(4))
    if kind == "elect unclean":
        return Fault(at, kind)
    if kind.endswith("away"):
        return Fault(at, kind, seconds=seconds)
    return Fault(at, kind, agent_id, seconds)


def _draw_election(random: Random, fault: Fault) -> Fault:
    """While an agent is away for longer than its leases last, an operator loses patience."""
    return Fault(fault.at + random.uniform(_LEASE_IS_OVER_SECONDS, fault.seconds), "elect unclean")
