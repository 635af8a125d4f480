"""Every message of the codec in every version, and Hypothesis strategies for what each can hold."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import msgspec
from hypothesis import strategies as st

from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.primitives import Buffer
from streamhouse.wire.kafka.registry import APIS

_TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(_TOOLS))  # the parser of the definitions is the generator's

from generate_kafka_messages import load_api, load_definition  # noqa: E402
from kafka_messages.definitions import Field, Struct, snake_case  # noqa: E402

_INTEGERS = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
}
_PRIMITIVES: dict[str, st.SearchStrategy[object]] = {
    **_INTEGERS,
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(allow_nil=True),
    "string": st.one_of(st.text(max_size=6), st.text(st.characters(codec="utf-8"), min_size=130, max_size=140)),
    "bytes": st.binary(max_size=10),
    "records": st.binary(max_size=200),
}
# kio has an enumeration where the wire has any number.
_ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
# kio turns milliseconds into timedelta and datetime, which hold less than 64 bits of them, and no time before 1970.
_DURATIONS = st.integers(-1, 2**40)
_TIMES = st.integers(0, 2**40)


@dataclass(frozen=True, slots=True)
class Case:
    """One message in one version."""

    api: str
    """As the API is named, or the message itself if it belongs to none."""
    kind: str
    """`request`, `response` or `data`."""
    version: int

    def __str__(self) -> str:
        return f"{self.api}-{self.kind}-{self.version}"

    @property
    def name(self) -> str:
        return self.api if self.kind == "data" else self.api + self.kind.capitalize()

    @property
    def module(self) -> ModuleType:
        return import_module(f"streamhouse.wire.kafka.messages.{snake_case(self.api)}")

    def decode(self, raw: Buffer) -> msgspec.Struct:
        return self.decode_between(memoryview(raw), 0, len(raw))

    def decode_between(self, buf: memoryview, pos: int, end: int) -> msgspec.Struct:
        suffix = "" if self.kind == "data" else f"_{self.kind}"
        message = getattr(self.module, f"decode{suffix}")(buf, pos, end, self.version)
        assert isinstance(message, msgspec.Struct)
        return message

    def encode(self, message: msgspec.Struct) -> bytes:
        return b"".join(self.encode_buffers(message))

    def encode_buffers(self, message: msgspec.Struct) -> list[Buffer]:
        suffix = "" if self.kind == "data" else f"_{self.kind}"
        buffers: list[Buffer] = getattr(self.module, f"encode{suffix}")(message, self.version)
        return buffers

    @property
    def is_flexible(self) -> bool:
        since: int | None = self.module.FLEXIBLE_SINCE
        return since is not None and self.version >= since


def api_cases() -> list[Case]:
    return [
        Case(api.name, kind, version)
        for api in APIS.values()
        for kind in ("request", "response")
        for version in range(api.min_version, api.max_version + 1)
    ]


def data_cases() -> list[Case]:
    names = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
    return [Case(name, "data", version) for name in names for version in range(4)]


@cache
def messages(case: Case) -> st.SearchStrategy[msgspec.Struct]:
    """Messages whose fields are set where the version has them, and otherwise left alone."""
    definition = load_definition(case.name) if case.kind == "data" else load_api(case.api)[case.kind == "response"]
    structs = {struct.name: struct for struct in definition.structs}
    return _structs(case, structs, structs[definition.name])


def _structs(case: Case, structs: dict[str, Struct], struct: Struct) -> st.SearchStrategy[msgspec.Struct]:
    present = [field for field in struct.fields if case.version in field.versions]
    values = {field.name: _values(case, structs, field) for field in present}
    return st.builds(getattr(case.module, struct.name), **values)


def _values(case: Case, structs: dict[str, Struct], field: Field) -> st.SearchStrategy[object]:
    values: st.SearchStrategy[object]
    if field.is_struct:
        values = _structs(case, structs, structs[field.type])
    elif field.name == "error_code":
        values = _ERROR_CODES
    elif field.name == "transaction_start_time_ms" or field.name.endswith("_timestamp_ms"):
        values = _TIMES
    elif field.type == "int64" and field.name.endswith("_ms"):
        values = _DURATIONS
    else:
        values = _PRIMITIVES[field.type]
    if field.is_array:
        values = st.lists(values, max_size=3)
    return st.none() | values if case.version in field.nullable else values
