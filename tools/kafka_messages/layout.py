"""How a field is laid out: on the wire in a range of versions, and in Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafka_messages.definitions import Field, Struct, Versions, snake_case

# type → (struct format code, its letter in the names of precompiled structs, size, Python type)
FIXED = {
    "bool": ("?", "t", 1, "bool"),
    "int8": ("b", "b", 1, "int"),
    "int16": ("h", "h", 2, "int"),
    "uint16": ("H", "H", 2, "int"),
    "int32": ("i", "i", 4, "int"),
    "uint32": ("I", "I", 4, "int"),
    "int64": ("q", "q", 8, "int"),
    "float64": ("d", "d", 8, "float"),
    "uuid": ("16s", "u", 16, "UUID"),
}
_VARIABLE = {"string": "str", "bytes": "Buffer", "records": "Records"}
_ZERO = {"bool": "False", "float64": "0.0", "uuid": "ZERO_UUID", "string": '""', "bytes": 'b""', "records": 'b""'}
# Names that the generated readers use for themselves.
_READER_NAMES = re.compile("buf|pos|end|version|count|length|items|item|present|tag|tag_count|stop")


@dataclass(frozen=True, slots=True)
class Flavour:
    """A range of versions of a message that share an encoding: flexible (compact, with tagged fields) or legacy."""

    versions: Versions
    flexible: bool
    suffix: str
    """Ends the names of its functions; empty if the message has one flavour only."""

    def condition(self, struct: Struct, field: Field) -> str:
        """The Python condition for the field's presence where the struct is; empty if it is always there."""
        possible = struct.versions & self.versions
        present = field.versions & possible
        if present == possible:
            return ""
        if present.last == possible.last:
            return f"version >= {present.first}"
        if present.first == possible.first:
            return f"version <= {present.last}"
        if present.first == present.last:
            return f"version == {present.first}"
        return f"{present.first} <= version <= {present.last}"

    def plain_fields(self, struct: Struct) -> list[Field]:
        """The fields that are encoded in order, that is, untagged ones."""
        return [field for field in struct.fields if self._untagged(field)]

    def tagged_fields(self, struct: Struct) -> list[Field]:
        return sorted((f for f in struct.fields if f.tagged & self.versions), key=lambda field: field.tag)

    def _untagged(self, field: Field) -> bool:
        tagged = field.tagged & self.versions
        present = field.versions & self.versions
        if tagged and tagged != present:
            raise NotImplementedError(f"{field.name} is tagged in some flexible versions only")
        return bool(present) and not tagged


def local_name(field: Field) -> str:
    return f"{field.name}_" if _READER_NAMES.fullmatch(field.name) else field.name


def is_fixed(field: Field) -> bool:
    return field.type in FIXED and not field.is_array


def python_type(field: Field) -> str:
    if field.is_struct:
        element = field.type
    elif field.type in FIXED:
        element = FIXED[field.type][3]
    else:
        element = _VARIABLE[field.type]
    whole = f"list[{element}]" if field.is_array else element
    return f"{whole} | None" if field.is_nullable else whole


def default_name(struct_name: str) -> str:
    """The module-level constant that holds a struct whose fields all have their defaults."""
    return f"_DEFAULT_{snake_case(struct_name).upper()}"


def default_expression(field: Field) -> str:
    if field.default == "null":
        return "None"
    if field.is_array:
        return "[]"
    if field.is_struct:
        return default_name(field.type)
    if field.default is None or field.default == "":
        return _ZERO.get(field.type, "0")
    if field.type == "bool":
        return field.default.capitalize()
    if field.type == "string":
        return repr(field.default)
    return str(int(field.default, 0))


def smallest_size(structs: dict[str, Struct], struct: Struct, flavour: Flavour) -> int:
    """The fewest bytes that `struct` takes in any version of `flavour`."""
    return min(
        sum(_smallest_field(structs, f, flavour) for f in flavour.plain_fields(struct) if version in f.versions)
        for version in (struct.versions & flavour.versions).each()
    ) + int(flavour.flexible)


def element_size(structs: dict[str, Struct], field: Field, flavour: Flavour) -> int:
    """The fewest bytes that one element of the array `field` takes."""
    if field.is_struct:
        return smallest_size(structs, structs[field.type], flavour)
    if field.type in FIXED:
        return FIXED[field.type][2]
    return 1 if flavour.flexible else 2


def _smallest_field(structs: dict[str, Struct], field: Field, flavour: Flavour) -> int:
    if field.is_array:
        return 1 if flavour.flexible else 4
    if field.is_struct:
        return 1 if field.is_nullable else smallest_size(structs, structs[field.type], flavour)
    if field.type in FIXED:
        return FIXED[field.type][2]
    if flavour.flexible:
        return 1
    return 2 if field.type == "string" else 4
