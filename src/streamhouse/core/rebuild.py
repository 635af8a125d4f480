"""Which of the objects in a bucket are the log: decided from what they say of themselves, without the database.

What was ever committed at an epoch ends at or before the first offset that a later leader wrote, since it goes on where
the committed log ends. So of two that start together and lead on differently, the later epoch is the log. What takes
the place of others has a generation besides (`core/generations.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from streamhouse.core.generations import known_log_start, newest_generations
from streamhouse.format.segment_index import Lineage

EPOCHS_SKIPPED = 100_000
"""The lost database may have granted epochs that left no trace in the bucket, but did in clients and local WALs."""


class Extent(Protocol):
    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...


AnyExtent = TypeVar("AnyExtent", bound=Extent)


class Gap(NamedTuple):
    """Offsets [start, end) that no object holds, though others hold older and newer ones."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSegment:
    """A segment as its object shows it: the offsets that it stands for start where its key says, and end where its
    footer says. Compaction may have taken records from its front. `attempt` is what segments that were to be swapped in
    together have in common, `lineage` is None where nothing was replaced, or by a version that did not note it.
    `checksum` is None while only the footer was read."""

    object_key: str
    base_offset: int
    end_offset: int
    record_count: int
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    epoch: int
    attempt: UUID | None = None
    lineage: Lineage | None = None
    checksum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """A line in the directory of a WAL object."""

    object_key: str
    base_offset: int
    end_offset: int
    epoch: int
    position: int
    size_bytes: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltPartition:
    """Segments hold [log_start_offset, next_offset), `ranges` go on from there. `epochs` are (epoch, first offset) of
    the records in segments. Leases go on after `lease_epoch`, replacements after `generation`."""

    partition: int
    log_start_offset: int
    next_offset: int
    durable_end: int
    lease_epoch: int
    generation: int
    epochs: tuple[tuple[int, int], ...]
    segments: tuple[FoundSegment, ...]
    ranges: tuple[FoundRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltTopic:
    name: str
    topic_id: UUID
    created_at_ms: int
    config: Mapping[str, str]
    partitions: tuple[RebuiltPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltWalObject:
    object_key: str
    agent_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltMetadata:
    """All that a metadata store gets back. `wal_agent_id`: whose disk may hold more of every partition, or nobody."""

    topics: tuple[RebuiltTopic, ...]
    wal_objects: tuple[RebuiltWalObject, ...]
    next_producer_id: int
    wal_agent_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Generic[AnyExtent]):
    """What follows one another, by offset; the gaps lie between it and others that would belong to the log as well."""

    extents: tuple[AnyExtent, ...]
    gaps: tuple[Gap, ...]


def choose_segments(found: Sequence[FoundSegment]) -> Chosen[FoundSegment]:
    """The log's segments: of what takes the place of others the newest generation, and for the rest the chain that ends
    with the latest epoch, then last.

    A merge without a generation that was never committed holds what the log holds, under the epoch of its last segment
    and from the base of its first: that it is there says nothing about others."""
    alive = newest_generations(found)
    chain = _longest_chain(alive)
    # What an earlier leader left beyond the end was never committed, and so is nothing that is missing.
    return _chosen(
        chain, [each for each in alive if each.epoch >= chain[-1].epoch or each.base_offset <= chain[-1].end_offset]
    )


def first_offset(segments: Sequence[FoundSegment], found: Sequence[FoundSegment]) -> int:
    """Where the log of these chosen segments starts: the first of them may reach below what is known to be deleted."""
    return max(segments[0].base_offset, known_log_start(found))


def last_generation(found: Sequence[FoundSegment]) -> int:
    """Of everything that is there, whether it was ever part of the log or not."""
    return max((each.lineage.generation for each in found if each.lineage is not None), default=0)


def choose_ranges(found: Sequence[FoundRange], *, committed_end: int | None, last_epoch: int) -> Chosen[FoundRange]:
    """The ranges that go on where segments end (anywhere, if there are none). `last_epoch` is that of the last record
    in segments: what an earlier leader wrote beyond it was taken back."""
    alive = [each for each in _never_superseded(found) if each.epoch >= last_epoch]
    if committed_end is None:
        return _chosen(_longest_chain(alive), alive)
    alive = [each for each in alive if each.end_offset > committed_end]
    chain: list[FoundRange] = []
    # A segment may end inside a range, between two of its batches; after that each starts where one ended.
    following = [each for each in alive if each.base_offset <= committed_end]
    while following:
        chain.append(max(following, key=lambda each: (each.end_offset, each.object_key)))
        following = [each for each in alive if each.base_offset == chain[-1].end_offset]
    if not chain and alive:
        return Chosen(extents=(), gaps=(Gap(committed_end, min(each.base_offset for each in alive)),))
    return _chosen(chain, alive)


def _chosen(chain: Sequence[AnyExtent], alive: Sequence[AnyExtent]) -> Chosen[AnyExtent]:
    if not chain:
        return Chosen(extents=(), gaps=())
    start, end = chain[0].base_offset, chain[-1].end_offset
    before = [each.end_offset for each in alive if each.end_offset < start]
    after = [each.base_offset for each in alive if each.base_offset > end]
    gaps = [Gap(max(before), start)] if before else []
    gaps += [Gap(end, min(after))] if after else []
    return Chosen(extents=tuple(chain), gaps=tuple(gaps))


def next_producer_id(now_ms: int) -> int:
    """Above every id that was given out before, of which nothing is known: nobody takes a thousand in a millisecond."""
    return now_ms * 1000


def _never_superseded(found: Sequence[AnyExtent]) -> list[AnyExtent]:
    """Without those that reach beyond the start of a later epoch."""
    alive: list[AnyExtent] = []
    first_of_later = first_of_epoch = 2**63
    epoch: int | None = None
    for each in sorted(found, key=lambda each: each.epoch, reverse=True):
        if each.epoch != epoch:
            epoch, first_of_later = each.epoch, first_of_epoch
        first_of_epoch = min(first_of_epoch, each.base_offset)
        if each.end_offset <= first_of_later:
            alive.append(each)
    return alive


@dataclass(frozen=True, slots=True)
class _Link(Generic[AnyExtent]):
    """The best chain that ends with one extent: where it starts, and its number of links."""

    start: int
    length: int
    last: AnyExtent
    before: _Link[AnyExtent] | None


def _longest_chain(found: Sequence[AnyExtent]) -> list[AnyExtent]:
    """Extents that follow one another: the chain whose last one has the latest epoch; of those the one that ends last,
    then the one that starts first, then the one with the fewest links, which is what compaction and merging made of the
    others. Up to each of its links it is the best in the same way: where two end together, the later epoch counts."""
    best: dict[int, _Link[AnyExtent]] = {}
    for each in sorted(found, key=lambda each: (each.base_offset, each.end_offset)):
        before = best.get(each.base_offset)
        link = (
            _Link(each.base_offset, 1, each, None)
            if before is None
            else _Link(before.start, before.length + 1, each, before)
        )
        rival = best.get(each.end_offset)
        if rival is None or _preference(link) < _preference(rival):
            best[each.end_offset] = link
    chain: list[AnyExtent] = []
    last = min(best.values(), key=lambda link: (-link.last.epoch, -link.last.end_offset), default=None)
    while last is not None:
        chain.append(last.last)
        last = last.before
    return chain[::-1]


def _preference(link: _Link[AnyExtent]) -> tuple[int, int, int]:
    return -link.last.epoch, link.start, link.length
