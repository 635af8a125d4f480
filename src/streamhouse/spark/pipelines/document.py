"""A YAML file as strict entries: every value is asked for by name, and what is wrong is noted with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import yaml

from streamhouse.model.errors import InvalidConfig, InvalidInput
from streamhouse.model.units import parse_duration_ms
from streamhouse.spark.pipelines.problems import Problems, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")

_NULL_TAG = "tag:yaml.org,2002:null"
_BLOCK_STYLES = ("|", ">")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_YES_NO = {"true": True, "yes": True, "false": False, "no": False}


class Entry:
    """One mapping of the file. Call `finish` when everything was asked for: what is left over is a mistake."""

    def __init__(self, node: yaml.MappingNode, what: str, problems: Problems, variables: Mapping[str, str]) -> None:
        self.line = _line(node)
        self.what = what
        self._problems = problems
        self._variables = variables
        self._nodes: dict[str, tuple[int, yaml.Node]] = {}
        self._asked: list[str] = []
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if key in self._nodes:
                problems.add(_line(key_node), f"{key!r} is given twice in {what}")
            self._nodes[key] = (_line(key_node), value_node)

    def has(self, key: str) -> bool:
        return key in self._nodes

    def line_of(self, key: str) -> int:
        """Of the key; of the entry itself if it has no such key."""
        return self._nodes[key][0] if key in self._nodes else self.line

    def text_line_of(self, key: str) -> int:
        """Where the text itself begins: below the key if it is a block."""
        node = self._nodes[key][1] if key in self._nodes else None
        if not isinstance(node, yaml.ScalarNode):
            return self.line_of(key)
        return _line(node) + (1 if node.style in _BLOCK_STYLES else 0)

    def note(self, key: str, message: str) -> None:
        self._problems.add(self.line_of(key), message)

    def expect(self, *keys: str) -> None:
        """They may be there, whether or not anybody asks for them."""
        self._asked += keys

    # -- values -------------------------------------------------------------------------------------------------

    def literal(self, key: str) -> str:
        """A text that must be there, as it is written."""
        found = self._scalar(key)
        if found is None and key not in self._nodes:
            self._problems.add(self.line, f"{self.what} needs {key!r}")
        return found or ""

    def text(self, key: str) -> str:
        """A text that must be there; ${NAME} and ${NAME:-default} are taken from the environment."""
        return self._expand(key, self.literal(key))

    def text_or_none(self, key: str) -> str | None:
        found = self._scalar(key)
        return None if found is None else self._expand(key, found)

    def literal_or_none(self, key: str) -> str | None:
        return self._scalar(key)

    def checked(self, key: str, check: Callable[[str], Value], default: Value) -> Value:
        """What `check` makes of the text; InvalidInput is noted here."""
        found = self.text_or_none(key)
        if found is None:
            return default
        try:
            return check(found)
        except InvalidInput as problem:
            self.note(key, f"{key!r}: {problem}")
            return default

    def choice(self, key: str, choices: type[Choice], default: Choice) -> Choice:
        found = self.text_or_none(key)
        if found is None:
            return default
        try:
            return choices(found)
        except ValueError:
            self.note(key, f"{key!r} cannot be {found!r}{did_you_mean(found, [each.value for each in choices])}")
            return default

    def duration_ms(self, key: str) -> int:
        if not self.has(key):
            self.literal(key)
        return self.checked(key, parse_duration_ms, 0)

    def flag(self, key: str, default: bool) -> bool:
        def parse(text: str) -> bool:
            if text.lower() not in _YES_NO:
                raise InvalidConfig(f"{text!r} is neither true nor false")
            return _YES_NO[text.lower()]

        return self.checked(key, parse, default)

    def positive(self, key: str) -> int | None:
        def parse(text: str) -> int | None:
            if not text.isdecimal() or int(text) < 1:
                raise InvalidConfig(f"{text!r} is not a positive whole number")
            return int(text)

        return self.checked(key, parse, None)

    def texts(self, key: str) -> tuple[str, ...]:
        """A text or a list of them; none if it is not given."""
        self.expect(key)
        node = self._nodes[key][1] if key in self._nodes else None
        if isinstance(node, yaml.SequenceNode):
            items = [item for item in node.value if isinstance(item, yaml.ScalarNode)]
            if len(items) != len(node.value):
                self.note(key, f"{key!r} must be a list of names")
            return tuple(self._expand(key, item.value) for item in items)
        found = self.text_or_none(key)
        return () if found is None else (found,)

    def pairs(self, key: str) -> dict[str, str]:
        """A mapping of texts to texts, whose keys are the user's own."""
        entry = self.entry(key)
        if entry is None:
            return {}
        return {name: entry.text_or_none(name) or "" for name in entry._nodes}

    # -- entries below ------------------------------------------------------------------------------------------

    def entry(self, key: str) -> Entry | None:
        self.expect(key)
        if key not in self._nodes:
            return None
        node = self._nodes[key][1]
        if not isinstance(node, yaml.MappingNode):
            self.note(key, f"{key!r} must be a mapping")
            return None
        return Entry(node, f"{key!r} of {self.what}", self._problems, self._variables)

    def entries(self, key: str, what: str) -> list[Entry]:
        """The mappings of a list; `what` is one of them."""
        self.expect(key)
        if key not in self._nodes:
            return []
        node = self._nodes[key][1]
        items: Sequence[yaml.Node] = node.value if isinstance(node, yaml.SequenceNode) else ()
        if not isinstance(node, yaml.SequenceNode):
            self.note(key, f"{key!r} must be a list, each item beginning with a dash")
        entries = []
        for item in items:
            if isinstance(item, yaml.MappingNode):
                entries.append(Entry(item, what, self._problems, self._variables))
            else:
                self._problems.add(_line(item), f"{what} must be a mapping")
        return entries

    def finish(self) -> None:
        for key, (line, _) in self._nodes.items():
            if key not in self._asked:
                self._problems.add(line, f"{self.what} has no {key!r}{did_you_mean(key, dict.fromkeys(self._asked))}")

    # -- inside -------------------------------------------------------------------------------------------------

    def _scalar(self, key: str) -> str | None:
        self.expect(key)
        if key not in self._nodes:
            return None
        node = self._nodes[key][1]
        if not isinstance(node, yaml.ScalarNode):
            self.note(key, f"{key!r} must be a single value")
            return None
        if node.tag == _NULL_TAG or not node.value.strip():
            self.note(key, f"{key!r} is empty")
            return None
        return str(node.value)

    def _expand(self, key: str, text: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            value = self._variables.get(match[1]) or match[2]
            if value is None:
                self.note(key, f"the environment variable {match[1]} is not set; set it, or write ${{{match[1]}:-…}}")
            return value or ""

        return _VARIABLE.sub(value_of, text)


def read_document(text: str, what: str, problems: Problems, variables: Mapping[str, str]) -> Entry | None:
    """The file's outermost mapping, or None if it is not YAML of that shape, which is noted."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem or error.context}")
        return None
    except yaml.YAMLError as error:
        problems.add(1, f"this is not YAML: {error}")
        return None
    if not isinstance(node, yaml.MappingNode):
        problems.add(1, f"{what} is a mapping that begins with `name:`")
        return None
    return Entry(node, what, problems, variables)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
