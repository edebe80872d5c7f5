"""Transcripts: a conversation as JSON. Unknown fields are refused; the error says where and what was expected."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError, from_json

from lamella.adapters.archive.attachments import AttachmentIn, EmbeddedIn, read_attachment
from lamella.adapters.archive.strict_json import check_json, explain_broken, find_twice
from lamella.adapters.files.reading import read_plain, read_stream
from lamella.core.artifacts.make import make_tool_definition, make_tool_result
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.terms import IMAGE_NOTES_SWITCH
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput, ToolRound, read_arguments
from lamella.core.text.content import canonical_json
from lamella.engine.dialogue.ask import Ask
from lamella.errors import BadInputError, TranscriptError

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
_ROUND_HINT = "Give each call of a round an id of its own, and one result with that id as its `call`."
_TOO_LONG = "Split the conversation, or let its notes be read from a vault."
_RESULT_ID = "(?s)^tool:.*:[0-9a-f]{12}$"
_NUMBER = re.compile(r"\s*[+-]?[\d.]+\s*")


def _refuse_numbers(value: object) -> object:
    """A number would be read as seconds since 1970, and no one who writes a transcript means that."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        raise PydanticCustomError("bad_time", "input should be a datetime such as 2026-11-15T10:00:00Z")
    return value


def _refuse_blank(name: str) -> str:
    if not name.strip():
        raise PydanticCustomError("blank", "this field is blank")
    return name


def _read_switch(value: object) -> object:
    return IMAGE_NOTES_SWITCH[value].value if isinstance(value, bool) else value


_ImageNotes = Annotated[str, BeforeValidator(_read_switch)]
_Time = Annotated[AwareDatetime, BeforeValidator(_refuse_numbers), Field(strict=False)]
_Id = Annotated[str, Field(min_length=1)]
_Name = Annotated[str, Field(min_length=1), AfterValidator(_refuse_blank)]


class SystemIn(BaseModel):
    """L1's parts; those given change from this turn on."""

    model_config = _STRICT

    base: str | None = None
    guidelines: str | None = None
    instructions: str | None = None
    project: str | None = None
    workflow: str | None = None
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

    name: _Name
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class CallIn(BaseModel):
    """A call that the model made; ``written`` are its arguments byte for byte, where an object does not give them."""

    model_config = _STRICT

    id: _Id
    name: _Name
    arguments: dict[str, JsonValue] | None = None
    written: str | None = None


class ResultIn(BaseModel):
    """What came back for a call, by its id; ``id`` is what it is known by, if that is not what follows."""

    model_config = _STRICT

    call: _Id
    output: str
    failed: bool = False
    id: Annotated[str, Field(pattern=_RESULT_ID)] | None = None


class RoundIn(BaseModel):
    """What the model said with its calls, and a result for each of them."""

    model_config = _STRICT

    text: str = ""
    calls: Annotated[list[CallIn], Field(min_length=1)]
    results: list[ResultIn]


class TurnIn(BaseModel):
    """One turn: what the user typed, attached, changed, detached and dropped, and what was answered."""

    model_config = _STRICT

    user: str
    at: _Time | None = None
    attach: list[AttachmentIn] = Field(default_factory=list)
    tools: list[ToolIn] = Field(default_factory=list)
    system: SystemIn | None = None
    tool_definitions: list[ToolDefinitionIn] | None = None
    model: _Name | None = None
    drop: list[str] = Field(default_factory=list)
    detach: list[str] = Field(default_factory=list)
    pin: list[str] = Field(default_factory=list)
    unpin: list[str] = Field(default_factory=list)
    rules: list[str] = Field(default_factory=list)
    ended_rules: list[str] = Field(default_factory=list)
    fold: bool = False
    verbatim: bool = False
    rounds: list[RoundIn] = Field(default_factory=list)
    reply: str = ""


class Transcript(BaseModel):
    """A conversation as data. Settings may be given by their names; those not given are as configured."""

    model_config = _STRICT

    lamella: int
    conversation: _Name = "chat"
    system: SystemIn | None = None
    vault: _Name | None = None
    turns: list[TurnIn]
    model: _Name | None = None
    profile: str | None = None
    window: int | None = None
    reserve: int | None = None
    layout: str | None = None
    carry_forward: str | None = None
    history: str | None = None
    history_turns: int | None = None
    warn: float | None = None
    target: float | None = None
    trigger: float | None = None
    hard: float | None = None
    compaction: dict[str, JsonValue] | None = None
    image_notes: _ImageNotes | None = None
    instructions: str | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    attachments: str | None = None
    linger: int | None = None
    cache_marks: str | None = None
    runner: str | None = None
    tool_output: int | None = None
    recall_hint: str | None = None
    secrets: str | None = None

    @property
    def opening_system(self) -> SystemIn | None:
        """The system prompt of the first turn; instructions that stand among the settings are a part of it."""
        if self.instructions is None or (self.system is not None and self.system.instructions is not None):
            return self.system
        return (self.system or SystemIn()).model_copy(update={"instructions": self.instructions})

    def settings(self) -> dict[str, object]:
        """The settings this transcript gives."""
        return {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}


_SETTINGS = tuple(
    name for name in Transcript.model_fields if name not in ("lamella", "conversation", "system", "vault", "turns")
)


def load_transcript(path: Path) -> Transcript:
    """A transcript from a file."""
    try:
        data = read_plain(path, hint=_TOO_LONG)
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), error) from error
    return parse_transcript(data, name=str(path))


def read_transcript(stream: BinaryIO, *, name: str) -> Transcript:
    """A transcript from an open file or a pipe, of which no more is read than a transcript may have."""
    try:
        data = read_stream(stream, name=name, hint=_TOO_LONG)
    except OSError as error:
        raise _unreadable(name, error) from error
    return parse_transcript(data, name=name)


def _unreadable(name: str, error: Exception) -> TranscriptError:
    reason = getattr(error, "strerror", None) or error
    return TranscriptError(
        f"{name} cannot be read: {reason}.",
        hint="Check the path of the transcript; one that comes through a pipe is named `-`.",
    )


def parse_transcript(data: bytes, *, name: str) -> Transcript:
    """A transcript from its bytes; the error names the place and what was expected there."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        transcript = Transcript.model_validate_json(data)
    except ValidationError as error:
        raise _explain(error, name, data) from error
    check_json(data, name)
    if transcript.lamella != 1:
        raise _other_format(name, transcript.lamella)
    _check_each_once(_list_result_ids(transcript), f"{name}: two results have the id")
    return transcript


def _list_result_ids(transcript: Transcript) -> list[str]:
    rounds = (one for turn in transcript.turns for one in turn.rounds)
    return [result.id for one in rounds for result in one.results if result.id is not None]


def read_turn(turn: TurnIn, number: int, *, system: SystemIn | None) -> Ask:
    """One turn as asked; an error names the turn."""
    try:
        return Ask(
            text=turn.user,
            attach=tuple(read_attachment(given) for given in turn.attach),
            results=tuple(make_tool_result(t.name, arguments=t.arguments, output=t.output) for t in turn.tools),
            system={**_given(system), **_given(turn.system)},
            tools=_definitions(turn),
            model=turn.model,
            drop=tuple(turn.drop),
            detach=tuple(turn.detach),
            pin=tuple(turn.pin),
            unpin=tuple(turn.unpin),
            rules=tuple(turn.rules),
            ended=tuple(turn.ended_rules),
            fold=turn.fold,
            verbatim=turn.verbatim,
        )
    except BadInputError as error:
        raise type(error)(f"In turn {number}: {error.message}", hint=error.advice) from error


def read_rounds(turn: TurnIn, number: int) -> tuple[ToolRound, ...]:
    """The rounds of tools of a turn, each result in the place of its call; an error names the turn and the round."""
    return tuple(_read_round(one, f"In turn {number}, round {place}") for place, one in enumerate(turn.rounds, start=1))


def _read_round(given: RoundIn, place: str) -> ToolRound:
    called = [call.id for call in given.calls]
    outputs = {result.call: result for result in given.results}
    _check_each_once(called, f"{place}: two calls have the id")
    _check_each_once([result.call for result in given.results], f"{place}: two results are given for the call")
    called_once = frozenset(called)
    for name in called:
        if name not in outputs:
            raise TranscriptError(f"{place}: the call {name} has no result.", hint=_ROUND_HINT)
    for name in outputs:
        if name not in called_once:
            raise TranscriptError(f"{place}: there is a result for {name}, which was not called.", hint=_ROUND_HINT)
    return ToolRound(
        text=given.text,
        calls=tuple(ToolCall(id=call.id, name=call.name, arguments=_read_call(call, place)) for call in given.calls),
        outputs=tuple(ToolOutput(**outputs[name].model_dump()) for name in called),
    )


def _read_call(call: CallIn, place: str) -> str:
    """The arguments of a call as they are sent."""
    if call.written is None:
        return canonical_json(call.arguments or {})
    if call.arguments not in (None, read_arguments(call.written)):
        raise TranscriptError(
            f"{place}: the call {call.id} has other `arguments` than those `written`.",
            hint="What is `written` would be sent. Remove it, or say the same in both.",
        )
    return call.written


def _check_each_once(names: Sequence[str], told: str) -> None:
    if (twice := find_twice(names)) is not None:
        raise TranscriptError(f"{told} {twice}.", hint=_ROUND_HINT)


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


def _other_format(name: str, number: int) -> TranscriptError:
    return TranscriptError(
        f"{name} is in transcript format {number}; this version reads format 1.",
        hint='Set "lamella": 1, or use a newer version of Lamella.',
    )


def _explain(error: ValidationError, name: str, data: bytes) -> TranscriptError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return explain_broken(data, name, first["ctx"]["error"])
    number = _format_number(from_json(data))
    if number not in (None, 1):
        return _other_format(name, number)
    more = error.error_count() - 1
    others = f" ({more} more {'place' if more == 1 else 'places'})" if more else ""
    return TranscriptError(f"{name}: {_where(first['loc'])}: {_what(first)}{others}.", hint=_hint(first))


def _format_number(given: object) -> int | None:
    """The format a transcript says it is in: fields of another one are not this one's mistakes."""
    number = given.get("lamella") if isinstance(given, dict) else None
    return number if type(number) is int else None


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
    if detail["type"] in ("string_too_short", "too_short"):
        return "this field is empty"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}"


def _hint(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return f"Fields here are: {', '.join(_fields_at(detail['loc'][:-1]))}. See docs/transcript.md."
    return "docs/transcript.md lists every field with its type."


def _fields_at(location: Sequence[int | str]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "turns": TurnIn,
        "attach": AttachmentIn,
        "images": EmbeddedIn,
        "tools": ToolIn,
        "tool_definitions": ToolDefinitionIn,
        "rounds": RoundIn,
        "calls": CallIn,
        "results": ResultIn,
        "system": SystemIn,
    }
    names = [part for part in location if isinstance(part, str)]
    return list(models.get(names[-1], Transcript).model_fields if names else Transcript.model_fields)
