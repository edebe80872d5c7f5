"""Scripts in files: replies for programs under test that run in a process of their own. Not a model."""

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from lamella.adapters.files.reading import read_plain
from lamella.adapters.providers.scripted.provider import Line, ScriptedProvider
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.usage import Usage
from lamella.errors import SettingError

_HINT = 'Write a JSON list of replies, such as ["At noon.", {"text": "At six.", "usage": {"plain": 9, "read": 0}}].'


class _ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ScriptUsage(_ScriptPart):
    """What a reply says it weighed."""

    plain: int | None = Field(default=None, ge=0)
    read: int | None = Field(default=None, ge=0)
    write: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)


class ScriptCall(_ScriptPart):
    """A tool that a reply calls."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    id: str = ""


class ScriptReply(_ScriptPart):
    """One reply; its text comes in pieces of ``chunk`` characters, each after ``delay`` seconds."""

    text: str = ""
    calls: list[ScriptCall] = Field(default_factory=list)
    reasoning: str = ""
    chunk: int | None = Field(default=None, gt=0)
    delay: float = Field(default=0.0, ge=0, le=60)
    usage: ScriptUsage | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"text", "calls"}:
            raise ValueError("a reply has text or calls")
        return self


_REPLIES = TypeAdapter(list[str | ScriptReply])


def open_script(path: Path) -> ScriptedProvider:
    """A provider that says what a file has, one reply after the other."""
    try:
        replies = _REPLIES.validate_json(read_plain(path))
    except OSError as error:
        raise SettingError(f"The script {path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except ValidationError as error:
        # A reply that is no text is told why it is no reply either.
        first = max(error.errors(), key=lambda one: len(one["loc"]))
        place = ".".join(str(part) for part in first["loc"] if ScriptReply.__name__ not in str(part))
        raise SettingError(f"The script {path} is none: {place or 'the file'}: {first['msg']}.", hint=_HINT) from error
    return ScriptedProvider(*(reply if isinstance(reply, str) else _line(reply) for reply in replies))


def _line(reply: ScriptReply) -> Line:
    return Line(
        text=reply.text,
        reasoning=reply.reasoning,
        calls=tuple(
            ToolCall(id=call.id, name=call.name, arguments=json.dumps(call.arguments, ensure_ascii=False))
            for call in reply.calls
        ),
        chunk=reply.chunk,
        delay=reply.delay,
        usage=Usage(**reply.usage.model_dump()) if reply.usage else None,
    )
