"""Parts of messages as clients write them: texts, pictures, documents."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from lamella.attach import Attachment, Note, Picture, Tool
from lamella.engine.hosts.history import HostMessage
from lamella.errors import CallError
from lamella.wiring import part_message

Part = Mapping[str, Any]
_TEXTS = ("text", "input_text", "output_text")


def read_user(content: str | Sequence[Part]) -> HostMessage:
    """A user's message: what was typed, and the documents and pictures that came with it."""
    parts: Sequence[Part] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    # A part may be a document and nothing else; a message that is only documents is what was typed.
    message = _read_parts(parts, beside=True)
    return message if message.text else _read_parts(parts, beside=False)


def _read_parts(parts: Sequence[Part], *, beside: bool) -> HostMessage:
    typed: list[str] = []
    attach: list[Attachment] = []
    for part in parts:
        if part.get("type") in _TEXTS:
            text, found = part_message(_text(part.get("text")), beside=beside)
            typed.append(text)
            attach += found
        else:
            attach.append(_read_other(part))
    return HostMessage("user", "\n\n".join(filter(None, typed)), tuple(attach))


def read_text(content: object) -> str:
    """The text of a message that has nothing else: a text, or parts that are texts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        raise CallError("The content of a message is no text and no list.", hint="Write it as the API has it.")
    return "".join(_text(part.get("text") or part.get("refusal")) for part in content if isinstance(part, Mapping))


def read_tools(tools: Sequence[Part] | None, *, off: bool, kind: str, schema: str) -> tuple[Tool, ...] | None:
    """The tools that a client runs, as its API tells of them; none are told where they are ``off``.

    ``kind`` is the type of tools that clients run, ``schema`` the field that describes their arguments.
    """
    if tools is None or off:
        return None if tools is None else ()
    return tuple(_read_tool(one, kind=kind, schema=schema) for one in tools)


def _read_tool(one: Part, *, kind: str, schema: str) -> Tool:
    given = one.get(kind, one)
    if one.get("type", kind) != kind or not isinstance(given, Mapping):
        raise CallError(f"A tool of type {str(one.get('type'))[:40]!r} is not run here.", hint="Send your own.")
    parameters = given.get(schema)
    return Tool(
        name=str(given.get("name", "")),
        description=str(given.get("description") or ""),
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def keep_given(**settings: object) -> dict[str, object]:
    """Settings that a request says something of."""
    return {name: value for name, value in settings.items() if value is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _read_other(part: Part) -> Attachment:
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, Mapping) else given
        if isinstance(url, str):
            return Picture(url=url)
    source = part.get("source")
    if isinstance(source, Mapping) and kind == "image":
        return _read_picture(source)
    if isinstance(source, Mapping) and kind == "document" and source.get("type") == "text":
        return Note(path=_text(part.get("title")) or "document.md", text=_text(source.get("data")))
    raise CallError(
        f"A part of type {str(kind)[:40]!r} is not taken here.", hint="Send texts, pictures and documents as text."
    )


def _read_picture(source: Mapping[str, Any]) -> Picture:
    if source.get("type") == "url":
        return Picture(url=_text(source.get("url")))
    try:
        data = b64decode(_text(source.get("data")), validate=True)
    except ValueError as error:
        raise CallError("The data of a picture is not base64.", hint="Write its bytes as base64.") from error
    return Picture(data=data, media_type=_text(source.get("media_type")) or None)
