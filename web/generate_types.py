"""Write the TypeScript types of the page from the OpenAPI document of the server.

``python web/generate_types.py`` writes ``web/src/lib/api/types.ts``; a test checks that the file is up to date.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from lamella.schemas.answers import EVENTS
from lamella.server.app import ROUTERS
from lamella.server.openapi import build_openapi

TYPES_FILE = Path(__file__).parent / "src" / "lib" / "api" / "types.ts"
_HEADER = "// Generated from the OpenAPI document by `make web`. Do not edit.\n"
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def render_types() -> str:
    """Return the types of all bodies, one interface each, and a map of the events of a stream."""
    app = FastAPI(title="Lamella", version="0", docs_url=None, redoc_url=None)
    for router in ROUTERS:
        app.include_router(router)
    schemas: Mapping[str, dict[str, Any]] = build_openapi(app)["components"]["schemas"]
    parts = [_HEADER, *(_render_schema(name, schema) for name, schema in sorted(schemas.items()))]
    events = "".join(f"  {name}: {body.__name__};\n" for name, body in EVENTS.items() if body.__name__ in schemas)
    parts.append(f"/** The body of each event of a streamed answer. */\nexport interface StreamEvents {{\n{events}}}\n")
    return "\n".join(parts)


def _render_schema(name: str, schema: Mapping[str, Any]) -> str:
    comment = _render_comment(schema, "")
    if "properties" not in schema:
        return f"{comment}export type {name} = {_render_type(schema)};\n"
    return f"{comment}export interface {name} {_render_object(schema, '')}\n"


def _render_object(schema: Mapping[str, Any], indent: str) -> str:
    required = set(schema.get("required", ()))
    lines = []
    for name, field in schema["properties"].items():
        key = name if name.isidentifier() else json.dumps(name)
        mark = "" if name in required else "?"
        lines.append(f"{_render_comment(field, indent + '  ')}{indent}  {key}{mark}: {_render_type(field, indent)};\n")
    return "{\n" + "".join(lines) + indent + "}"


def _render_comment(schema: Mapping[str, Any], indent: str) -> str:
    text = " ".join(str(schema.get("description", "")).split()).replace("*/", "* /")
    return f"{indent}/** {text} */\n" if text else ""


def _render_type(schema: Mapping[str, Any], indent: str = "") -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return _union(json.dumps(one) for one in schema["enum"])
    if "anyOf" in schema:
        return _union(_render_type(one, indent) for one in schema["anyOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_render_type({**schema, "type": one}, indent) for one in kind)
    if kind == "array":
        if "prefixItems" in schema:
            return "[" + ", ".join(_render_type(one, indent) for one in schema["prefixItems"]) + "]"
        return f"Array<{_render_type(schema.get('items', {}), indent)}>"
    if kind == "object":
        if "properties" in schema:
            return _render_object(schema, indent + "  ")
        values = schema.get("additionalProperties")
        return f"Record<string, {_render_type(values, indent) if isinstance(values, dict) else 'unknown'}>"
    return _SCALARS.get(str(kind), "unknown")


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types))


if __name__ == "__main__":
    TYPES_FILE.parent.mkdir(parents=True, exist_ok=True)
    TYPES_FILE.write_text(render_types(), encoding="utf-8")
