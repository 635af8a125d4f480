"""What an export asks of the place that it writes to: how far it has got, and one step further that counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from streamhouse.spark.pipelines.sinks.data_files import DataFile, Directory


class FileRange(NamedTuple):
    """The records of one file: offsets [start, end) of a partition, as many of them as there are."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Files that count together or not at all. The ranges of a partition follow one another, and what was before."""

    ranges: tuple[FileRange, ...]

    def starts(self) -> dict[int, int]:
        return {each.partition: each.start for each in reversed(self.ranges)}

    def ends(self) -> dict[int, int]:
        return {each.partition: each.end for each in self.ranges}


class Target(Protocol):
    """One topic's place. `names_by_range`: a file's name says what is in it, so that a second try finds the first's;
    else every try has names of its own, and those that were not committed are removed."""

    directory: Directory
    names_by_range: bool

    def exported(self) -> Mapping[int, int]:
        """The next offset of each partition, for those that have some."""

    def begin(self, wave: Wave) -> Wave:
        """What is to be written now: this wave, or one that was begun before and never finished."""

    def unfinished(self) -> Wave | None:
        """A wave that was begun and never finished, which must be before any other."""

    def commit(self, wave: Wave, files: Sequence[DataFile]) -> bool:
        """Make the files count, and move `exported` past them, in one step; False if somebody else has moved it."""
