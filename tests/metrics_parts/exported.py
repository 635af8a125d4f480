"""The text that a node exports, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


def samples(text: str) -> list[Sample]:
    """Every line of it must be one, or a comment."""
    found = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match is not None, line
        labels = dict(_LABEL.findall(match["labels"] or ""))
        found.append(Sample(match["name"], labels, float(match["value"])))
    return found


def value(text: str, name: str, **labels: str) -> float:
    found = [sample.value for sample in samples(text) if sample.name == name and sample.labels == labels]
    assert len(found) == 1, (name, labels, [sample for sample in samples(text) if sample.name == name])
    return found[0]
