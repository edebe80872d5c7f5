"""Describing: what can be asked and what comes back, as OpenAPI has it, each with an example that was once answered."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from lamella.faces.server.bodies.answers import EVENTS

ABOUT = "The context engine for LLM chat over HTTP. Every error has one shape; streams are server-sent events."
_REFER = "#/components/schemas/"
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {
                "code": {"type": "string", "examples": ["not_found"]},
                "message": {"type": "string", "examples": ["There is no conversation 'garden'."]},
                "hint": {"type": "string", "examples": ["GET /v1/conversations lists those there are."]},
            },
        }
    },
}
_WRONG = {
    "error": {
        "code": "not_found",
        "message": "There is no conversation 'garden'.",
        "hint": "GET /v1/conversations lists those there are.",
    }
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The description of an application, made once, with the one shape of errors everywhere."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
        schemas = schema.setdefault("components", {}).setdefault("schemas", {})
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        events = [(body, "serialization") for body in dict.fromkeys(EVENTS.values())]
        schemas |= models_json_schema(events, ref_template=f"{_REFER}{{model}}")[1]["$defs"]  # type: ignore[arg-type]
        schemas["Error"] = _ERROR
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        _complete(schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema


def load_examples() -> dict[str, dict[str, Any]]:
    """For each address a request and what it was answered with: its status, its media type and its body."""
    text = (files("lamella.faces.server") / "examples.json").read_text(encoding="utf-8")
    examples: dict[str, dict[str, Any]] = json.loads(text)
    return examples


def _complete(paths: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    examples = load_examples()
    for path, operations in paths.items():
        for method, operation in operations.items():
            responses = operation["responses"]
            responses.pop("422", None)
            for response in responses.values():
                _tidy(response)
            _show(operation, examples.get(f"{method.upper()} {path}", {}))
            responses["default"] = _refer_error()


def _tidy(response: Mapping[str, Any]) -> None:
    """A body that is told by its name has nothing said of it beside that."""
    for content in response.get("content", {}).values():
        schema = content.get("schema", {})
        if "$ref" in schema:
            content["schema"] = {"$ref": schema["$ref"]}


def _show(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    if "request" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["request"]
    if "answer" in example:
        contents = operation["responses"][str(example["status"])].setdefault("content", {})
        contents.setdefault(example["type"], {})["example"] = example["answer"]


def _refer_error() -> Mapping[str, object]:
    content = {"application/json": {"schema": {"$ref": f"{_REFER}Error"}, "example": _WRONG}}
    return {"description": "What went wrong, and what to do next.", "content": content}
