"""Writes docs/kafka-compatibility.md from the handlers: each says in its docstring what it does and what it lacks.

A handler's docstring opens with `Name (key), versions A to B: what it does`, which must agree with the registry."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from streamhouse.server.kafka.handlers import api_versions, produce
from streamhouse.server.kafka.routing import ROUTES
from streamhouse.wire.kafka.registry import APIS, Api

PAGE = Path(__file__).parents[1] / "docs" / "kafka-compatibility.md"
_OPENING = re.compile(
    r"(?P<name>\w+) \((?P<key>\d+)\), versions? (?P<versions>\d+(?: (?:to|and) \d+)?)(?P<sep>[:.])\s*"
)
_INTRODUCTION = """\
# Kafka compatibility

<!-- Written by tools/write_kafka_compatibility.py from the handlers' docstrings. Do not edit. -->

What a Kafka client can ask of a node, in which versions, and where the answer differs from Apache Kafka's. The
handlers are in `src/streamhouse/server/kafka/handlers`, one file for each API; the table that ApiVersions tells
clients is derived from the same registry. Real clients (confluent-kafka, aiokafka, kafka-python, kcat) are run against
a node by `tests/compat`.
"""
_NOTES = """\
## For every request

- Replies go out in the order of the requests. A connection's produces overlap; every other request starts when all
  earlier ones of its connection are answered.
- A version that an API does not have closes the connection, except for ApiVersions, which answers with version 0 and
  `UNSUPPORTED_VERSION`.
- ApiVersions names Produce from version 0 on, as Kafka 4 does, because librdkafka would otherwise take the broker for
  one without compression. Requests of versions 0 to 2 close the connection all the same.
- A frame larger than `max_request_bytes`, or one that is not a request, closes the connection; memory is taken for what
  arrives, never for what a length or a count promises.
- While the metadata store is away, what needs it is answered with an error that clients try again.
- A topic config that has no effect here, such as `min.insync.replicas`, is taken and told again all the same;
  [configuration](configuration.md#topic-configs) says which these are. So is a group config, such as
  `share.session.timeout.ms`. A name that Kafka does not know is refused with `INVALID_CONFIG`, and so is
  `remote.storage.enable=true`: there is no tiered storage in Kafka's sense.
- There is no authentication and no TLS: bind to an address that only trusted clients reach.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApi:
    """An API and what its handler says of itself: the summary's first sentence, and the rest."""

    api: Api
    summary: str
    details: str


def describe(api: Api, docstring: str) -> ServedApi:
    """ValueError if the docstring does not open as it should, or says other versions than the registry."""
    opening = _OPENING.match(docstring)
    if opening is None:
        raise ValueError(f"{api.name}: its handler's docstring does not open with `Name (key), versions A to B:`")
    if (opening["name"], int(opening["key"])) != (api.name, api.key):
        raise ValueError(f"{api.name} ({api.key}): its handler calls itself {opening['name']} ({opening['key']})")
    numbers = [int(number) for number in re.findall(r"\d+", opening["versions"])]
    if (numbers[0], numbers[-1]) != (api.min_version, api.max_version):
        raise ValueError(f"{api.name}: versions {api.min_version} to {api.max_version}, not {opening['versions']}")
    paragraphs = [" ".join(paragraph.split()) for paragraph in docstring[opening.end() :].split("\n\n")]
    return ServedApi(api=api, summary=paragraphs[0], details=" ".join(paragraphs[1:]))


def served_apis() -> list[ServedApi]:
    handlers = {route.api.key: (route.api, _module_docstring(route.handler.__module__)) for route in ROUTES.values()}
    for module in (produce, api_versions):
        handlers[module.API.key] = (module.API, _module_docstring(module.__name__))
    return [describe(*handlers[key]) for key in sorted(handlers)]


def _module_docstring(module: str) -> str:
    docstring = sys.modules[module].__doc__
    if docstring is None:
        raise ValueError(f"{module} has no docstring")
    return docstring


def render() -> str:
    served = served_apis()
    keys = {item.api.key for item in served}
    parts = [
        _INTRODUCTION,
        "## APIs\n",
        "| key | API | versions | flexible since | what it does |",
        "| ---: | --- | --- | --- | --- |",
        *(_row(item) for item in served),
        "",
        "## Behaviour and gaps\n",
        *(_wrapped(f"**{item.api.name}.** {item.details}") + "\n" for item in served if item.details),
        _NOTES,
        "## Not served yet\n",
        "The codec reads and writes these, but no handler answers them: ApiVersions does not name them, and a request",
        "closes the connection.\n",
        _wrapped(", ".join(f"{api.name} ({key})" for key, api in APIS.items() if key not in keys) + "."),
    ]
    return "\n".join(parts) + "\n"


def _row(item: ServedApi) -> str:
    api = item.api
    versions = f"{api.min_version} to {api.max_version}" if api.min_version < api.max_version else str(api.min_version)
    flexible = "-" if api.flexible_since is None else str(api.flexible_since)
    return f"| {api.key} | {api.name} | {versions} | {flexible} | {_sentence(item.summary)} |"


def _sentence(text: str) -> str:
    """Safe in a table's cell, and a sentence of its own."""
    text = text.replace("|", "\\|")
    return text[:1].upper() + text[1:] or "-"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/kafka-compatibility.md from the handlers.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    check_only = parser.parse_args().check
    try:
        page = render()
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 1
    if not check_only:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != page:
        print("docs/kafka-compatibility.md is not up to date: run tools/write_kafka_compatibility.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
