"""Script files: the replies of a scripted provider as JSON, for programs under test that run in a separate process.

``open_script`` reads a file and returns a ``ScriptedProvider``. This module needs pydantic, which ``scripted`` does not.
"""

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from lamella.core.messages import ToolCall, Usage
from lamella.errors import SettingError
from lamella.files import read_regular_file
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

# Script files.

_SCRIPT_HINT = (
    'Write a JSON list of replies, such as ["At noon.", {"text": "At six.", "usage": {"plain": 9, "read": 0}}].'
)


class _ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ScriptUsage(_ScriptPart):
    """The token usage that a reply reports."""

    plain: int | None = Field(default=None, ge=0)
    read: int | None = Field(default=None, ge=0)
    write: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)


class ScriptCall(_ScriptPart):
    """A tool call in a reply."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    id: str = ""


class ScriptReply(_ScriptPart):
    """One reply. Its text arrives in chunks of ``chunk`` characters, each after ``delay`` seconds."""

    text: str = ""
    calls: list[ScriptCall] = Field(default_factory=list)
    reasoning: str = ""
    chunk: int | None = Field(default=None, gt=0)
    delay: float = Field(default=0.0, ge=0, le=60)
    usage: ScriptUsage | None = None

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.model_fields_set & {"text", "calls"}:
            raise ValueError("a reply has text or calls")
        return self


_REPLIES_ADAPTER = TypeAdapter(list[str | ScriptReply])


def open_script(path: Path) -> ScriptedProvider:
    """Return a provider that answers with the replies in a file. Raises ``SettingError`` if the file is invalid."""
    try:
        replies = _REPLIES_ADAPTER.validate_json(read_regular_file(path))
    except OSError as error:
        raise SettingError(f"The script {path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except ValidationError as error:
        # A reply may be a string or an object, so pydantic reports errors for both. The deepest location belongs to the
        # object and is the more useful one.
        first = max(error.errors(), key=lambda one: len(one["loc"]))
        location = ".".join(str(part) for part in first["loc"] if ScriptReply.__name__ not in str(part))
        raise SettingError(
            f"The script {path} is none: {location or 'the file'}: {first['msg']}.", hint=_SCRIPT_HINT
        ) from error
    return ScriptedProvider(*(reply if isinstance(reply, str) else _to_scripted_reply(reply) for reply in replies))


def _to_scripted_reply(reply: ScriptReply) -> ScriptedReply:
    return ScriptedReply(
        text=reply.text,
        reasoning=reply.reasoning,
        calls=tuple(
            ToolCall(id=call.id, name=call.name, arguments=json.dumps(call.arguments, ensure_ascii=False))
            for call in reply.calls
        ),
        chunk_size=reply.chunk,
        delay=reply.delay,
        usage=Usage(**reply.usage.model_dump()) if reply.usage else None,
    )
