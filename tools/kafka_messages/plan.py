"""What reading and writing have in common: which fields go together, and which functions call which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from kafka_messages.definitions import Field, Message, Struct, Versions, snake_case
from kafka_messages.layout import Flavour, is_fixed


class Nullability(Enum):
    NEVER = "never"
    IN_SOME_VERSIONS = "in some versions"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Plan:
    """One message in one flavour."""

    message: Message
    flavour: Flavour
    structs: dict[str, Struct]

    def groups(self, struct: Struct) -> list[tuple[str, list[Field]]]:
        """Neighbouring untagged fields that are present under the same condition."""
        fields = self.flavour.plain_fields(struct)
        return [(cond, list(run)) for cond, run in groupby(fields, lambda f: self.flavour.condition(struct, f))]

    def nullability(self, field: Field) -> Nullability:
        nullable = field.nullable & self.flavour.versions
        if not nullable:
            return Nullability.NEVER
        if nullable == field.versions & self.flavour.versions:
            return Nullability.ALWAYS
        return Nullability.IN_SOME_VERSIONS

    def not_null_condition(self, field: Field) -> str:
        """When a field that is nullable in some versions is not. Kafka only ever makes fields nullable later on."""
        return f"version < {(field.nullable & self.flavour.versions).first}"

    def needs_version(self, struct: Struct, *, writing: bool) -> bool:
        for field in struct.fields:
            if not field.versions & self.flavour.versions:
                continue
            if self.flavour.condition(struct, field) or self.nullability(field) is Nullability.IN_SOME_VERSIONS:
                return True
            # Writing None where it is not allowed names the version in its error.
            if writing and field.is_nullable and self.nullability(field) is Nullability.NEVER:
                return True
            if field.is_struct and self.needs_version(self.structs[field.type], writing=writing):
                return True
        return False

    def has_records(self, struct: Struct) -> bool:
        return any(
            field.type == "records" or (field.is_struct and self.has_records(self.structs[field.type]))
            for field in struct.fields
            if field.versions & self.flavour.versions
        )

    def function(self, verb: str, struct_name: str, *, is_array: bool) -> str:
        plural = "_list" if is_array else ""
        return f"_{verb}_{snake_case(struct_name)}{plural}{self.flavour.suffix}"

    def uses(self) -> list[tuple[Struct, bool]]:
        """The (struct, as an array) pairs that need a function, inner structs first; the message itself is last."""
        called = {
            (field.type, field.is_array)
            for struct in self.message.structs
            for field in struct.fields
            if field.is_struct and field.versions & self.flavour.versions
        }
        called.add((self.message.name, False))
        return [
            (struct, is_array)
            for struct in self.message.structs
            for is_array in (False, True)
            if (struct.name, is_array) in called
        ]


def plans(message: Message, versions: Versions, flexible: Versions) -> list[Plan]:
    """The message's flavours, older first."""
    legacy = Versions(versions.first, flexible.first - 1) if flexible else versions
    both = bool(legacy and flexible)
    flavours = []
    if legacy:
        flavours.append(Flavour(legacy, False, "_legacy" if both else ""))
    if flexible:
        flavours.append(Flavour(flexible, True, "_flexible" if both else ""))
    structs = {struct.name: struct for struct in message.structs}
    return [Plan(message, flavour, structs) for flavour in flavours]


def fixed_runs(fields: Iterable[Field]) -> list[Sequence[Field]]:
    """Neighbouring fixed-size fields together, each other field alone."""
    runs: list[list[Field]] = []
    for field in fields:
        if is_fixed(field) and runs and is_fixed(runs[-1][-1]):
            runs[-1].append(field)
        else:
            runs.append([field])
    return list(runs)
