"""Transcripts: a conversation as JSON. Unknown fields are refused; the error says where and what was expected."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from lamella.adapters.archive.attachments import AttachmentIn, read_attachment
from lamella.core.artifacts.make import make_tool_definition, make_tool_result
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.history.asked import Asked
from lamella.errors import BadInputError, TranscriptError

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class SystemIn(BaseModel):
    """L1's parts; those given change from this turn on."""

    model_config = _STRICT

    base: str | None = None
    instructions: str | None = None
    project: str | None = None
    memory: str | None = None


class ToolIn(BaseModel):
    """A tool call and its output."""

    model_config = _STRICT

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    output: str


class ToolDefinitionIn(BaseModel):
    """A tool the model may call."""

    model_config = _STRICT

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class TurnIn(BaseModel):
    """One turn: what the user typed, attached, changed and dropped, and what was answered."""

    model_config = _STRICT

    user: str
    at: AwareDatetime | None = Field(default=None, strict=False)
    attach: list[AttachmentIn] = Field(default_factory=list)
    tools: list[ToolIn] = Field(default_factory=list)
    system: SystemIn | None = None
    tool_definitions: list[ToolDefinitionIn] | None = None
    model: str | None = None
    drop: list[str] = Field(default_factory=list)
    fold: bool = False
    reply: str = ""


class Transcript(BaseModel):
    """A conversation as data. Settings may be given by their names; those not given are as configured."""

    model_config = _STRICT

    lamella: int
    conversation: str = "chat"
    system: SystemIn | None = None
    vault: str | None = None
    turns: list[TurnIn]
    model: str | None = None
    window: int | None = None
    reserve: int | None = None
    layout: str | None = None
    carry_forward: str | None = None
    history: str | None = None
    warn: float | None = Field(default=None, strict=False)
    target: float | None = Field(default=None, strict=False)
    trigger: float | None = Field(default=None, strict=False)
    hard: float | None = Field(default=None, strict=False)
    image_notes: bool | None = None

    def settings(self) -> dict[str, object]:
        """The settings this transcript gives."""
        return {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}


_SETTINGS = tuple(
    name for name in Transcript.model_fields if name not in ("lamella", "conversation", "system", "vault", "turns")
)


def load_transcript(path: Path) -> Transcript:
    """A transcript from a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TranscriptError(
            f"{path} cannot be read: {error.strerror or error}.", hint="Check the path of the transcript."
        ) from error
    return parse_transcript(data, name=str(path))


def parse_transcript(data: bytes, *, name: str) -> Transcript:
    """A transcript from its bytes; the error names the place and what was expected there."""
    try:
        transcript = Transcript.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        raise _explain(error, name) from error
    if transcript.lamella != 1:
        raise TranscriptError(
            f"{name} is in transcript format {transcript.lamella}; this version reads format 1.",
            hint='Set "lamella": 1, or use a newer version of Lamella.',
        )
    return transcript


def read_turn(turn: TurnIn, number: int, *, system: SystemIn | None) -> Asked:
    """One turn as asked; an error names the turn."""
    try:
        return Asked(
            text=turn.user,
            attach=tuple(read_attachment(given) for given in turn.attach),
            results=tuple(make_tool_result(t.name, arguments=t.arguments, output=t.output) for t in turn.tools),
            system={**_given(system), **_given(turn.system)},
            tools=_definitions(turn),
            model=turn.model,
            drop=tuple(turn.drop),
            fold=turn.fold,
        )
    except BadInputError as error:
        raise type(error)(f"In turn {number}: {error.message}", hint=error.hint) from error


def _definitions(turn: TurnIn) -> tuple[ToolDefinition, ...] | None:
    if turn.tool_definitions is None:
        return None
    return tuple(
        make_tool_definition(tool.name, description=tool.description, parameters=tool.parameters)
        for tool in turn.tool_definitions
    )


def _given(system: SystemIn | None) -> dict[str, str]:
    if system is None:
        return {}
    return {name: value for name, value in system.model_dump().items() if value is not None}


def _explain(error: ValidationError, name: str) -> TranscriptError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return TranscriptError(
            f"{name} is not JSON: {first['ctx']['error']}.",
            hint="Check the file near that place; docs/transcript.md shows the format.",
        )
    more = error.error_count() - 1
    others = f" ({more} more {'place' if more == 1 else 'places'})" if more else ""
    return TranscriptError(f"{name}: {_where(first['loc'])}: {_what(first)}{others}.", hint=_hint(first))


def _where(location: Sequence[int | str]) -> str:
    """``turns[2].attach[0].path``, counted as JSON counts."""
    place = ""
    for part in location:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place or "the top level"


def _what(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "no such field"
    if detail["type"] == "missing":
        return "this field is missing"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}"


def _hint(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return f"Fields here are: {', '.join(_fields_at(detail['loc'][:-1]))}. See docs/transcript.md."
    return "docs/transcript.md lists every field with its type."


def _fields_at(location: Sequence[int | str]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "turns": TurnIn,
        "attach": AttachmentIn,
        "tools": ToolIn,
        "tool_definitions": ToolDefinitionIn,
        "system": SystemIn,
    }
    names = [part for part in location if isinstance(part, str)]
    return list(models.get(names[-1], Transcript).model_fields if names else Transcript.model_fields)
