"""Measurements in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from streamhouse.runtime.measures import Histogram

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str]
NO_LABELS: Labels = {}


@dataclass(frozen=True, slots=True)
class Family:
    """All lines of one name: a value, or a histogram, for each set of labels."""

    name: str
    kind: str
    help: str
    values: Iterable[tuple[Labels, float | Histogram]]


def gauge(name: str, help_text: str, value: float, labels: Labels = NO_LABELS) -> Family:
    return Family(name, "gauge", help_text, [(labels, value)])


def counter(name: str, help_text: str, value: float, labels: Labels = NO_LABELS) -> Family:
    return Family(name, "counter", help_text, [(labels, value)])


def histogram(name: str, help_text: str, value: Histogram) -> Family:
    return Family(name, "histogram", help_text, [(NO_LABELS, value)])


def by_label(kind: str, name: str, help_text: str, label: str, values: Mapping[str, float | Histogram]) -> Family:
    """One label, with a value for each of the things that it tells apart."""
    return Family(name, kind, help_text, [({label: key}, value) for key, value in values.items()])


def written(families: Iterable[Family]) -> str:
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for labels, value in family.values:
        if isinstance(value, Histogram):
            yield from _histogram_lines(family.name, labels, value)
        else:
            yield f"{family.name}{_written_labels(labels)} {_number(value)}"


def _histogram_lines(name: str, labels: Labels, values: Histogram) -> Iterator[str]:
    """Each bucket counts those below it too."""
    below = list(accumulate(values.counts))
    for bound, count in zip([*map(_number, values.bounds), "+Inf"], below, strict=True):
        yield f"{name}_bucket{_written_labels({**labels, 'le': bound})} {count}"
    yield f"{name}_sum{_written_labels(labels)} {_number(values.total)}"
    yield f"{name}_count{_written_labels(labels)} {below[-1]}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _written_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"
