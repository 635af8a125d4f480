"""Options of a Spark reader or writer: names in any case, values checked, and how to reach a node and its objects."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.units import parse_duration_ms, parse_size_bytes
from streamhouse.objects.blocking import BlockingStore, blocking_store
from streamhouse.objects.s3 import S3Options
from streamhouse.wire.http.planning import ObjectsLocation

Value = TypeVar("Value")

CONNECTION_OPTIONS = (
    "endpoint",
    "s3.access_key_id",
    "s3.secret_access_key",
    "s3.session_token",
    "s3.endpoint",
    "s3.region",
)
"""What a source and a sink have in common; see `Connection`."""

# A query that was written for Kafka keeps these; they have nothing to say here.
_KAFKA_PREFIX = "kafka."
# Where the objects of a node for tests are, unless it is told.
_OWN_MEMORY = "memory:"
# What Spark adds to the options of a table that is made in its catalog.
_OF_A_TABLE = "provider"
_VIEW_HINT = (
    "what works is CREATE TEMPORARY VIEW orders USING streamhouse"
    " OPTIONS (endpoint 'http://127.0.0.1:8080', subscribe 'orders')"
)


class Options:
    """What the user gave, asked for by name. An empty value is one that was not given."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def check_known(self, known: Iterable[str]) -> None:
        """A misspelt option that is silently ignored is worse than an error."""
        if _OF_A_TABLE in self._given:
            raise InvalidConfig(
                "a topic cannot be a table of Spark's catalog: Spark tells a Python source none of a table's options"
                " when the table is read",
                hint=_VIEW_HINT,
            )
        if not self._given:
            raise InvalidConfig(
                "no options were given, not even 'endpoint'; if this is a table that was made with CREATE TABLE … USING"
                " streamhouse, Spark tells a Python source none of its options",
                hint=_VIEW_HINT,
            )
        names = {name.lower(): name for name in known}
        for name in self._given:
            if name not in names and not name.startswith(_KAFKA_PREFIX):
                close = difflib.get_close_matches(name, names, n=1)
                hint = (
                    f"did you mean {names[close[0]]!r}?" if close else f"there are {', '.join(sorted(names.values()))}"
                )
                raise InvalidConfig(f"there is no option {name!r}", hint=hint)

    def has(self, name: str) -> bool:
        return bool(self.text(name))

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name.lower(), "").strip() or default

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        chosen = self.text(name, default).lower()
        if chosen not in choices:
            raise InvalidConfig(f"option {name!r} cannot be {chosen!r}", hint=f"it is one of {', '.join(choices)}")
        return chosen

    def boolean(self, name: str, default: bool) -> bool:
        return self.choice(name, str(default).lower(), ("true", "false")) == "true"

    def count(self, name: str) -> int | None:
        """A positive whole number."""
        return self._parsed(name, _positive)

    def size_bytes(self, name: str) -> int | None:
        return self._parsed(name, lambda text: _positive(str(parse_size_bytes(text))))

    def duration_ms(self, name: str) -> int | None:
        return self._parsed(name, lambda text: _positive(str(parse_duration_ms(text))))

    def _parsed(self, name: str, parse: Callable[[str], Value]) -> Value | None:
        if not self.has(name):
            return None
        try:
            return parse(self.text(name))
        except InvalidConfig as problem:
            raise InvalidConfig(f"option {name!r}: {problem.message}", hint=problem.hint) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How drivers and executors reach a node, and the object store that it names. What is empty in `s3` is left to the
    node's own settings, and keys to the AWS_* variables of the executors' environment."""

    endpoint: str
    s3: S3Options

    @staticmethod
    def parse(options: Options) -> Connection:
        endpoint = options.text("endpoint")
        if not endpoint:
            raise InvalidConfig(
                "option 'endpoint' is missing",
                hint="it is the HTTP address of a node, such as http://127.0.0.1:8080",
            )
        return Connection(
            endpoint=endpoint,
            s3=S3Options(
                endpoint=options.text("s3.endpoint"),
                region=options.text("s3.region"),
                access_key_id=options.text("s3.access_key_id"),
                secret_access_key=options.text("s3.secret_access_key"),
                session_token=options.text("s3.session_token"),
            ),
        )

    def store(self, location: ObjectsLocation) -> BlockingStore:
        """The node's object store, with our own keys; the process's only one, so cheap to ask for. InvalidConfig if
        nobody but the node can see it."""
        if location.url == _OWN_MEMORY:
            raise InvalidConfig(
                "this node keeps its objects in its own memory, which Spark's workers do not see",
                hint="give it a directory or a bucket, in a test: Broker(http=True, durable=True); or set presign=true",
            )
        return blocking_store(
            location.url,
            replace(
                self.s3,
                endpoint=self.s3.endpoint or location.endpoint,
                region=self.s3.region or location.region or S3Options().region,
                path_style=location.path_style,
            ),
        )


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise InvalidConfig(f"{text[:40]!r} is not a positive whole number")
    return number
