"""Explain why an artifact or message is in the prompt or not, and what would include it in full."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum

from msgspec import Struct

from lamella.conversation.past_turns import BranchHistory
from lamella.core.artifacts.kinds import is_turn_only
from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.ledger.entry import CacheMiss
from lamella.core.log.call import ANSWER_PURPOSE, ModelCall
from lamella.core.log.receipts import CompactionReceipt, CompactionStep
from lamella.core.log.turn import (
    SYSTEM_PART_NAMES,
    ArtifactForm,
    CarryForwardMode,
    MessageAuthor,
    Turn,
    round_result_id,
)
from lamella.core.log.turn_records import TurnRecord
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.folding import SHOWN_TURNS_BY_MODE
from lamella.core.prompt.layers.model import SYSTEM_POSITION, LayerId, Segment
from lamella.core.prompt.layers.tool_rounds import TOOL_KIND
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.errors import InvalidOperationError

_READABLE_FORMS = (ArtifactForm.FULL, ArtifactForm.UPDATE)
_MAX_NAMED_MATCHES = 5
# The minimum similarity, from 0 to 1, of an id that is suggested for a misspelt one: one letter of five may differ.
_MIN_NAME_SIMILARITY = 0.8


class SuggestedActionKind(StrEnum):
    """The actions that bring something into the prompt or make its text readable."""

    ATTACH = "attach"
    UNDO = "undo"
    SET = "set"
    RECALL = "recall"
    FORK = "fork"


class SuggestedAction(Struct, frozen=True, kw_only=True):
    """One action to take.

    ``target`` is the name to attach or recall, the receipt to undo, a setting with its value, or the message to fork
    from.
    """

    kind: SuggestedActionKind
    target: str


class ExplainedCacheMiss(Struct, frozen=True, kw_only=True):
    """A turn whose cache missed, the reason in a sentence, and what that cost; ``cost`` is None without a known price."""

    turn: int
    why: str
    tokens: int
    cost: Decimal | None


class PromptExplanation(Struct, frozen=True, kw_only=True):
    """The reason why something is in the next prompt, or why it is not.

    ``turns`` are the numbers of the turns that attached it. ``segments`` are the blocks that represent it, each with
    its layer; the layer is None for an artifact that an earlier message carries. ``remedies`` are the suggested
    actions and are empty if its full text is in the prompt. ``cache_misses`` are those that it caused, or, for a
    message, those of its turn.
    """

    id: str
    kind: str
    title: str
    in_prompt: bool
    why: str
    turns: tuple[int, ...] = ()
    segments: tuple[tuple[LayerId | None, Segment], ...] = ()
    remedies: tuple[SuggestedAction, ...] = ()
    cache_misses: tuple[ExplainedCacheMiss, ...] = ()


@dataclass(slots=True, kw_only=True)
class _ArtifactTrace:
    """The facts of a branch about one id: its kind and title, and the turns that attached or dropped it."""

    kind: str
    title: str
    question_id: str
    artifact: Artifact | None = None
    attached_turns: list[int] = field(default_factory=list)
    dropped_turns: list[int] = field(default_factory=list)


def explain_artifact(
    name: str,
    history: BranchHistory,
    prompt: Prompt,
    *,
    erased: Collection[str] = (),
    message_names: Collection[str] = (),
) -> PromptExplanation:
    """Explain why the artifact or message with this name is in a prompt or not.

    ``erased`` are ids whose contents were erased for good. ``message_names`` are the ids of messages on all branches.
    """
    traces = _trace_artifacts(history)
    found = _resolve_name(name, traces, erased)
    trace = traces.get(found)
    segments = tuple(_iter_segments(found, prompt))
    if found in erased and not segments:
        why, remedies = (
            "It was erased for good.",
            [SuggestedAction(kind=SuggestedActionKind.ATTACH, target=found)],
        )
    elif trace is None and name in message_names:
        why = "It is a message of another branch."
        remedies = [SuggestedAction(kind=SuggestedActionKind.FORK, target=name)]
    elif trace is None:
        why, remedies = (_explain_system_part(found), []) if segments else _explain_unknown(found, traces)
    elif segments:
        why, remedies = _explain_placed(found, trace, segments, receipts=history.list_receipts(), sent=prompt)
    else:
        why, remedies = _explain_missing(found, trace, receipts=history.list_receipts(), sent=prompt)
    return PromptExplanation(
        id=found,
        kind="" if trace is None else trace.kind,
        title="" if trace is None else trace.title,
        in_prompt=bool(segments),
        why=why,
        turns=() if trace is None else tuple(trace.attached_turns),
        segments=segments,
        remedies=tuple(remedies),
    )


def _trace_artifacts(history: BranchHistory) -> dict[str, _ArtifactTrace]:
    """Return every message, attachment and tool result of a branch by its id."""
    traces: dict[str, _ArtifactTrace] = {}
    names = iter(history.message_ids)
    for number, turn in enumerate(history.list_turns(), start=1):
        question = next(names)
        for dropped in turn.drop:
            if dropped in traces:
                traces[dropped].dropped_turns.append(number)
        for name, kind, title, artifact in _iter_turn_items(turn, question, names):
            trace = traces.setdefault(name, _ArtifactTrace(kind=kind, title=title, question_id=question))
            trace.kind, trace.title, trace.artifact = kind, title, artifact
            trace.attached_turns.append(number)
    return traces


def _iter_turn_items(
    turn: Turn, question_id: str, reply_ids: Iterator[str]
) -> Iterator[tuple[str, str, str, Artifact | None]]:
    for artifact in (*turn.tool_results, *turn.attached, *(turn.system.inlined if turn.system else ())):
        yield artifact.id, artifact.kind.value, artifact.title, artifact
    yield question_id, MessageAuthor.USER.value, "", None
    for number, one in enumerate(turn.rounds):
        calls = {call.id: call for call in one.calls}
        for at, output in enumerate(one.outputs):
            call = calls[output.call]
            name = round_result_id(question_id, position=(number, at), call=call, output=output)
            yield name, TOOL_KIND, call.name, None
    if turn.reply is not None:
        yield next(reply_ids), MessageAuthor.REPLY.value, "", None


_AUTHOR_BY_PREFIX = {"turn": MessageAuthor.USER, "reply": MessageAuthor.REPLY}


def _resolve_name(name: str, traces: Mapping[str, _ArtifactTrace], erased: Collection[str]) -> str:
    """Return the id that a name means: an id, ``turn:3`` or ``reply:3``, a file name or a title.

    Returns the name itself if nothing matches. Raises ``InvalidOperationError`` if several ids match.
    """
    if name in traces or name in erased:
        return name
    word, _, number = name.partition(":")
    messages = [
        one
        for one, trace in traces.items()
        if trace.kind == _AUTHOR_BY_PREFIX.get(word) and str(trace.attached_turns[-1]) == number
    ]
    if messages:
        return messages[0]
    wanted = name.casefold()
    found = [one for one, trace in traces.items() if wanted in _list_names_users_may_use(one, trace.title)]
    if len(found) > 1:
        named = ", ".join(found[:_MAX_NAMED_MATCHES])
        raise InvalidOperationError(f"{name} may be one of {len(found)}: {named}.", hint="Give the id of one of them.")
    return found[0] if found else name


def _list_names_users_may_use(name: str, title: str) -> set[str]:
    """Return the lower-case names that a user may use for an artifact."""
    file = name.casefold().partition("#")[0]
    last = file.rpartition("/")[2]
    return {title.casefold(), file, last, last.rpartition(".")[0]} - {""}


def _iter_segments(name: str, sent: Prompt) -> Iterator[tuple[LayerId | None, Segment]]:
    for layer in LayerId:
        for segment in sent.segments(layer):
            if segment.id == name or any(drawn == name for drawn, _ in segment.inlines):
                yield layer, segment
    for placed in sent.unlayered_artifacts:
        if placed.artifact.id == name:
            yield None, placed.segment


def _explain_system_part(name: str) -> str:
    """Explain a part of the system prompt, which is there without being attached."""
    if name == "memory":
        return (
            "It has the remembered facts, the last part of the system prompt. Changes of the memory files are added when "
            "the conversation is opened or compacted, when the prefix changes anyway, or when you refresh the memory."
        )
    return f"It is the part {name} of the system prompt."


def _explain_unknown(name: str, traces: Mapping[str, _ArtifactTrace]) -> tuple[str, list[SuggestedAction]]:
    if name == "memory":
        return "There are no remembered facts, or the setting memory excludes them here.", []
    if name in SYSTEM_PART_NAMES:
        return f"The part {name} of the system prompt is empty.", []
    near = get_close_matches(name, traces, n=1, cutoff=_MIN_NAME_SIMILARITY)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"It was never attached on this branch.{meant}", [
        SuggestedAction(kind=SuggestedActionKind.ATTACH, target=name)
    ]


def _explain_placed(
    name: str,
    trace: _ArtifactTrace,
    segments: Sequence[tuple[LayerId | None, Segment]],
    *,
    receipts: Sequence[CompactionReceipt],
    sent: Prompt,
) -> tuple[str, list[SuggestedAction]]:
    """Explain the form of something that is in the prompt; of several blocks the readable one counts."""
    layer, segment = next((one for one in segments if one[1].form in _READABLE_FORMS), segments[0])
    came = f"turn {trace.attached_turns[-1]}"
    if layer is LayerId.L1:
        return "The instructions of the system prompt include it.", []
    if name in sent.pinned:
        return "It is a pinned message; no compaction removes it.", []
    if layer is LayerId.L5 or (segment.kind in tuple(MessageAuthor) and segment.form in _READABLE_FORMS):
        return "It is a message of the conversation; messages are sent in full.", []
    if segment.form in _READABLE_FORMS:
        return f"Attached in {came}; {_explain_position(name, layer, segment, sent=sent)}", []
    return _explain_shortened(name, trace, segment, shortened_by=_last_compaction_of(name, receipts), sent=sent)


def _explain_position(name: str, layer: LayerId | None, segment: Segment, *, sent: Prompt) -> str:
    """Say where a readable artifact is and why it is still there."""
    entry = sent.library.get(name)
    pinned = entry is not None and entry.artifact.policy is AttachmentPolicy.PIN
    where = "in the context library" if segment.place == SYSTEM_POSITION else f"in {segment.place}".replace(":", " ")
    if layer is LayerId.L3:
        stays = "this turn attaches it"
    elif layer is LayerId.L2:
        stays = "it is pinned and never shortened" if pinned else "attachments stay while there is room"
    else:
        stays = "it belongs to that turn, and the context library was not rebuilt since"
    newest = ", with its newest text as an update" if segment.form is ArtifactForm.UPDATE else " in full"
    return f"{stays}. It is {where}{newest}."


def _explain_shortened(
    name: str,
    trace: _ArtifactTrace,
    segment: Segment,
    *,
    shortened_by: tuple[CompactionReceipt, CompactionStep] | None,
    sent: Prompt,
) -> tuple[str, list[SuggestedAction]]:
    """Explain why only a shorter form of something is in the prompt."""
    attach, recall = (
        SuggestedAction(kind=SuggestedActionKind.ATTACH, target=name),
        SuggestedAction(kind=SuggestedActionKind.RECALL, target=name),
    )
    if shortened_by is not None:
        receipt, step = shortened_by
        left = "its outline is" if segment.form is ArtifactForm.PREVIEW else "one line is"
        undo = SuggestedAction(kind=SuggestedActionKind.UNDO, target=receipt.id)
        again = [] if trace.kind in (TOOL_KIND, *MessageAuthor) else [attach]
        return f"The compaction {receipt.id} shortened it in its step {step.name}: {left} left.", [undo, *again, recall]
    if trace.kind == TOOL_KIND:
        return (
            f"It is the result of a tool in turn {trace.attached_turns[-1]}; of older results only the call is left.",
            [recall],
        )
    if segment.form is ArtifactForm.SUMMARY:
        return "A summary replaces it, because its text did not fit into the context window.", [attach, recall]
    if segment.form is ArtifactForm.HANDLE and trace.artifact is not None and trace.artifact.has_images:
        text = SuggestedAction(kind=SuggestedActionKind.SET, target="image_notes=text")
        return "It embeds images; the setting image_notes reduces such a note to one line.", [
            attach,
            text,
            recall,
        ]
    if sent.turn_settings.carry_forward is CarryForwardMode.PREVIEW:
        whole = SuggestedAction(kind=SuggestedActionKind.SET, target="carry_forward=full")
        return "Only its outline is kept, because of the setting carry_forward.", [attach, whole, recall]
    via = None if trace.artifact is None else trace.artifact.source.via
    if segment.form is ArtifactForm.PREVIEW and via is not None:
        return f"Not everything from {via.partition(':')[2] or via} fits, so only its outline was attached.", [
            attach,
            recall,
        ]
    return "A shorter form replaces it.", [attach, recall]


def _explain_missing(
    name: str, trace: _ArtifactTrace, *, receipts: Sequence[CompactionReceipt], sent: Prompt
) -> tuple[str, list[SuggestedAction]]:
    """Explain why nothing in the prompt represents something that the branch knows."""
    attach, recall = (
        SuggestedAction(kind=SuggestedActionKind.ATTACH, target=name),
        SuggestedAction(kind=SuggestedActionKind.RECALL, target=name),
    )
    if trace.dropped_turns and trace.dropped_turns[-1] > trace.attached_turns[-1]:
        return f"It was dropped in turn {trace.dropped_turns[-1]}.", [attach, recall]
    cut = _last_compaction_of(name, receipts) or _last_compaction_of(trace.question_id, receipts)
    is_message = trace.kind in (*MessageAuthor, TOOL_KIND)
    if is_message and cut is not None:
        receipt, step = cut
        explanation = f"The compaction {receipt.id} removed it in its step {step.name}."
        return explanation, [SuggestedAction(kind=SuggestedActionKind.UNDO, target=receipt.id), recall]
    if is_message and sent.history.hidden_turns:
        shown = sent.turn_settings.history_turns or SHOWN_TURNS_BY_MODE[sent.turn_settings.history]
        explanation = f"The history mode {sent.turn_settings.history} shows the last {shown} turns; it is older."
        return explanation, [SuggestedAction(kind=SuggestedActionKind.SET, target="history=full"), recall]
    came = f"turn {trace.attached_turns[-1]}"
    if trace.kind == ArtifactKind.IMAGE:
        return f"An image is sent only with its own turn, {came}.", [attach]
    if trace.artifact is not None and is_turn_only(trace.artifact):
        return f"A search found it for one question; it is sent only with its own turn, {came}.", [recall]
    return f"It was attached in {came} and left out later.", [attach, recall]


def find_misses_about(
    name: str,
    records: Sequence[TurnRecord],
    ledger: Sequence[Sequence[ModelCall]],
    misses: Sequence[CacheMiss | None],
) -> Iterator[ExplainedCacheMiss]:
    """Yield the cache misses that a change of this artifact caused, or those of the turn whose message it is.

    ``ledger`` and ``misses`` have the model calls of each turn, and what their misses cost.
    """
    for number, (record, calls, miss) in enumerate(zip(records, ledger, misses, strict=True), start=1):
        answers = [call for call in calls if call.purpose == ANSWER_PURPOSE]
        if miss is None or not answers:
            continue
        verdict = answers[0].verdict
        ids = (record.message.id, None if record.reply is None else record.reply.id, verdict.prefix_change.segment)
        if name in ids:
            yield ExplainedCacheMiss(turn=number, why=str(verdict), tokens=miss.tokens, cost=miss.cost)


def _last_compaction_of(
    name: str, receipts: Sequence[CompactionReceipt]
) -> tuple[CompactionReceipt, CompactionStep] | None:
    """Return the last active compaction that removed this id, with the step that did."""
    cuts = (
        (receipt, step) for receipt in reversed(receipts) for step in reversed(receipt.steps) if name in step.removed
    )
    return next(cuts, None)


def preview_prompt(state: PromptState, turn: Turn, settings: PromptSettings) -> Prompt:
    """Return the request that awaits its reply, or the one that ``turn`` would give."""
    return get_pending_prompt(
        state
        if state.waits_for_reply
        else advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer)
    )
