"""Kafka's message definitions, parsed: JSON with comments in, typed messages, structs and fields out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_OPEN_END = 32767
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; empty if `first` is after `last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if text is None or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), _OPEN_END)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.first, other.first), min(self.last, other.last))

    def __or__(self, other: Versions) -> Versions:
        """The smallest range that holds both."""
        return Versions(min(self.first, other.first), max(self.last, other.last))

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def each(self) -> range:
        return range(self.first, self.last + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    """As in Python: snake case."""
    type: str
    """A primitive's name as in the definitions, or the name of a struct."""
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: str | None
    """As in the definitions; `None` where the type's zero value is meant."""

    @property
    def is_struct(self) -> bool:
        return self.type[0].isupper()

    @property
    def is_nullable(self) -> bool:
        return bool(self.versions & self.nullable)


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    versions: Versions
    """Where a message can hold it: nothing outside of them needs code."""
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    name: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    structs: tuple[Struct, ...]
    """Every struct that the message holds, inner ones before the ones that contain them; the message itself is last."""


def load_message(path: Path, within: Versions | None = None) -> Message:
    """The stable versions of a message, or only those that are also `within` a range."""
    raw = json.loads(_COMMENT.sub("", path.read_text(encoding="utf-8")))
    versions = Versions.parse(raw["validVersions"])
    if raw.get("latestVersionUnstable", False):
        versions = Versions(versions.first, versions.last - 1)
    if within is not None:
        versions &= within
    common = {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", [])}
    structs: dict[str, Struct] = {}
    _collect(raw["name"], raw["fields"], common, versions, structs)
    return Message(
        name=raw["name"],
        api_key=raw.get("apiKey"),
        versions=versions,
        flexible=Versions.parse(raw["flexibleVersions"]) & versions,
        structs=tuple(structs.values()),
    )


def told_apart(response: Message, request: Message) -> Message:
    """The response, with other names for those of its structs that the request has a struct of the same name for."""
    asked = {struct.name: struct for struct in request.structs}
    clashing: set[str] = set()
    for struct in response.structs:  # inner ones come first: what holds a struct of another name is another struct
        holds_other = any(field.type in clashing for field in struct.fields)
        if struct.name in asked and (holds_other or asked[struct.name] != struct):
            clashing.add(struct.name)
    renamed = {name: f"Answered{name}" for name in clashing}

    def rename(struct: Struct) -> Struct:
        fields = tuple(replace(field, type=renamed.get(field.type, field.type)) for field in struct.fields)
        return replace(struct, name=renamed.get(struct.name, struct.name), fields=fields)

    return replace(response, structs=tuple(rename(struct) for struct in response.structs)) if clashing else response


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _collect(
    name: str, raw_fields: list[Any], common: dict[str, list[Any]], versions: Versions, structs: dict[str, Struct]
) -> None:
    """Add the struct `name` to `structs`, after the structs that its fields hold."""
    if name in structs:
        versions |= structs[name].versions
    fields = []
    for raw in raw_fields:
        field = _parse_field(raw, versions)
        if not field.versions:
            continue
        fields.append(field)
        if field.is_struct:
            _collect(field.type, raw.get("fields") or common[field.type], common, field.versions, structs)
    structs[name] = Struct(name, versions, tuple(fields))


def _parse_field(raw: dict[str, Any], versions: Versions) -> Field:
    present = Versions.parse(raw["versions"]) & versions
    type_name: str = raw["type"]
    default = raw.get("default")
    return Field(
        name=snake_case(raw["name"]),
        type=type_name.removeprefix("[]"),
        is_array=type_name.startswith("[]"),
        versions=present,
        nullable=Versions.parse(raw.get("nullableVersions")) & present,
        tagged=Versions.parse(raw.get("taggedVersions")) & present,
        tag=raw.get("tag", -1),
        default=None if default is None else str(default),
    )
