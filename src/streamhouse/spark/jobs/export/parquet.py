"""An export to Parquet files: first a plan of the next files, then the files, then the note that they are all there.

All three are created and never changed. A run that finds a plan without its note finishes that plan before anything
else, so that the same offsets are in the same files whoever writes them, and a file is never written twice."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from uuid import UUID

from streamhouse.model.errors import AlreadyExists, CorruptData
from streamhouse.spark.jobs.export.target import FileRange, Wave
from streamhouse.spark.pipelines.sinks.data_files import DataFile, Directory

# Readers of a directory of Parquet files pass over names that start with an underscore.
_NOTES = "_streamhouse"
_NOTE = re.compile(r"(?P<number>\d{10})-(?P<kind>plan|done)\.json")


class ParquetTarget:
    names_by_range = True

    def __init__(self, directory: Directory, topic_id: UUID) -> None:
        self.directory = directory
        self._prefix = f"{_NOTES}/{topic_id}/"
        # Of the plan that this run is at: its note is for that one, also if somebody else has gone on since.
        self._number = 0

    def exported(self) -> Mapping[int, int]:
        done = self._numbers("done")
        if not done:
            return {}
        note = self._read(max(done), "done")
        return {int(partition): int(offset) for partition, offset in note["exported"].items()}

    def unfinished(self) -> Wave | None:
        begun = self._numbers("plan") - self._numbers("done")
        if not begun:
            return None
        self._number = min(begun)
        return _wave(self._read(self._number, "plan"))

    def begin(self, wave: Wave) -> Wave:
        self._number = max(self._numbers("done"), default=0) + 1
        try:
            self._write(self._number, "plan", {"ranges": [list(each) for each in wave.ranges]})
        except AlreadyExists:
            # Another run is at it, or a try of this one whose answer was lost: its plan is the one that counts.
            return _wave(self._read(self._number, "plan"))
        return wave

    def commit(self, wave: Wave, files: Sequence[DataFile]) -> bool:
        exported = {**self.exported(), **wave.ends()}
        content = {
            "exported": {str(partition): offset for partition, offset in sorted(exported.items())},
            "files": [file._asdict() for file in files],
        }
        try:
            self._write(self._number, "done", content)
        except AlreadyExists:
            return False
        return True

    def _numbers(self, kind: str) -> set[int]:
        found = (
            _NOTE.fullmatch(info.key.removeprefix(self._prefix)) for info in self.directory.store().list(self._prefix)
        )
        return {int(match["number"]) for match in found if match is not None and match["kind"] == kind}

    def _read(self, number: int, kind: str) -> dict[str, dict[str, int]]:
        key = self._key(number, kind)
        try:
            note: dict[str, dict[str, int]] = json.loads(self.directory.store().get(key))
            return note
        except ValueError:
            raise CorruptData(f"{key} is damaged", hint="restore it, or export to an empty directory") from None

    def _write(self, number: int, kind: str, content: object) -> None:
        self.directory.store().create(self._key(number, kind), [json.dumps(content, indent=1).encode()])

    def _key(self, number: int, kind: str) -> str:
        return f"{self._prefix}{number:010d}-{kind}.json"


def _wave(plan: Mapping[str, object]) -> Wave:
    ranges = plan["ranges"]
    assert isinstance(ranges, list)
    return Wave(ranges=tuple(FileRange(*each) for each in ranges))
