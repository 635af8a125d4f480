"""The text of one generated module while it is written: indented lines, and the names that they turned out to use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kafka_messages.definitions import Field
from kafka_messages.layout import FIXED

_LINE_LENGTH = 120
_HAND_WRITTEN = (
    "model.buffer",
    "model.errors",
    "wire.kafka.primitives",
    "wire.kafka.reading",
    "wire.kafka.writing",
)


class Source:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: dict[str, set[str]] = {module: set() for module in _HAND_WRITTEN}
        """Names to import from the hand-written modules, in their order."""
        self.compiled: dict[str, str] = {}
        """Precompiled struct methods: name → expression."""
        self._depth = 0

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        with self.block_body():
            yield

    @contextmanager
    def block_body(self) -> Iterator[None]:
        """One level deeper, below an opening that is already written."""
        self._depth += 1
        yield
        self._depth -= 1

    def wrapped(self, opening: str, parts: Sequence[str], closing: str) -> None:
        """`opening`, the parts and `closing`: on one line, or the parts on one line, or a line for each part."""
        together = ", ".join(parts)
        if self._fits(f"{opening}{together}{closing}"):
            self.line(f"{opening}{together}{closing}")
            return
        with self.block(opening):
            if self._fits(together):
                self.line(together)
            else:
                for part in parts:
                    self.line(f"{part},")
        self.line(closing)

    def imports_from(self, module: str, names: Sequence[str]) -> None:
        whole = f"from {module} import {', '.join(names)}"
        if self._fits(whole):
            self.line(whole)
            return
        with self.block(f"from {module} import ("):
            for name in names:
                self.line(f"{name},")
        self.line(")")

    def call(self, before: str, function: str, arguments: Sequence[str], after: str) -> None:
        """A call that may itself be the only argument of `before`."""
        if not after or self._fits(f"{before}{function}({', '.join(arguments)}){after}"):
            self.wrapped(f"{before}{function}(", arguments, f"){after}")
            return
        with self.block(before):
            self.wrapped(f"{function}(", arguments, ")")
        self.line(after)

    def assignment(self, names: Sequence[str], value: str) -> None:
        """Several names at once."""
        if self._fits(f"{', '.join(names)} = {value}"):
            self.line(f"{', '.join(names)} = {value}")
        elif self._fits(f"({', '.join(names)}) = ("):
            with self.block(f"({', '.join(names)}) = ("):
                self.line(value)
            self.line(")")
        else:
            self.wrapped("(", names, f") = {value}")

    def _fits(self, text: str) -> bool:
        return len(text) + 4 * self._depth <= _LINE_LENGTH

    def use(self, name: str) -> str:
        """`name`, which the module will import."""
        if name == "Buffer":
            module = "model.buffer"
        elif name == "MalformedRequest":
            module = "model.errors"
        elif name in ("Records", "ZERO_UUID"):
            module = "wire.kafka.primitives"
        elif name.startswith("write_") or name == "null_not_encodable":
            module = "wire.kafka.writing"
        else:
            module = "wire.kafka.reading"
        self.imports[module].add(name)
        return name

    def unpacker(self, fields: Sequence[Field]) -> str:
        return self._compiled("unpack", "unpack_from", fields)

    def packer(self, fields: Sequence[Field]) -> str:
        return self._compiled("pack", "pack", fields)

    def _compiled(self, prefix: str, method: str, fields: Sequence[Field]) -> str:
        name = f"_{prefix}_{''.join(FIXED[field.type][1] for field in fields)}"
        self.compiled[name] = f'Struct(">{"".join(FIXED[field.type][0] for field in fields)}").{method}'
        return name
