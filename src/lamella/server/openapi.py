"""JSON responses, and the OpenAPI document that describes them.

A route of a router from ``make_router`` returns a body of ``lamella.schemas``. Its return type is the response in the OpenAPI
document, so a route and its description cannot differ. ``describe_response`` describes responses of other kinds.
``build_openapi`` returns the document, with recorded examples of requests and responses.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib.resources import files
from inspect import iscoroutinefunction
from typing import Any, get_type_hints

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from fastapi.routing import APIRoute
from msgspec import Struct

from lamella.schemas.answers import EVENTS
from lamella.schemas.body import ErrorJson
from lamella.schemas.changes import CHANGE_EVENTS

API_DESCRIPTION = (
    "The context engine for LLM chat over HTTP. Every error has one shape; streams are server-sent events."
)
SCHEMA_REF = "#/components/schemas/{name}"
ResponseDocs = dict[int | str, dict[str, Any]]
_JSON_TYPES = ["object", "array", "string", "number", "boolean", "null"]
_ERROR_EXAMPLE = {
    "error": {
        "code": "not_found",
        "message": "There is no conversation 'garden'.",
        "hint": "GET /v1/conversations lists the conversations.",
    }
}
# The bodies that routes return, by the name of their component.
_BODIES: dict[str, type[Struct]] = {}


def json_response(body: Struct, status: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def describe_response(
    body: type[Struct],
    status: int = 200,
    *,
    other_content: Mapping[str, object] | None = None,
    description: str = "",
) -> ResponseDocs:
    """Return the OpenAPI entry for a response with a JSON body; ``other_content`` has further content types."""
    _BODIES[body.__name__] = body
    content = {"application/json": {"schema": schema_ref(body)}, **(other_content or {})}
    return {status: {"content": content, **({"description": description} if description else {})}}


def describe_request(body: type[Struct]) -> dict[str, Any]:
    """Return the OpenAPI entry for a route that reads a JSON body as the client wrote it."""
    _BODIES[body.__name__] = body
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema_ref(body)}}}}


def schema_ref(body: type[Struct]) -> dict[str, object]:
    """Return the reference to a body in the OpenAPI document."""
    return {"$ref": SCHEMA_REF.format(name=body.__name__)}


class _BodyRoute(APIRoute):
    """A route that encodes the body that its endpoint returns, and describes it by the endpoint's return type."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - as in FastAPI
        body = get_type_hints(endpoint).get("return")
        if isinstance(body, type) and issubclass(body, Struct):
            status = options.get("status_code") or 200
            options["responses"] = {**describe_response(body, status), **(options.get("responses") or {})}
            options["response_model"] = None
            options["response_class"] = Response
            endpoint = _encode_result(endpoint, status)
        super().__init__(path, endpoint, **options)


def _encode_result(endpoint: Callable[..., Any], status: int) -> Callable[..., Any]:
    @wraps(endpoint)
    async def respond_async(**arguments: object) -> Response:
        return json_response(await endpoint(**arguments), status)

    @wraps(endpoint)
    def respond(**arguments: object) -> Response:
        return json_response(endpoint(**arguments), status)

    respond_by_kind = respond_async if iscoroutinefunction(endpoint) else respond
    respond_by_kind.__annotations__ = {**endpoint.__annotations__, "return": Response}
    return respond_by_kind


def make_router(*, prefix: str = "", tag: str) -> APIRouter:
    """Return a router whose routes may return bodies."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=_BodyRoute)


# Streams of server-sent events.

_STRING_SCHEMA = {"type": "string"}
_EVENT_FIELD_SCHEMAS = {"id": _STRING_SCHEMA, "retry": {"type": "integer", "minimum": 0}}


def _event_schema(name: str, body: type[Struct]) -> dict[str, object]:
    data = {"contentMediaType": "application/json", "contentSchema": schema_ref(body)}
    return {
        "type": "object",
        "title": name,
        "required": ["event", "data"],
        "properties": {**_EVENT_FIELD_SCHEMAS, "event": {"const": name}, "data": {**_STRING_SCHEMA, **data}},
    }


# OpenAPI descriptions of streams: chunks of another API, and the named events of an answer.
CHUNK_STREAM_DOCS: dict[str, object] = {
    "text/event-stream": {
        "itemSchema": {
            "type": "object",
            "properties": {**_EVENT_FIELD_SCHEMAS, "event": _STRING_SCHEMA, "data": _STRING_SCHEMA},
        }
    }
}
EVENT_STREAM_DOCS: dict[str, object] = {
    "text/event-stream": {"itemSchema": {"oneOf": [_event_schema(name, body) for name, body in EVENTS.items()]}}
}
CHANGE_STREAM_DOCS: dict[str, object] = {
    "text/event-stream": {"itemSchema": {"oneOf": [_event_schema(name, body) for name, body in CHANGE_EVENTS.items()]}}
}


# The document.


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an application, built once, with the same error format for every route."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=API_DESCRIPTION, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        schemas |= build_body_schemas([*_BODIES.values(), *EVENTS.values(), *CHANGE_EVENTS.values()])
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}, {}]
        _complete_operations(document["paths"])
        app.openapi_schema = document
    return app.openapi_schema


def build_body_schemas(bodies: Iterable[type[Struct]]) -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of bodies, and of all bodies within them, by name.

    The schemas allow unknown fields, because later versions may add some.
    """
    _, schemas = msgspec.json.schema_components(
        dict.fromkeys(bodies), schema_hook=_describe_any_value, ref_template=SCHEMA_REF
    )
    for schema in schemas.values():
        schema.pop("additionalProperties", None)
        # Only fields that are left out unless set have no default, and are not required.
        fixed = [name for name, field in schema["properties"].items() if "default" in field]
        schema["required"] = [name for name in schema["properties"] if name in schema["required"] or name in fixed]
    return schemas


def _describe_any_value(kind: type) -> dict[str, object]:
    if kind is not object:
        raise NotImplementedError
    return {"type": _JSON_TYPES}


def load_examples() -> dict[str, dict[str, Any]]:
    """Return a recorded request and response (status, media type and body) for each route."""
    text = (files("lamella.server") / "examples.json").read_text(encoding="utf-8")
    examples: dict[str, dict[str, Any]] = json.loads(text)
    return examples


def _complete_operations(paths: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    examples = load_examples()
    for path, operations in paths.items():
        for method, operation in operations.items():
            responses = operation["responses"]
            responses.pop("422", None)
            for response in responses.values():
                _drop_duplicate_description(response)
            _add_example(operation, examples.get(f"{method.upper()} {path}", {}))
            responses["default"] = _describe_errors()


def _drop_duplicate_description(response: Mapping[str, Any]) -> None:
    """Reduce the schema of a referenced body to its ``$ref``, because the body's own schema has a description."""
    for content in response.get("content", {}).values():
        schema = content.get("schema", {})
        if "$ref" in schema:
            content["schema"] = {"$ref": schema["$ref"]}


def _add_example(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "answer" in example:
        contents = operation["responses"][str(example["status"])].setdefault("content", {})
        contents.setdefault(example["type"], {})["example"] = example["answer"]


def _describe_errors() -> Mapping[str, object]:
    content = {"application/json": {"schema": schema_ref(ErrorJson), "example": _ERROR_EXAMPLE}}
    return {"description": "What went wrong, and what to do next.", "content": content}
