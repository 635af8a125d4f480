"""kafka-python and kio, each asked to read our bytes and to write them again."""

from __future__ import annotations

import importlib
import io
import pkgutil
from functools import cache
from typing import Any
from uuid import UUID

import kafka.protocol
import msgspec
from kafka.protocol.api_message import ApiMessage
from kio.index import load_entity_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kafka_oracles.messages import Case, snake_case

# kafka-python shows bit fields as sets of bits.
_BIT_FIELDS = ("authorized_operations", "topic_authorized_operations", "cluster_authorized_operations")


@cache
def _kafka_python_messages() -> dict[str, Any]:
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    found: dict[str, Any] = {}
    pending = [ApiMessage]
    while pending:
        for cls in pending.pop().__subclasses__():
            found.setdefault(cls.__name__, cls)
            pending.append(cls)
    return found


def kafka_python_knows(case: Case) -> bool:
    return case.name in _kafka_python_messages()


def kafka_python_reads(case: Case, raw: bytes) -> Any:
    # The base class's method: some messages' own ones second-guess the version.
    return ApiMessage.decode.__func__(_kafka_python_messages()[case.name], raw, version=case.version)


def kafka_python_writes(message: Any) -> bytes:
    return bytes(ApiMessage.encode(message))


def differences(ours: object, theirs: Any, path: str = "") -> list[str]:
    """Where a message of ours and kafka-python's reading of it do not hold the same values under the same names."""
    if isinstance(ours, msgspec.Struct):
        found = []
        for field in msgspec.structs.fields(ours):
            known = theirs._struct.fields.get(field.name)
            if known is None or not known.for_version_q(theirs.version) or field.name in _BIT_FIELDS:
                continue
            value = getattr(theirs, field.name)
            found += differences(getattr(ours, field.name), value, f"{path}.{field.name}")
        return found
    if isinstance(ours, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [text for index, (a, b) in pairs for text in differences(a, b, f"{path}[{index}]")]
    if isinstance(ours, UUID):
        theirs = theirs or UUID(int=0)
    return [] if ours == theirs else [f"{path}: {ours!r} is not {theirs!r}"]


def kio_again(case: Case, raw: bytes) -> bytes:
    """Only for bytes that we wrote ourselves: kio may abort the process on hostile ones."""
    kind = {"request": EntityType.request, "response": EntityType.response, "data": EntityType.data}[case.kind]
    entity = getattr(load_entity_module(snake_case(case.api), case.version, kind), case.name)
    message, size = entity_reader(entity)(raw, 0)
    assert size == len(raw)
    out = io.BytesIO()
    entity_writer(entity)(out, message)
    return out.getvalue()
