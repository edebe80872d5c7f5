"""Reasons: why an artifact or a message stands in the prompt or does not, and what would bring all of it in."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.compaction.fitting import Rules
from lamella.core.log.ids import Voice, round_result_id
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Receipt, Step
from lamella.core.log.terms import CarryForward
from lamella.core.log.turn import PART_NAMES, Turn
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.folding import SHOWN_TURNS
from lamella.core.prompt.layers.model import SYSTEM_PLACE, LayerId, Segment
from lamella.core.prompt.layers.rounds import TOOL_KIND
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.engine.dialogue.past import Past
from lamella.errors import CallError

_READABLE = (Form.FULL, Form.UPDATE)
_NAMED_AT_MOST = 5
# How alike a name must be, of 1, for somebody to have meant it: one letter of five.
_NEAR = 0.8


class RemedyKind(StrEnum):
    """What somebody can do so that something stands in the prompt, or can be read although it does not."""

    ATTACH = "attach"
    UNDO = "undo"
    SET = "set"
    RECALL = "recall"
    FORK = "fork"


class Remedy(Struct, frozen=True, kw_only=True):
    """Something to do.

    ``what`` is what to attach or recall, the receipt to undo, a setting with its value, or the message to go on from.
    """

    do: RemedyKind
    what: str


class Reason(Struct, frozen=True, kw_only=True):
    """Why something is in the next prompt, or is not.

    ``turns`` are the numbers of those it came with. ``segments`` are what stands for it, each with its layer, none for
    what an earlier message carries without belonging to one. ``remedies`` are empty where all of it can be read.
    """

    id: str
    kind: str
    title: str
    in_prompt: bool
    why: str
    turns: tuple[int, ...] = ()
    segments: tuple[tuple[LayerId | None, Segment], ...] = ()
    remedies: tuple[Remedy, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Trace:
    """What a branch knows of one id: what it is, and in which turns it came and was dropped."""

    kind: str
    title: str
    question: str
    artifact: Artifact | None = None
    came: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


def explain(name: str, past: Past, sent: Prompt, *, erased: Collection[str] = (), said: Collection[str] = ()) -> Reason:
    """Why what is called so is in a prompt or not.

    ``erased`` are ids whose contents are gone for good, ``said`` are those of messages on every branch.
    """
    traces = _trace(past)
    found = _match(name, traces, erased)
    trace = traces.get(found)
    segments = tuple(_find_segments(found, sent))
    if found in erased and not segments:
        why, remedies = "It was erased: nothing of it is left.", [Remedy(do=RemedyKind.ATTACH, what=found)]
    elif trace is None and name in said:
        why = "It is a message that this branch goes on without: it is on another one."
        remedies = [Remedy(do=RemedyKind.FORK, what=name)]
    elif trace is None:
        why, remedies = (_tell_part(found), []) if segments else _tell_unknown(found, traces)
    elif segments:
        why, remedies = _tell_standing(found, trace, segments, receipts=past.committed(), sent=sent)
    else:
        why, remedies = _tell_missing(found, trace, receipts=past.committed(), sent=sent)
    return Reason(
        id=found,
        kind="" if trace is None else trace.kind,
        title="" if trace is None else trace.title,
        in_prompt=bool(segments),
        why=why,
        turns=() if trace is None else tuple(trace.came),
        segments=segments,
        remedies=tuple(remedies),
    )


def _trace(past: Past) -> dict[str, _Trace]:
    """Everything that was said, attached or given by tools on a branch, by its id."""
    traces: dict[str, _Trace] = {}
    names = iter(past.path)
    for number, turn in enumerate(past.list_turns(), start=1):
        question = next(names)
        for dropped in turn.drop:
            if dropped in traces:
                traces[dropped].dropped.append(number)
        for name, kind, title, artifact in _list_turn(turn, question, names):
            trace = traces.setdefault(name, _Trace(kind=kind, title=title, question=question))
            trace.kind, trace.title, trace.artifact = kind, title, artifact
            trace.came.append(number)
    return traces


def _list_turn(turn: Turn, question: str, names: Iterator[str]) -> Iterator[tuple[str, str, str, Artifact | None]]:
    for artifact in (*turn.results, *turn.attached, *(turn.system.inlined if turn.system else ())):
        yield artifact.id, artifact.kind.value, artifact.title, artifact
    yield question, Voice.USER.value, "", None
    for number, one in enumerate(turn.rounds):
        calls = {call.id: call for call in one.calls}
        for at, output in enumerate(one.outputs):
            call = calls[output.call]
            name = round_result_id(question, place=(number, at), call=call, output=output)
            yield name, TOOL_KIND, call.name, None
    if turn.reply is not None:
        yield next(names), Voice.REPLY.value, "", None


_SPOKEN = {"turn": Voice.USER, "reply": Voice.REPLY}


def _match(name: str, traces: Mapping[str, _Trace], erased: Collection[str]) -> str:
    """The id that is meant: as it is, by its turn as in turn:3, or by the end of a path or a title of only one."""
    if name in traces or name in erased:
        return name
    word, _, number = name.partition(":")
    said = [one for one, trace in traces.items() if trace.kind == _SPOKEN.get(word) and str(trace.came[-1]) == number]
    if said:
        return said[0]
    wanted = name.casefold()
    found = [one for one, trace in traces.items() if wanted in _call(one, trace.title)]
    if len(found) > 1:
        named = ", ".join(found[:_NAMED_AT_MOST])
        raise CallError(f"{name} may be one of {len(found)}: {named}.", hint="Give the id of one of them.")
    return found[0] if found else name


def _call(name: str, title: str) -> set[str]:
    """What people may call an artifact, in small letters."""
    file = name.casefold().partition("#")[0]
    last = file.rpartition("/")[2]
    return {title.casefold(), file, last, last.rpartition(".")[0]} - {""}


def _find_segments(name: str, sent: Prompt) -> Iterator[tuple[LayerId | None, Segment]]:
    for layer in LayerId:
        for segment in sent.segments(layer):
            if segment.id == name or any(drawn == name for drawn, _ in segment.inlines):
                yield layer, segment
    for standing in sent.carried:
        if standing.artifact.id == name:
            yield None, standing.segment


def _tell_part(name: str) -> str:
    """Why a part of the system prompt stands there, which nobody attached."""
    if name == "memory":
        return (
            "It is what is remembered, the last part of the system prompt. What changed in its files is taken up when "
            "the conversation is opened, when it is compacted, when what was sent of it moves anyway, or when somebody "
            "says so."
        )
    return f"It is the part {name} of the system prompt."


def _tell_unknown(name: str, traces: Mapping[str, _Trace]) -> tuple[str, list[Remedy]]:
    if name == "memory":
        return "Nothing is remembered that it could hold, or the setting memory keeps it out of here.", []
    if name in PART_NAMES:
        return f"The part {name} of the system prompt is empty.", []
    near = get_close_matches(name, traces, n=1, cutoff=_NEAR)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"It was never attached on this branch.{meant}", [Remedy(do=RemedyKind.ATTACH, what=name)]


def _tell_standing(
    name: str,
    trace: _Trace,
    segments: Sequence[tuple[LayerId | None, Segment]],
    *,
    receipts: Sequence[Receipt],
    sent: Prompt,
) -> tuple[str, list[Remedy]]:
    """Why it stands as it does. Of several pieces the one that can be read counts."""
    layer, segment = next((one for one in segments if one[1].form in _READABLE), segments[0])
    came = f"turn {trace.came[-1]}"
    if layer is LayerId.L1:
        return "The instructions of the system prompt draw it in.", []
    if name in sent.pinned:
        return "It is a pinned message: no compaction takes it out.", []
    if layer is LayerId.L5 or (segment.kind in tuple(Voice) and segment.form in _READABLE):
        return "It is part of the talk, which is sent whole.", []
    if segment.form in _READABLE:
        return f"It came with {came}; {_tell_stay(name, layer, segment, sent=sent)}", []
    return _tell_shortened(name, trace, segment, cut=_find_cut(name, receipts), sent=sent)


def _tell_stay(name: str, layer: LayerId | None, segment: Segment, *, sent: Prompt) -> str:
    """Where something that can be read stands, and why it is still there."""
    entry = sent.library.get(name)
    pinned = entry is not None and entry.artifact.policy is Policy.PIN
    where = "in the context library" if segment.place == SYSTEM_PLACE else f"in {segment.place}".replace(":", " ")
    if layer is LayerId.L3:
        stays = "this turn attaches it"
    elif layer is LayerId.L2:
        stays = "it is pinned and never shortened" if pinned else "what was attached stays while there is room"
    else:
        stays = "it belongs to that turn, and nothing has been folded since"
    newest = ", its newest text as an update" if segment.form is Form.UPDATE else " in full"
    return f"{stays}. It stands {where}{newest}."


def _tell_shortened(
    name: str, trace: _Trace, segment: Segment, *, cut: tuple[Receipt, Step] | None, sent: Prompt
) -> tuple[str, list[Remedy]]:
    """Why only something smaller stands for it."""
    attach, recall = Remedy(do=RemedyKind.ATTACH, what=name), Remedy(do=RemedyKind.RECALL, what=name)
    if cut is not None:
        receipt, step = cut
        left = "its outline is" if segment.form is Form.PREVIEW else "a line is"
        undo = Remedy(do=RemedyKind.UNDO, what=receipt.id)
        again = [] if trace.kind in (TOOL_KIND, *Voice) else [attach]
        return f"The compaction {receipt.id} shortened it in its step {step.name}: {left} left.", [undo, *again, recall]
    if trace.kind == TOOL_KIND:
        return f"It is what a tool gave in turn {trace.came[-1]}: of earlier results the call is left.", [recall]
    if segment.form is Form.SUMMARY:
        return "A summary stands for it: with its text the turn would not have fitted.", [attach, recall]
    if segment.form is Form.HANDLE and trace.artifact is not None and trace.artifact.has_images:
        text = Remedy(do=RemedyKind.SET, what="image_notes=text")
        return "It embeds pictures: of such a note a line is left, as the setting image_notes says.", [
            attach,
            text,
            recall,
        ]
    if sent.terms.carry_forward is CarryForward.PREVIEW:
        whole = Remedy(do=RemedyKind.SET, what="carry_forward=full")
        return "Only its outline is carried forward, as the setting carry_forward says.", [attach, whole, recall]
    via = None if trace.artifact is None else trace.artifact.source.via
    if segment.form is Form.PREVIEW and via is not None:
        return f"Not all that came with {via.partition(':')[2] or via} fits: its outline was chosen.", [attach, recall]
    return "Only something shorter stands for it.", [attach, recall]


def _tell_missing(name: str, trace: _Trace, *, receipts: Sequence[Receipt], sent: Prompt) -> tuple[str, list[Remedy]]:
    """Why nothing stands for something that the branch knows."""
    attach, recall = Remedy(do=RemedyKind.ATTACH, what=name), Remedy(do=RemedyKind.RECALL, what=name)
    if trace.dropped and trace.dropped[-1] > trace.came[-1]:
        return f"It was dropped in turn {trace.dropped[-1]}.", [attach, recall]
    cut = _find_cut(name, receipts) or _find_cut(trace.question, receipts)
    said = trace.kind in (*Voice, TOOL_KIND)
    if said and cut is not None:
        receipt, step = cut
        told = f"The compaction {receipt.id} took it out in its step {step.name}."
        return told, [Remedy(do=RemedyKind.UNDO, what=receipt.id), recall]
    if said and sent.talk.hidden:
        shown = sent.terms.history_turns or SHOWN_TURNS[sent.terms.history]
        told = f"The history mode {sent.terms.history} shows the last {shown} turns; it is older."
        return told, [Remedy(do=RemedyKind.SET, what="history=full"), recall]
    came = f"turn {trace.came[-1]}"
    if trace.kind == Kind.IMAGE:
        return f"A picture is sent with its own turn: {came}.", [attach]
    return f"It came with {came} and was left out since.", [attach, recall]


def _find_cut(name: str, receipts: Sequence[Receipt]) -> tuple[Receipt, Step] | None:
    """The last compaction in force that names it, and the step that does."""
    cuts = (
        (receipt, step) for receipt in reversed(receipts) for step in reversed(receipt.steps) if name in step.removed
    )
    return next(cuts, None)


def look_ahead(state: State, turn: Turn, rules: Rules) -> Prompt:
    """The request that waits for its reply, or that of a turn as far as it is known."""
    return waiting(state if state.waits else advance(state, turn, rules.place, measure=rules.measure))
