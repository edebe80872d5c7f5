"""Events of questions and tool rounds, and the turn settings that questions store.

- ``QuestionEvent`` and ``EditEvent`` are questions. ``make_question_event`` builds one from a turn, and
  ``turn_from_event`` reads it back.
- ``ToolCallsEvent`` and ``ToolResultsEvent`` are the two halves of a tool round, each recorded as it happens.
- Turn settings of an event may be set, left to the current settings, or missing (in older events).
  ``resolve_turn_settings`` returns those that apply. The stored form is derived from the fields of ``TurnSettings``: a
  field added there is stored and read without a change in this module.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, Struct, UnsetType, defstruct, to_builtins
from msgspec.structs import asdict, fields
from msgspec.structs import replace as replace_fields

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.events.artifact import (
    ContentsByHash,
    StoredArtifact,
    contents_of_artifacts,
    read_artifacts,
    read_stored_text,
    to_stored_artifact,
)
from lamella.core.log.events.call import StoredModelCall
from lamella.core.log.turn import (
    IMAGE_NOTE_MODE_BY_BOOL,
    HistoryChangeReason,
    LayoutPlan,
    ReplyEvent,
    RequestFingerprint,
    RuleChanges,
    StoredCitation,
    SystemParts,
    Turn,
    TurnSettings,
)
from lamella.core.messages import (
    UNKNOWN_USAGE,
    ModelReply,
    ProviderReply,
    StopReason,
    ToolCall,
    ToolOutput,
    ToolRound,
    Usage,
)
from lamella.core.text.content import Contents, canonical_json, encode_text, hash_text, short_hash
from lamella.core.values import replace

_SETTING_FIELDS = fields(TurnSettings)
_SETTING_NAMES = tuple(field.name for field in _SETTING_FIELDS)
_get_setting_values = attrgetter(*_SETTING_NAMES)
_DEFAULT_TURN_SETTINGS = TurnSettings()
# The first events had these two only if they were chosen. They are always written since, and if they are missing the
# current settings apply. Fields that were added later have defaults that reproduce older turns.
_ALWAYS_WRITTEN = ("layout", "carry_forward")
# Settings that used to be booleans, and the current value for each of the two.
_FORMER_BOOLEANS = {"image_notes": IMAGE_NOTE_MODE_BY_BOOL}
# The fields that are null in an event that inherits its turn settings; one null is enough.
_NULL_IF_INHERITED = ("history", "image_notes")

# The class is built from the fields of ``TurnSettings`` at runtime. Type checkers see an empty class.
if TYPE_CHECKING:

    class StoredTurnSettings(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
        """The fields of ``TurnSettings``, each with its value, null, or missing."""
else:
    StoredTurnSettings = defstruct(
        "StoredTurnSettings",
        [
            (
                field.name,
                (field.type | bool if field.name in _FORMER_BOOLEANS else field.type) | None | UnsetType,
                UNSET,
            )
            for field in _SETTING_FIELDS
        ],
        frozen=True,
        kw_only=True,
        gc=False,
        omit_defaults=True,
    )


EventT = TypeVar("EventT", bound=StoredTurnSettings)


def with_turn_settings(event: EventT, turn_settings: TurnSettings, **position: str) -> EventT:
    """Return the event with these turn settings and position; default values are omitted."""
    return replace_fields(event, **position, **_non_default_settings(turn_settings))


# Thousands of turns have the same settings.
@lru_cache(maxsize=256)
def _non_default_settings(turn_settings: TurnSettings) -> Mapping[str, object]:
    values = {name: getattr(turn_settings, name) for name in _SETTING_NAMES}
    return {
        name: value
        for name, value in values.items()
        if name in _ALWAYS_WRITTEN or value != getattr(_DEFAULT_TURN_SETTINGS, name)
    }


def without_turn_settings(event: EventT) -> EventT:
    """Return the event without turn settings, so that it gets the settings under which it is continued."""
    return replace_fields(event, **dict.fromkeys(_NULL_IF_INHERITED))


def inherits_turn_settings(event: object) -> bool:
    """Return whether an event inherits its turn settings."""
    return any(getattr(event, name, UNSET) is None for name in _NULL_IF_INHERITED)


def resolve_turn_settings(event: StoredTurnSettings, defaults: TurnSettings) -> TurnSettings:
    """Return the turn settings of an event; fields that it leaves open, as older events do, are as in ``defaults``."""
    return _resolve_stored_values(_get_setting_values(event), defaults)


# Thousands of turns share a few settings. Resolving each took a third of the time of reading a long conversation.
@lru_cache(maxsize=256)
def _resolve_stored_values(stored_values: tuple[object, ...], defaults: TurnSettings) -> TurnSettings:
    # If one field is left open, missing fields are open as well: they were not chosen either.
    missing = defaults if None in stored_values else _DEFAULT_TURN_SETTINGS
    found = {
        name: getattr(defaults if value is None or name in _ALWAYS_WRITTEN else missing, name)
        if value is None or value is UNSET
        else value
        for name, value in zip(_SETTING_NAMES, stored_values, strict=True)
    }
    found |= {name: now[was] for name, now in _FORMER_BOOLEANS.items() if isinstance(was := found[name], bool)}
    return replace_fields(_DEFAULT_TURN_SETTINGS, **found)


# Tool rounds: the calls of a turn and their results.

ERASED_OUTPUT = "[This result was erased.]"


class StoredToolCall(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A stored tool call; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


class StoredProviderReply(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A reply in the provider's wire format: the name of the format, and the hash of its JSON."""

    format: str
    json: str


class StoredToolResult(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A stored tool result: the id of the call, the hash of the output, and whether the tool failed."""

    call: str
    output: str
    failed: bool


class ToolCallsEvent(
    Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    rename={"model_calls": "made", "provider_reply": "carried"},
):
    """The model requested tools for the question ``parent``; ``model_calls`` are the calls that did.

    ``answers`` names the request that signed reasoning in the reply is bound to.
    """

    parent: str
    text: str
    calls: tuple[StoredToolCall, ...]
    provider_reply: StoredProviderReply | None = None
    model_calls: tuple[StoredModelCall, ...] = ()
    answers: str = ""

    def iter_content_hashes(self) -> Iterator[str]:
        """Yield the content hash that the event refers to, if any."""
        if self.provider_reply is not None:
            yield self.provider_reply.json


class ToolResultsEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Results of the preceding tool calls.

    A round has all its results in one event, in their order in the request, or in several events, each written when
    its tools had finished; then the order is that of the calls. ``names`` are the ids of results that were first
    recorded elsewhere, because sent requests refer to them by those ids.
    """

    parent: str
    results: tuple[StoredToolResult, ...]
    names: tuple[str, ...] = ()

    def iter_content_hashes(self) -> Iterator[str]:
        """Return the content hashes that the event refers to."""
        return (result.output for result in self.results)


class StoredRound(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A tool round in the log.

    ``results`` is None while the round waits for results; ``early_results`` are those that it has already.
    """

    text: str
    calls: tuple[StoredToolCall, ...]
    provider_reply: StoredProviderReply | None
    model_calls: tuple[StoredModelCall, ...]
    results: tuple[StoredToolResult, ...] | None = None
    names: tuple[str, ...] = ()
    early_results: tuple[StoredToolResult, ...] = ()
    answers: str = ""

    def iter_content_hashes(self) -> Iterator[str]:
        """Yield every content hash that the round refers to."""
        if self.provider_reply is not None:
            yield self.provider_reply.json
        yield from (result.output for result in self.results or self.early_results)


def hash_rounds(rounds: Iterable[StoredRound]) -> str:
    """Return a hash of everything that requests contain of some tool rounds."""
    return short_hash(canonical_json([to_builtins(replace(one, model_calls=())) for one in rounds]))


def round_content_hashes(rounds: Iterable[StoredRound]) -> Iterator[str]:
    """Return every content hash that the rounds refer to."""
    return (name for one in rounds for name in one.iter_content_hashes())


def make_tool_calls_event(
    reply: ModelReply | ToolRound, *, parent: str, model_calls: Iterable[StoredModelCall] = ()
) -> tuple[ToolCallsEvent, dict[str, bytes]]:
    """Build the event of a reply that calls tools, and its content; outputs are not included."""
    provider_reply = reply.provider_reply
    event = ToolCallsEvent(
        parent=parent,
        text=reply.text,
        calls=tuple(StoredToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in reply.calls),
        provider_reply=None
        if provider_reply is None
        else StoredProviderReply(format=provider_reply.format, json=hash_text(provider_reply.json)),
        answers="" if provider_reply is None else provider_reply.answers,
        model_calls=tuple(model_calls),
    )
    return event, {} if provider_reply is None else {hash_text(provider_reply.json): encode_text(provider_reply.json)}


def make_tool_results_event(outputs: Iterable[ToolOutput], *, parent: str) -> tuple[ToolResultsEvent, dict[str, bytes]]:
    """Build the event of tool results, and its contents by hash."""
    given = tuple(outputs)
    results = tuple(StoredToolResult(call=one.call, output=hash_text(one.output), failed=one.failed) for one in given)
    contents = {hash_text(one.output): encode_text(one.output) for one in given}
    # Either all results were first recorded elsewhere, or none.
    names = tuple(one.id for one in given if one.id is not None)
    return ToolResultsEvent(parent=parent, results=results, names=names), contents


def copy_round_events(rounds: Iterable[StoredRound], *, parent: str) -> Iterator[ToolCallsEvent | ToolResultsEvent]:
    """Yield the events that copy recorded rounds to another question."""
    for one in rounds:
        yield ToolCallsEvent(
            parent=parent,
            text=one.text,
            calls=one.calls,
            provider_reply=one.provider_reply,
            model_calls=one.model_calls,
            answers=one.answers,
        )
        if one.results is not None:
            yield ToolResultsEvent(parent=parent, results=one.results, names=one.names)
        elif one.early_results:
            yield ToolResultsEvent(parent=parent, results=one.early_results)


def make_waiting_round(event: ToolCallsEvent) -> StoredRound:
    """Return a new round that waits for its results."""
    return StoredRound(
        text=event.text,
        calls=event.calls,
        provider_reply=event.provider_reply,
        model_calls=event.model_calls,
        answers=event.answers,
    )


def add_results_to_last_round(rounds: tuple[StoredRound, ...], event: ToolResultsEvent) -> tuple[StoredRound, ...]:
    """Return the rounds of a question with the results added to the last one.

    The round is complete when every call has its result. Raises ``ValueError`` if no round waits, and for a result
    without a call or a second result of a call.
    """
    if not rounds or rounds[-1].results is not None:
        raise ValueError(f"there are results for {event.parent}, which waits for none")
    last = rounds[-1]
    waiting = Counter(call.id for call in last.calls)
    waiting.subtract(result.call for result in (*last.early_results, *event.results))
    if min(waiting.values(), default=0) < 0 or (waiting and not event.results):
        raise ValueError(f"the results for {event.parent} are not one for each call")
    if event.names and len(event.names) != len(event.results):
        raise ValueError(f"{len(event.names)} names are given for the {len(event.results)} results")
    if any(waiting.values()):
        return (*rounds[:-1], replace(last, early_results=(*last.early_results, *event.results)))
    if not last.early_results:
        return (*rounds[:-1], replace(last, results=event.results, names=event.names))
    given = {result.call: result for result in (*last.early_results, *event.results)}
    return (*rounds[:-1], replace(last, results=tuple(given[call.id] for call in last.calls), early_results=()))


def read_round(stored: StoredRound, contents: ContentsByHash, *, result_ids: Sequence[str] = ()) -> ToolRound:
    """Return a round with its contents.

    An erased output is replaced by a note, because a call must have an output. ``result_ids`` are the ids of the
    results, if they do not follow from the remaining content.
    """
    results = stored.results or ()
    return ToolRound(
        text=stored.text,
        calls=_to_tool_calls(stored),
        outputs=tuple(_read_output(one, name, contents) for one, name in zip_longest(results, result_ids)),
        provider_reply=_read_provider_reply(stored.provider_reply, stored.answers, contents),
        tokens=_get_reported_usage(stored).output,
    )


def to_model_reply(stored: StoredRound, contents: ContentsByHash) -> ModelReply:
    """Return the reply whose tool calls still wait for their outputs."""
    provider_reply = _read_provider_reply(stored.provider_reply, stored.answers, contents)
    return ModelReply(
        text=stored.text,
        stop=StopReason.TOOL_CALLS,
        calls=_to_tool_calls(stored),
        usage=_get_reported_usage(stored),
        provider_reply=provider_reply,
    )


def read_early_outputs(stored: StoredRound, contents: ContentsByHash) -> tuple[ToolOutput, ...]:
    """Return the outputs that a waiting round has already."""
    return tuple(_read_output(one, None, contents) for one in stored.early_results)


def _to_tool_calls(stored: StoredRound) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in stored.calls)


def _get_reported_usage(stored: StoredRound) -> Usage:
    """Return the usage that the provider reported for the call that gave the reply."""
    return stored.model_calls[-1].usage if stored.model_calls else UNKNOWN_USAGE


def _read_output(result: StoredToolResult, name: str | None, contents: ContentsByHash) -> ToolOutput:
    kept = read_stored_text(result.output, contents)
    output = ERASED_OUTPUT if kept is None else kept
    return ToolOutput(call=result.call, output=output, failed=result.failed, id=name)


def _read_provider_reply(
    stored: StoredProviderReply | None, answers: str, contents: ContentsByHash
) -> ProviderReply | None:
    kept = None if stored is None else read_stored_text(stored.json, contents)
    if stored is None or kept is None:
        return None
    return ProviderReply(format=stored.format, json=kept, answers=answers)


# Questions, new or edited, and the turns that they are read as.


class StoredSystem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The stored system prompt.

    Instructions that include notes are stored as a content of their own (``drawn``), so that erasing a note also
    erases them.
    """

    base: str = ""
    guidelines: str = ""
    instructions: str = ""
    rules: str = ""
    project: str = ""
    workflow: str = ""
    memory: str = ""
    typed_instructions: str = ""
    workflow_brief: str = ""
    workflow_detail: str = ""
    drawn: str | None = None
    inlined: tuple[StoredArtifact, ...] = ()


class StoredTool(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A stored definition of a tool that the model may call."""

    name: str
    description: str
    parameters: str


class TurnOverrides(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Settings that a question changes from then on; None means unchanged.

    ``changed_parts`` are the parts of ``system`` that were set since the last question. They also apply to a question
    that is edited or regenerated, which otherwise keeps its own system prompt.
    """

    system: StoredSystem | None = None
    tools: tuple[StoredTool, ...] | None = None
    model: str | None = None
    pinned: tuple[str, ...] | None = None
    rules: RuleChanges | None = None
    changed_parts: tuple[str, ...] = ()

    def merged_over(self, other: "TurnOverrides") -> "TurnOverrides":
        """Return the combined settings if this was set after ``other``."""
        return TurnOverrides(
            system=other.system if self.system is None else self.system,
            tools=other.tools if self.tools is None else self.tools,
            model=other.model if self.model is None else self.model,
            pinned=other.pinned if self.pinned is None else self.pinned,
            rules=other.rules if self.rules is None else self.rules,
            changed_parts=other.changed_parts if self.system is None else self.changed_parts,
        )


NO_OVERRIDES = TurnOverrides()
_NO_OPTIONAL_FIELDS = (None,) * 7


class QuestionEvent(
    StoredTurnSettings,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag="message",
    rename={"history_summary": "strip", "prefix_unchanged": "unmoved"},
):
    """A question.

    ``typed`` is its text before template expansion, if that differs. ``history_summary`` is the hash of a summary of
    turns that are not shown. ``names_images`` says that a line names each of its images once they are not sent any
    more. ``sources`` are the citations that the question numbers for the reply. ``placement`` is
    the layout plan, if it was chosen by cost; it is never computed again.
    """

    id: str
    parent: str
    text: str
    typed: str | None = None
    attached: tuple[StoredArtifact, ...] = ()
    results: tuple[StoredArtifact, ...] = ()
    system: StoredSystem | None = None
    tools: tuple[StoredTool, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    fold: bool = False
    pinned: tuple[str, ...] | None = None
    history_summary: str | None = None
    rewritten: HistoryChangeReason | None = None
    prefix_unchanged: bool = False
    names_images: bool = False
    warnings: tuple[str, ...] = ()
    imprint: RequestFingerprint | None = None
    sources: tuple[StoredCitation, ...] = ()
    placement: LayoutPlan | None = None
    rules: RuleChanges | None = None

    @property
    def overrides(self) -> TurnOverrides:
        return TurnOverrides(
            system=self.system, tools=self.tools, model=self.model, pinned=self.pinned, rules=self.rules
        )

    @property
    def has_no_contents(self) -> bool:
        """Whether the event refers to no content."""
        return not self.attached and not self.results and self.system is None and self.history_summary is None

    @property
    def artifacts_in_erasure_order(self) -> tuple[StoredArtifact, ...]:
        """The stored artifacts, in the order in which erasures list their contents."""
        return (*self.attached, *self.results, *(() if self.system is None else self.system.inlined))

    def iter_content_hashes(self) -> Iterator[str]:
        """Yield every content hash that the event refers to."""
        for ref in self.artifacts_in_erasure_order:
            yield from ref.iter_content_hashes()
        if self.system is not None and self.system.drawn is not None:
            yield self.system.drawn
        if self.history_summary is not None:
            yield self.history_summary

    def artifacts(self) -> Iterator[StoredArtifact]:
        """Yield the artifacts of the question: tool results, attachments, and notes included in its instructions."""
        yield from self.results
        yield from self.attached
        if self.system is not None:
            yield from self.system.inlined


class EditEvent(
    QuestionEvent,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag="edit",
    rename={"history_summary": "strip", "prefix_unchanged": "unmoved"},
):
    """A question that replaces another one, which stays on its branch."""

    target: str


def make_question_event(
    turn: Turn, *, message_id: str, parent: str, edited_message: str | None = None
) -> QuestionEvent:
    """Build the event of a new question, or of one that replaces the message ``edited_message``."""
    event = with_turn_settings(_make_unplaced_event(turn), turn.turn_settings, id=message_id, parent=parent)
    return (
        event
        if edited_message is None
        else with_position(event, message_id=message_id, parent=parent, edited_message=edited_message)
    )


def make_unplaced_question_event(turn: Turn) -> QuestionEvent:
    """Build the event of a question from another program, without position and turn settings.

    It gets the settings under which the conversation is continued.
    """
    return without_turn_settings(_make_unplaced_event(turn))


def with_position(
    event: QuestionEvent, *, message_id: str, parent: str, edited_message: str | None = None
) -> QuestionEvent:
    """Return the same question at a position, as a new question or as an edit."""
    fields = {**asdict(event), "id": message_id, "parent": parent}
    fields.pop("target", None)
    return QuestionEvent(**fields) if edited_message is None else EditEvent(**fields, target=edited_message)


def question_contents(turn: Turn) -> Contents:
    """Return the contents that the event of a turn refers to, by hash."""
    contents = dict(contents_of_artifacts((*turn.tool_results, *turn.attached)).stored)
    if turn.history_summary is not None:
        contents[hash_text(turn.history_summary)] = turn.history_summary
    if turn.system is not None and turn.system.inlined:
        contents.update(contents_of_artifacts(turn.system.inlined).stored)
        contents[hash_text(turn.system.instructions)] = turn.system.instructions
    return Contents(contents)


def turn_from_event(
    event: QuestionEvent,
    contents: ContentsByHash,
    *,
    defaults: TurnSettings,
    reply: QuestionEvent | ReplyEvent | None = None,
) -> Turn:
    """Return the turn that an event describes.

    Artifacts whose contents were erased are left out and named in the warnings. ``defaults`` are the turn settings for
    events without any, and ``reply`` is the reply to the question.
    """
    text = event.text
    # Most turns have nothing else. Reading them is much of the time that opening a long conversation takes.
    turn = Turn(
        text=text,
        typed=text if event.typed is None else event.typed,
        id=event.id or None,
        turn_settings=resolve_turn_settings(event, defaults),
        reply=None if reply is None else reply.text,
        reply_id=None if reply is None else reply.id,
        fingerprint=event.imprint,
        layout_plan=event.placement,
    )
    if event.attached or event.results or event.warnings or event.sources:
        turn = _with_attachments(turn, event, contents)
    if event.drop or event.detach or event.fold:
        turn = replace(turn, drop=event.drop, detach=event.detach, fold=event.fold)
    if (
        event.system,
        event.tools,
        event.model,
        event.pinned,
        event.history_summary,
        event.rewritten,
        event.rules,
    ) == _NO_OPTIONAL_FIELDS:
        return turn
    return replace(
        turn,
        system=None if event.system is None else _to_system_parts(event.system, contents),
        tools=_to_tool_definitions(event.tools),
        model=event.model,
        pinned=event.pinned,
        rules=event.rules,
        history_summary=read_stored_text(event.history_summary, contents),
        history_rewrite=event.rewritten,
        prefix_unchanged=event.prefix_unchanged,
    )


def _with_attachments(turn: Turn, event: QuestionEvent, contents: ContentsByHash) -> Turn:
    results, missing = read_question_artifacts(event.results, contents)
    attached, also_missing = read_question_artifacts(event.attached, contents)
    warnings = (*event.warnings, *missing, *also_missing)
    return replace(
        turn,
        attached=attached,
        tool_results=results,
        warnings=warnings,
        sources=event.sources,
        names_images=event.names_images,
    )


def read_question_artifacts(
    stored: Sequence[StoredArtifact], contents: ContentsByHash
) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """Return the artifacts of a question, and a warning for each that was erased."""
    found, missing = read_artifacts(stored, contents)
    return found, tuple([f"{name} was erased and is left out." for name in missing])


def decode_overrides(
    overrides: TurnOverrides,
) -> tuple[SystemParts | None, tuple[ToolDefinition, ...] | None, str | None]:
    """Return system prompt, tools and model in the types that turns use; instructions are as typed."""
    return (
        None if overrides.system is None else _to_system_parts(overrides.system, {}),
        _to_tool_definitions(overrides.tools),
        overrides.model,
    )


def _make_unplaced_event(turn: Turn) -> QuestionEvent:
    """Build the event of a turn without position and turn settings, omitting everything unchanged."""
    return QuestionEvent(
        id="",
        parent="",
        text=turn.text,
        typed=turn.typed if turn.typed != turn.text else None,
        attached=tuple(map(to_stored_artifact, turn.attached)),
        results=tuple(map(to_stored_artifact, turn.tool_results)),
        system=None if turn.system is None else _to_stored_system(turn.system),
        tools=None
        if turn.tools is None
        else tuple(StoredTool(name=t.name, description=t.description, parameters=t.parameters) for t in turn.tools),
        model=turn.model,
        drop=turn.drop,
        detach=turn.detach,
        fold=turn.fold,
        pinned=turn.pinned,
        history_summary=None if turn.history_summary is None else hash_text(turn.history_summary),
        rewritten=turn.history_rewrite,
        prefix_unchanged=turn.prefix_unchanged,
        names_images=turn.names_images,
        warnings=turn.warnings,
        imprint=turn.fingerprint,
        sources=turn.sources,
        placement=turn.layout_plan,
        rules=turn.rules,
    )


def _to_stored_system(parts: SystemParts) -> StoredSystem:
    stored = StoredSystem(
        base=parts.base,
        guidelines=parts.guidelines,
        instructions=parts.instructions,
        rules=parts.rules,
        project=parts.project,
        workflow=parts.workflow,
        memory=parts.memory,
        typed_instructions=parts.typed_instructions,
        workflow_brief=parts.workflow_brief,
        workflow_detail=parts.workflow_detail,
    )
    if not parts.inlined:
        return stored
    inlined = tuple(map(to_stored_artifact, parts.inlined))
    return replace(stored, instructions="", drawn=hash_text(parts.instructions), inlined=inlined)


def _to_system_parts(stored: StoredSystem, contents: ContentsByHash) -> SystemParts:
    """Return the system prompt; instructions whose expanded text was erased are as typed."""
    parts = SystemParts(
        base=stored.base,
        guidelines=stored.guidelines,
        instructions=stored.instructions,
        rules=stored.rules,
        project=stored.project,
        workflow=stored.workflow,
        memory=stored.memory,
        typed_instructions=stored.typed_instructions,
        workflow_brief=stored.workflow_brief,
        workflow_detail=stored.workflow_detail,
    )
    if stored.drawn is None:
        return parts
    drawn = read_stored_text(stored.drawn, contents)
    if drawn is None:
        return replace(parts, instructions=stored.typed_instructions)
    return replace(parts, instructions=drawn, inlined=read_artifacts(stored.inlined, contents)[0])


def _to_tool_definitions(stored: tuple[StoredTool, ...] | None) -> tuple[ToolDefinition, ...] | None:
    if stored is None:
        return None
    return tuple(ToolDefinition(name=t.name, description=t.description, parameters=t.parameters) for t in stored)
