"""What a call gave, in words for a model: texts as they are, pictures and other bytes told of."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from lamella.adapters.tools.mcp.listing import clean_words

_LINE = 200


class ToolServerError(Exception):
    """A call that came to nothing, in words for the model."""


def tell_output(content: Iterable[Any], structured: object) -> str:
    """The blocks of a result, each on lines of its own; where there are none, what it gave as data."""
    text = "\n".join(filter(None, _tell_blocks(content)))
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    # A server may write halves of characters, which no request can have.
    return text.encode(errors="replace").decode() or "(nothing)"


def _tell_blocks(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        match block.type:
            case "text":
                yield block.text
            case "image" | "audio":
                what = "a picture" if block.type == "image" else "a sound"
                yield f"({what}, {_line(block.mime_type)}, {_count_bytes(block.data)}: it cannot be shown here)"
            case "resource":
                yield _tell_resource(block.resource)
            case "resource_link":
                yield f"(see {_line(block.name)}: {_line(str(block.uri))})"
            case other:
                yield f"({_line(str(other))}: it cannot be shown here)"


def _tell_resource(resource: Any) -> str:  # noqa: ANN401 - one of two models of the SDK's
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    kind = _line(resource.mime_type or "bytes")
    return f"({_line(str(resource.uri))}, {kind}, {_count_bytes(resource.blob)}: it cannot be shown here)"


def _count_bytes(data: str) -> str:
    return f"{len(data) * 3 // 4:,} bytes"


def _line(text: str) -> str:
    return " ".join(clean_words(text, _LINE).split())
