"""The OpenAPI document, from the operations as they are registered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import msgspec

from streamhouse.server.http.errors import JSON
from streamhouse.server.http.rest.registry import NUMBERS, Operation
from streamhouse.wire.grpc.error_kinds import name_of_kind
from streamhouse.wire.http.error_statuses import status_of_kind
from streamhouse.wire.http.rest.problems import PROBLEM_JSON, Problem, title_of

_REF = "#/components/schemas/{name}"
_PATH_PARAMETERS = {
    "agent_id": "The agent's id",
    "topic": "The topic's name",
    "partition": "The partition's number",
    "base_offset": "The offset that the segment begins at",
    "group": "The consumer group's name",
    "member": "The member's id, as joining answered it",
}


def openapi_document(operations: Sequence[Operation]) -> dict[str, Any]:
    messages = {Problem, *(part for each in operations for part in (each.body, each.answer, each.query) if part)}
    ordered = sorted(messages, key=str)
    references, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    schemas = dict(zip(ordered, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas, components)
    for query in {each.query for each in operations if each.query}:
        components.pop(query.__name__)  # which are parameters and nobody's schema
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "StreamHouse",
            "version": version("streamhouse"),
            "description": "Topics, records and consumer groups over HTTP. Whatever goes wrong is answered as a "
            "problem document (RFC 9457), whose `code` never changes.",
        },
        "tags": [{"name": tag} for tag in dict.fromkeys(each.tag for each in operations)],
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(operation: Operation, schemas: Mapping[Any, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation_id(operation),
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [
            *_path_parameters(operation.path),
            *_query_parameters(operation, components),
            *_header_parameters(operation),
        ],
        "responses": _responses(operation, schemas),
    }
    if operation.description:
        described["description"] = operation.description
    if operation.body is not None:
        content = {"schema": schemas[operation.body]} | _example(operation.body_example)
        described["requestBody"] = {"required": True, "content": {JSON: content}}
    return described


def operation_id(operation: Operation) -> str:
    words = re.findall(r"[a-z]+", operation.path.removeprefix("/api/v1"))
    return "_".join([operation.method.lower(), *words])


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS.get(name, name),
            "schema": {"type": "integer", "minimum": 0, "maximum": NUMBERS[name]} if name in NUMBERS else _NAME,
        }
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _header_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": True, "description": said, "schema": {"type": "string"}}
        for name, said in operation.headers.items()
    ]


_NAME = {"type": "string", "minLength": 1, "maxLength": 249}


def _query_parameters(operation: Operation, components: Mapping[str, Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    described = components[operation.query.__name__]
    return [
        _query_parameter(name, schema, is_required=name in described["required"])
        for name, schema in described["properties"].items()
    ]


def _query_parameter(name: str, schema: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    """A query cannot say null: to leave a parameter out is to say it."""
    schema = dict(schema)
    said = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(said) == 1:
        del schema["anyOf"]
        schema |= said[0]
    if schema.get("default", ...) is None:
        del schema["default"]
    description = schema.pop("description", "")
    return {"name": name, "in": "query", "required": is_required, "description": description, "schema": schema}


def _responses(operation: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if operation.answer is not None:
        answer = {"content": {operation.media_type: {"schema": schemas[operation.answer]}}}
        answer["content"][operation.media_type] |= _example(operation.answer_example)
    elif operation.media_type != JSON:
        answer = {
            "content": {operation.media_type: {"schema": {"type": "string"}} | _example(operation.answer_example)}
        }
    responses = {str(operation.status): {"description": HTTPStatus(operation.status).phrase} | answer}
    for status, when in operation.other_answers.items():
        responses[str(status)] = {"description": when} | answer
    refused = {"content": {PROBLEM_JSON: {"schema": schemas[Problem]}}}
    for status, codes in sorted(_problems(operation).items()):
        responses.setdefault(str(status), {"description": ", ".join(codes)} | refused)
    responses["default"] = {"description": "Any other problem"} | refused
    return responses


def _problems(operation: Operation) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for kind in operation.errors:
        found.setdefault(status_of_kind(kind), []).append(title_of(name_of_kind(kind)))
    return found


def _example(example: object) -> dict[str, Any]:
    return {} if example is None else {"example": msgspec.json.decode(msgspec.json.encode(example))}
