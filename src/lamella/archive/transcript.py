"""Read transcripts, which are conversations as JSON.

``parse_transcript`` reads a transcript strictly: unknown fields, repeated names and numbers that are not finite are
refused, and the error says where the mistake is and what was expected there. ``build_turn_request`` converts one turn.
"""

import json
import re
from collections.abc import Iterable, Sequence
from math import isinf
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

from lamella.archive.attachments import AttachmentInput, EmbeddedImageInput, parse_attachment
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.kinds import make_tool_definition, make_tool_result
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.turn import IMAGE_NOTE_MODE_BY_BOOL
from lamella.core.messages import ToolCall, ToolOutput, ToolRound, parse_arguments
from lamella.core.text.content import canonical_json
from lamella.errors import BadInputError, TranscriptError
from lamella.files import read_regular_file, read_stream

# Strict JSON.

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


def check_strict_json(data: bytes, name: str) -> None:
    """Raise ``TranscriptError`` if an object repeats a name or a number is not finite.

    A parser would silently use only one of the two values, or turn the number into infinity.
    """
    try:
        json.loads(
            data,
            object_pairs_hook=_check_unique_names,
            parse_constant=_reject_non_finite_number,
            parse_float=_check_float_is_finite,
        )
    except _NotStrictError as error:
        raise TranscriptError(f"{name} is not JSON: {error}.", hint=error.hint) from error


def invalid_json_error(data: bytes, name: str, parser_message: str) -> TranscriptError:
    """Build the error for bytes that are not JSON. ``parser_message`` is the parser's message."""
    if not data.strip():
        return _invalid_json_error(
            name, "it is empty", "docs/reference/formats/transcript.md shows the smallest transcript."
        )
    if data.startswith(_UTF16_MARKS) or b"\0" in data[:4]:
        return _invalid_json_error(name, "it looks like UTF-16 or UTF-32", "Save the file as UTF-8.")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1:,} is 0x{data[error.start]:02x}, which is not UTF-8"
        return _invalid_json_error(name, byte, "Save the file as UTF-8; half of a surrogate pair has no such form.")
    if "hex escape" in parser_message:
        return _invalid_json_error(
            name, parser_message, r"A \u escape there is cut off, or half of a surrogate pair. Write the character."
        )
    if "recursion" in parser_message:
        return _invalid_json_error(name, parser_message, "Lists and objects may stand about 200 deep in each other.")
    return _invalid_json_error(
        name, parser_message, "Check the file near that place; docs/reference/formats/transcript.md shows the format."
    )


def _invalid_json_error(name: str, description: str, hint: str) -> TranscriptError:
    return TranscriptError(f"{name} is not JSON: {description}.", hint=hint)


def first_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that repeats an earlier one, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


class _NotStrictError(Exception):
    def __init__(self, description: str, hint: str) -> None:
        super().__init__(description)
        self.hint = hint


def _check_unique_names(pairs: list[tuple[str, object]]) -> None:
    if (twice := first_duplicate(name for name, _ in pairs)) is not None:
        raise _NotStrictError(
            f"{json.dumps(twice)} stands twice in one object", "Only one of the two could be used. Remove the other."
        )


def _check_float_is_finite(text: str) -> float:
    return _reject_non_finite_number(text) if isinf(float(text)) else 0.0


def _reject_non_finite_number(text: str) -> float:
    raise _NotStrictError(f"{text[:40]} is not a number that JSON has", "Use a finite number, or a text.")


# Transcripts.

_STRICT_CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True)
_ROUND_HINT = "Give each call of a round an id of its own, and one result with that id as its `call`."
_TOO_LONG_HINT = "Split the conversation, or let its notes be read from a vault."
_RESULT_ID_PATTERN = "(?s)^tool:.*:[0-9a-f]{12}$"
_NUMERIC_TEXT = re.compile(r"\s*[+-]?[\d.]+\s*")


def _reject_numeric_time(value: object) -> object:
    """Refuse numbers as times.

    Pydantic would read them as seconds since 1970, which no author of a transcript means.
    """
    if not isinstance(value, str) or _NUMERIC_TEXT.fullmatch(value):
        raise PydanticCustomError("bad_time", "input should be a datetime such as 2026-11-15T10:00:00Z")
    return value


def _reject_blank(name: str) -> str:
    if not name.strip():
        raise PydanticCustomError("blank", "this field is blank")
    return name


def _convert_bool(value: object) -> object:
    """Convert ``true`` and ``false`` to the values that replaced them; ``image_notes`` used to be a switch."""
    return IMAGE_NOTE_MODE_BY_BOOL[value].value if isinstance(value, bool) else value


_ImageNotes = Annotated[str, BeforeValidator(_convert_bool)]
_Time = Annotated[AwareDatetime, BeforeValidator(_reject_numeric_time), Field(strict=False)]
_Id = Annotated[str, Field(min_length=1)]
_Name = Annotated[str, Field(min_length=1), AfterValidator(_reject_blank)]


class SystemPartsInput(BaseModel):
    """The parts of the system prompt (L1). A part that is given changes from this turn on."""

    model_config = _STRICT_CONFIG

    base: str | None = None
    guidelines: str | None = None
    instructions: str | None = None
    project: str | None = None
    workflow: str | None = None
    memory: str | None = None


class AttachedToolResultInput(BaseModel):
    """A tool call and its output, attached to a turn as a tool result."""

    model_config = _STRICT_CONFIG

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    output: str


class ToolDefinitionInput(BaseModel):
    """A tool that the model may call."""

    model_config = _STRICT_CONFIG

    name: _Name
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class ToolCallInput(BaseModel):
    """A tool call of the model.

    ``written`` has the arguments byte for byte, for arguments that ``arguments`` cannot express: invalid JSON, or JSON
    in another form than the canonical one.
    """

    model_config = _STRICT_CONFIG

    id: _Id
    name: _Name
    arguments: dict[str, JsonValue] | None = None
    written: str | None = None


class ToolResultInput(BaseModel):
    """The result of the tool call whose id is ``call``.

    ``id`` is the artifact id of the result, if it differs from the id that Lamella would derive.
    """

    model_config = _STRICT_CONFIG

    call: _Id
    output: str
    failed: bool = False
    id: Annotated[str, Field(pattern=_RESULT_ID_PATTERN)] | None = None


class ToolRoundInput(BaseModel):
    """A tool round: the model's text, its tool calls, and one result for each call."""

    model_config = _STRICT_CONFIG

    text: str = ""
    calls: Annotated[list[ToolCallInput], Field(min_length=1)]
    results: list[ToolResultInput]


class TurnInput(BaseModel):
    """One turn: the user's message, attachments and commands, the tool rounds, and the reply."""

    model_config = _STRICT_CONFIG

    user: str
    at: _Time | None = None
    attach: list[AttachmentInput] = Field(default_factory=list)
    tools: list[AttachedToolResultInput] = Field(default_factory=list)
    system: SystemPartsInput | None = None
    tool_definitions: list[ToolDefinitionInput] | None = None
    model: _Name | None = None
    drop: list[str] = Field(default_factory=list)
    detach: list[str] = Field(default_factory=list)
    pin: list[str] = Field(default_factory=list)
    unpin: list[str] = Field(default_factory=list)
    rules: list[str] = Field(default_factory=list)
    ended_rules: list[str] = Field(default_factory=list)
    fold: bool = False
    verbatim: bool = False
    rounds: list[ToolRoundInput] = Field(default_factory=list)
    reply: str = ""


class Transcript(BaseModel):
    """A conversation as data.

    A transcript may give settings by their names. Settings that it does not give come from the configuration.
    With ``learns_retention`` attachments that a turn does not list leave at once when the turns turn out to list all
    that they need; ``linger`` is then not given.
    ``differing_turns`` are the turns of a stored conversation that were sent with something that a transcript cannot
    contain, such as a compaction.
    """

    model_config = _STRICT_CONFIG

    lamella: int
    conversation: _Name = "chat"
    system: SystemPartsInput | None = None
    vault: _Name | None = None
    turns: list[TurnInput]
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
    summary_check: str | None = None
    secrets: str | None = None
    differing_turns: list[int] = Field(default_factory=list)
    learns_retention: bool = False

    @property
    def initial_system(self) -> SystemPartsInput | None:
        """Return the system prompt of the first turn, including ``instructions`` that are given as a setting."""
        if self.instructions is None or (self.system is not None and self.system.instructions is not None):
            return self.system
        return (self.system or SystemPartsInput()).model_copy(update={"instructions": self.instructions})

    def settings(self) -> dict[str, object]:
        """Return the settings that this transcript gives, by name."""
        return {name: getattr(self, name) for name in _SETTING_FIELDS if getattr(self, name) is not None}


_SETTING_FIELDS = tuple(
    name
    for name in Transcript.model_fields
    if name not in ("lamella", "conversation", "system", "vault", "turns", "differing_turns", "learns_retention")
)


def load_transcript(path: Path) -> Transcript:
    """Load a transcript from a file."""
    try:
        data = read_regular_file(path, hint=_TOO_LONG_HINT)
    except (OSError, ValueError) as error:
        raise _unreadable_error(str(path), error) from error
    return parse_transcript(data, name=str(path))


def read_transcript(stream: BinaryIO, *, name: str) -> Transcript:
    """Read a transcript from an open file or a pipe, up to the size limit of a transcript."""
    try:
        data = read_stream(stream, name=name, hint=_TOO_LONG_HINT)
    except OSError as error:
        raise _unreadable_error(name, error) from error
    return parse_transcript(data, name=name)


def _unreadable_error(name: str, error: Exception) -> TranscriptError:
    reason = getattr(error, "strerror", None) or error
    return TranscriptError(
        f"{name} cannot be read: {reason}.",
        hint="Check the path of the transcript; one that comes through a pipe is named `-`.",
    )


def parse_transcript(data: bytes, *, name: str) -> Transcript:
    """Parse a transcript from its bytes. An error names the position and what was expected there."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        transcript = Transcript.model_validate_json(data)
    except ValidationError as error:
        raise _to_transcript_error(error, name, data) from error
    # Pydantic's JSON parser accepts repeated names and numbers that overflow, so a second pass looks for them.
    check_strict_json(data, name)
    if transcript.lamella != 1:
        raise _unsupported_format_error(name, transcript.lamella)
    _check_names_are_unique(_list_result_ids(transcript), f"{name}: two results have the id")
    return transcript


def _list_result_ids(transcript: Transcript) -> list[str]:
    rounds = (one for turn in transcript.turns for one in turn.rounds)
    return [result.id for one in rounds for result in one.results if result.id is not None]


def build_turn_request(turn: TurnInput, number: int, *, system: SystemPartsInput | None) -> TurnRequest:
    """Convert one turn to a turn request. An error names the turn."""
    try:
        return TurnRequest(
            text=turn.user,
            attach=tuple(parse_attachment(given) for given in turn.attach),
            results=tuple(make_tool_result(t.name, arguments=t.arguments, output=t.output) for t in turn.tools),
            system={**_list_non_empty_system_parts(system), **_list_non_empty_system_parts(turn.system)},
            tools=_tool_definitions(turn),
            model=turn.model,
            drop=tuple(turn.drop),
            detach=tuple(turn.detach),
            pin=tuple(turn.pin),
            unpin=tuple(turn.unpin),
            rules=tuple(turn.rules),
            removed_rules=tuple(turn.ended_rules),
            fold=turn.fold,
            is_verbatim=turn.verbatim,
        )
    except BadInputError as error:
        raise type(error)(f"In turn {number}: {error.message}", hint=error.raw_hint) from error


def build_tool_rounds(turn: TurnInput, number: int) -> tuple[ToolRound, ...]:
    """Convert the tool rounds of a turn, with results in the order of their calls.

    An error names the turn and the round.
    """
    return tuple(
        _build_round(one, f"In turn {number}, round {index}") for index, one in enumerate(turn.rounds, start=1)
    )


def _build_round(given: ToolRoundInput, location: str) -> ToolRound:
    called = [call.id for call in given.calls]
    outputs = {result.call: result for result in given.results}
    _check_names_are_unique(called, f"{location}: two calls have the id")
    _check_names_are_unique(
        [result.call for result in given.results], f"{location}: two results are given for the call"
    )
    called_once = frozenset(called)
    for name in called:
        if name not in outputs:
            raise TranscriptError(f"{location}: the call {name} has no result.", hint=_ROUND_HINT)
    for name in outputs:
        if name not in called_once:
            raise TranscriptError(f"{location}: there is a result for {name}, which was not called.", hint=_ROUND_HINT)
    return ToolRound(
        text=given.text,
        calls=tuple(
            ToolCall(id=call.id, name=call.name, arguments=_render_arguments(call, location)) for call in given.calls
        ),
        outputs=tuple(ToolOutput(**outputs[name].model_dump()) for name in called),
    )


def _render_arguments(call: ToolCallInput, location: str) -> str:
    """Return the arguments of a call as text, as they are sent to the provider."""
    if call.written is None:
        return canonical_json(call.arguments or {})
    if call.arguments not in (None, parse_arguments(call.written)):
        raise TranscriptError(
            f"{location}: the call {call.id} has other `arguments` than those `written`.",
            hint="What is `written` would be sent. Remove it, or say the same in both.",
        )
    return call.written


def _check_names_are_unique(names: Sequence[str], message: str) -> None:
    if (twice := first_duplicate(names)) is not None:
        raise TranscriptError(f"{message} {twice}.", hint=_ROUND_HINT)


def _tool_definitions(turn: TurnInput) -> tuple[ToolDefinition, ...] | None:
    if turn.tool_definitions is None:
        return None
    return tuple(
        make_tool_definition(tool.name, description=tool.description, parameters=tool.parameters)
        for tool in turn.tool_definitions
    )


def _list_non_empty_system_parts(system: SystemPartsInput | None) -> dict[str, str]:
    if system is None:
        return {}
    return {name: value for name, value in system.model_dump().items() if value is not None}


def _unsupported_format_error(name: str, number: int) -> TranscriptError:
    return TranscriptError(
        f"{name} is in transcript format {number}; this version reads format 1.",
        hint='Set "lamella": 1, or use a newer version of Lamella.',
    )


def _to_transcript_error(error: ValidationError, name: str, data: bytes) -> TranscriptError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return invalid_json_error(data, name, first["ctx"]["error"])
    number = _format_number(from_json(data))
    if number not in (None, 1):
        return _unsupported_format_error(name, number)
    more = error.error_count() - 1
    others = f" ({more} more {'place' if more == 1 else 'places'})" if more else ""
    return TranscriptError(
        f"{name}: {_format_location(first['loc'])}: {_describe_error(first)}{others}.", hint=_error_hint(first)
    )


def _format_number(version: object) -> int | None:
    """Return the format version that a transcript states, or None.

    Fields of another version would be reported as unknown fields of this one, so the caller checks the version first.
    """
    number = version.get("lamella") if isinstance(version, dict) else None
    return number if type(number) is int else None


def _format_location(location: Sequence[int | str]) -> str:
    """Format an error location as ``turns[2].attach[0].path``. Indexes start at 0, as in JSON."""
    place = ""
    for part in location:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place or "the top level"


def _describe_error(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "no such field"
    if detail["type"] == "missing":
        return "this field is missing"
    if detail["type"] in ("string_too_short", "too_short"):
        return "this field is empty"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}"


def _error_hint(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        known = ", ".join(_field_names_at(detail["loc"][:-1]))
        return f"Fields here are: {known}. See docs/reference/formats/transcript.md."
    return "docs/reference/formats/transcript.md lists every field with its type."


def _field_names_at(location: Sequence[int | str]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "turns": TurnInput,
        "attach": AttachmentInput,
        "images": EmbeddedImageInput,
        "tools": AttachedToolResultInput,
        "tool_definitions": ToolDefinitionInput,
        "rounds": ToolRoundInput,
        "calls": ToolCallInput,
        "results": ToolResultInput,
        "system": SystemPartsInput,
    }
    names = [part for part in location if isinstance(part, str)]
    return list(models.get(names[-1], Transcript).model_fields if names else Transcript.model_fields)
