"""Choosing: of the notes that a folder or a tag brings, those that fit and speak of what is asked.

They are chosen once, when the folder is attached or read anew. What was chosen is written down with the turn, so that
the prompt stays as it is until somebody asks for another choice.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.make import LISTED, make_left_out
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.compaction.fitting import Rules
from lamella.core.log.placement import Form
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.layers.library import render_smaller
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import State
from lamella.core.search.ranking import rank_texts
from lamella.core.search.spelling import spell
from lamella.core.values import replace

# A question and notes by path and text; the paths, best first.
Rank = Callable[[str, Sequence[tuple[str, str]]], Sequence[str]]
# How a note came in, and what says so: a folder, a tag, or a template that names one of them.
_BRINGS = {"folder": Kind.FOLDER, "tag": Kind.TAG}
_TEMPLATE = "template"
# How much of the room is for whole notes; what is left of it is for outlines of others, and for lists.
_WHOLE = 0.75
_LIST = 300
# Fewer tokens than any outline has.
_LEAST = 40
_NAMED = 3


def rank_by_words(question: str, notes: Sequence[tuple[str, str]]) -> Sequence[str]:
    """The ranking that needs nothing but the notes: words of the question, the rarer the better."""
    return rank_texts(question, notes, key=spell)


def choose_notes(turn: Turn, state: State, rules: Rules, *, rank: Rank, question: str = "") -> Turn:
    """The turn with as much of its folders and tags as fits, and a list of what is left out of each.

    All of it where that can be brought under the trigger, by a compaction if need be. Else up to its own share of
    what the limit leaves beside what may not go: first whole notes, then outlines, those first that the question asks
    for.
    """
    groups = group_notes(turn.attached)
    kept = {via: choice for via, notes in groups.items() if (choice := _keep_choice(via, notes, state)) is not None}
    fresh = {via: notes for via, notes in groups.items() if via not in kept}
    chosen, told = _choose(
        fresh, turn, state, rules=rules, ranked=lambda notes: _order(rank, question or turn.typed, notes)
    )
    return _rebuild(turn, {**kept, **chosen}, (*turn.warnings, *told)) if kept or chosen else turn


def _choose(
    groups: Mapping[str, Sequence[Artifact]],
    turn: Turn,
    state: State,
    *,
    rules: Rules,
    ranked: Callable[[Sequence[Artifact]], Sequence[Artifact]],
) -> tuple[dict[str, list[Artifact]], list[str]]:
    """What stands for each folder, where not all of them fit, and words on that."""
    budget, count = rules.budget, rules.measure.count
    fresh = [note for notes in groups.values() for note in notes if not stands_whole(note, state)]
    # No text has more tokens than bytes; most folders need not be counted to know that they fit.
    if sum(len(note.text.encode()) for note in fresh) <= budget.trigger * budget.limit - _size(state) - _LIST:
        return {}, []
    others = tuple(one for one in turn.attached if not _is_among(one, groups))
    used = _weigh_protected(replace(turn, attached=others), state, rules)
    weights = {str(note.id): count(render_block(note)) for note in fresh}
    if used + sum(weights.values()) <= budget.trigger * budget.limit:
        return {}, []
    room = int(budget.own_share * max(0, budget.limit - used)) - _LIST * len(groups)
    whole, outlined = _fill(ranked(fresh), weights, room, count=count)
    chosen: dict[str, list[Artifact]] = {}
    told: list[str] = []
    for via, notes in groups.items():
        chosen[via], said = _describe(via, notes, whole=whole, outlined=outlined, state=state)
        told.append(said)
    return chosen, told


def group_notes(attached: Sequence[Artifact]) -> dict[str, list[Artifact]]:
    """The notes that came with a folder or a tag, by how they came, where nobody has chosen among them yet.

    A pin is somebody's choice, and so is a list of what is left out.
    """
    groups: dict[str, list[Artifact]] = {}
    for one in attached:
        via = one.source.via
        if via is not None and one.policy is not Policy.PIN and find_brought(via) is not None:
            groups.setdefault(via, []).append(one)
    there = {one.id for one in attached}
    return {via: notes for via, notes in groups.items() if _name_list(via) not in there}


def _is_among(one: Artifact, groups: Mapping[str, object]) -> bool:
    return one.source.via in groups and one.policy is not Policy.PIN


def find_brought(via: str) -> tuple[Kind, str] | None:
    """The folder or tag that something came with."""
    how, _, name = via.partition(":")
    if not name:
        return None
    if how == _TEMPLATE:
        return (Kind.TAG if name.startswith("#") else Kind.FOLDER), name
    return (_BRINGS[how], name) if how in _BRINGS else None


def _size(state: State) -> int:
    return 0 if state.last is None else state.last.total


def _weigh_protected(turn: Turn, state: State, rules: Rules) -> int:
    """What a request holds that no compaction takes out: system prompt, tools, what is attached and asked now."""
    prompt = waiting(advance(state, turn, rules.place, measure=rules.measure))
    by_layer = make_envelope(prompt, rules.budget).tokens.by_layer
    return sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]


def stands_whole(note: Artifact, state: State) -> bool:
    """Whether a note can be read off the request already: it is only referred to."""
    standing = state.standing.get(note.id)
    return standing is not None and standing.in_full and standing.artifact.hash == note.hash


def _stands_outlined(note: Artifact, state: State) -> bool:
    standing = state.standing.get(note.id)
    return standing is not None and standing.form is Form.PREVIEW and standing.artifact.hash == note.hash


def _keep_choice(via: str, notes: Sequence[Artifact], state: State) -> list[Artifact] | None:
    """What was chosen of a folder before, as it is now, none where nothing was; who asks for that chooses anew."""
    name = _name_list(via)
    entry = state.library.get(name)
    if entry is None or any(note.anew for note in notes):
        return None
    chosen: list[Artifact] = []
    for note in notes:
        known = state.library.get(note.id)
        if known is None:
            continue
        if known.form is None:
            chosen.append(note)
        elif known.artifact.hash != note.hash:
            chosen.append(replace(note, outlined=True))
    return [*chosen, entry.artifact]


def _name_list(via: str) -> str:
    kind, name = find_brought(via) or (Kind.FOLDER, via)
    return make_left_out(kind, name=name, text="").id


def _order(rank: Rank, question: str, notes: Sequence[Artifact]) -> list[Artifact]:
    """The notes, best first; one that the ranking leaves out comes last."""
    by_id = {str(note.id): note for note in notes}
    ranked = [name for name in rank(question, [(note.id, note.text) for note in notes]) if name in by_id]
    return [by_id[name] for name in dict.fromkeys((*ranked, *by_id))]


def _fill(
    ordered: Sequence[Artifact], weights: Mapping[str, int], room: int, *, count: Callable[[str], int]
) -> tuple[frozenset[str], frozenset[str]]:
    """The ids of those that stand whole, and of those that stand as outlines."""
    whole: set[str] = set()
    outlined: set[str] = set()
    left = room * _WHOLE
    for note in ordered:
        if weights[note.id] <= left:
            whole.add(note.id)
            left -= weights[note.id]
    left = room - sum(weights[name] for name in whole)
    for note in ordered:
        if left < _LEAST:
            break
        if note.id in whole:
            continue
        outline = render_smaller(note, Form.PREVIEW)
        tokens = weights[note.id] if outline is None else min(count(outline), weights[note.id])
        if tokens <= left:
            (whole if outline is None else outlined).add(note.id)
            left -= tokens
    return frozenset(whole), frozenset(outlined)


def _describe(
    via: str, notes: Sequence[Artifact], *, whole: Collection[str], outlined: Collection[str], state: State
) -> tuple[list[Artifact], str]:
    """What stands for a folder: its notes as they are chosen, and the list of the others; and words on it.

    An outline that stands in the request already is not sent again.
    """
    full = [note for note in notes if note.id in whole or stands_whole(note, state)]
    here = {note.id for note in full}
    short = [note for note in notes if note.id in outlined or (note.id not in here and _stands_outlined(note, state))]
    there = {note.id for note in (*full, *short)}
    out = [note.id for note in notes if note.id not in there]
    kind, name = find_brought(via) or (Kind.FOLDER, via)
    shown = name if name.strip("./") else "the vault"
    said = (
        f"Of the {len(notes):,} notes of {shown}, {len(full):,} {_agree(full, 'stands', 'stand')} in full, "
        f"{len(short):,} as {_agree(short, 'its outline', 'their outlines')}, and "
        f"{len(out):,} {_agree(out, 'is', 'are')} left out"
    )
    heading = f"{said}; each can be attached by its path:" if out else f"{said}."
    listed = make_left_out(kind, name=name, text="\n".join((heading, *(f"{LISTED}{path}" for path in out))))
    some = f": {', '.join(out[:_NAMED])}{f' and {len(out) - _NAMED:,} more' * (len(out) > _NAMED)}" if out else ""
    sent = [*full, *(replace(note, outlined=True) for note in short if not _stands_outlined(note, state))]
    told = f"{said}{some}. Not all of them fit; refresh chooses anew."
    return [*sorted(sent, key=lambda one: one.id), replace(listed, anew=any(note.anew for note in notes))], told


def _agree(counted: Sequence[object], one: str, several: str) -> str:
    return one if len(counted) == 1 else several


def _rebuild(turn: Turn, chosen: Mapping[str, Sequence[Artifact]], warnings: tuple[str, ...]) -> Turn:
    """The turn with what was chosen where the notes of each folder stood."""
    left = dict(chosen)
    attached: list[Artifact] = []
    for one in turn.attached:
        if not _is_among(one, chosen):
            attached.append(one)
        else:
            attached += left.pop(one.source.via or "", ())
    return replace(turn, attached=tuple(attached), warnings=warnings)
