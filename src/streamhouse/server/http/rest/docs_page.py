"""The docs page: the OpenAPI document as one HTML page without scripts or anything from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from streamhouse.wire.http.rest.problems import CODES, title_of

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; text-transform: capitalize; }
details { border: 1px solid #8886; border-radius: 6px; margin: .5rem 0; padding: .5rem 1rem; }
summary { cursor: pointer; }
code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { background: #8882; padding: .75rem; overflow: auto; border-radius: 6px; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
.about { color: #888; margin-left: .5rem; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; }
"""


def docs_page(document: Mapping[str, Any]) -> str:
    return "".join(_page(document))


def _page(document: Mapping[str, Any]) -> Iterator[str]:
    info = document["info"]
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
    yield f"<h1>{escape(info['title'])} API <small>{escape(info['version'])}</small></h1>"
    yield f"<p>{escape(info['description'])}</p>"
    yield '<p>For programs: <a href="/openapi.json">/openapi.json</a>.</p>'
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2>"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    yield from _operation(method.upper(), path, operation)
    yield "<h2>Problems</h2><table>"
    for name in CODES:
        yield f'<tr id="{escape(name)}"><td><code>{escape(name)}</code></td><td>{escape(title_of(name))}</td></tr>'
    yield "</table></body></html>"


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f'<details id="{escape(operation["operationId"])}"><summary><span class="method">{method}</span>'
    yield f'<code>{escape(path)}</code><span class="about">{escape(operation["summary"])}</span></summary>'
    if "description" in operation:
        yield f"<p>{escape(operation['description'])}</p>"
    yield from _parameters(operation["parameters"])
    if "requestBody" in operation:
        yield "<h4>Body</h4>"
        yield from _contents(operation["requestBody"]["content"])
    for status, response in operation["responses"].items():
        yield f"<h4>{escape(status)} {escape(response['description'])}</h4>"
        yield from _contents(response.get("content", {}))
    yield "</details>"


def _parameters(parameters: list[dict[str, Any]]) -> Iterator[str]:
    if not parameters:
        return
    yield "<table>"
    for each in parameters:
        schema = each["schema"]
        default = f"; {schema['default']} by default" if "default" in schema else ""
        yield f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(_kind(schema))}</td>"
        yield f"<td>{escape(each['description'] + default)}</td></tr>"
    yield "</table>"


def _contents(contents: Mapping[str, Any]) -> Iterator[str]:
    for media_type, content in contents.items():
        if "example" in content:
            yield f"<pre>{escape(_text(content['example']))}</pre>"
        else:
            yield f"<p><code>{escape(media_type)}</code> {escape(_kind(content['schema']))}</p>"


def _text(example: object) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    return str(schema.get("type", ""))
