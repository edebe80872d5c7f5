"""Outlining: what is attached now and could not be sent whole beside the question is sent as its outline, or named.

No model is asked. Text that cannot be fetched again and pins stand as they are; each outline keeps its artifact's id.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

from lamella.core.artifacts.blocks import render_condensed, shown_text
from lamella.core.artifacts.model import NAMED_ONLY, Artifact, Kind
from lamella.core.budget.thresholds import Budget, is_over
from lamella.core.log.placement import Form
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import waiting
from lamella.core.prompt.attached import tell_named
from lamella.core.prompt.envelope import count_tokens
from lamella.core.prompt.layers.library import LIST_TOKENS, may_shrink
from lamella.core.prompt.layers.model import Count, LayerId
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.text.outline import SECTION_CHARS, build_outline
from lamella.core.values import replace

# How much of each section is shown, in characters: as much as has room, and at last the headings alone.
_CHARS = (SECTION_CHARS, 250, 120, 60, 0)
# What a number in other digits may weigh, and what joins the lines.
_SLACK = 8
# What an outline says at least: shorter ones say nothing that a name does not.
_LEAST = 30
# Of many things that are sent as less, so many are told one by one.
_TOLD = 10


def is_too_large(opened: State, budget: Budget) -> bool:
    """Whether what no compaction of earlier things takes out of a turn's request is over the hard threshold alone."""
    return is_over(_weigh_kept(waiting(opened), budget), budget.hard, budget)


def outline_turn(turn: Turn, opened: State, budget: Budget, *, beside: State | None = None) -> Turn:
    """The turn with what it brings as outlines that share what is left to them, and named where that is too little.

    ``beside`` is the state after all was done to earlier things that may be: what then stands has to stand as well.
    """
    prompt = waiting(opened)
    weights = _find_large(prompt)
    room = budget.own - (_weigh_kept(prompt, budget) - sum(weights.values()))
    if beside is not None:
        left = waiting(beside)
        room = min(room, int(budget.hard * budget.limit) - (left.total - sum(_find_large(left).values())))
    brought: dict[str, Artifact] = {one.id: one for one in prompt.attached}
    floors = {name: _weigh_frame(brought[name], prompt.measure.count) for name in weights}
    caps, named = _share_or_name(weights, floors, room=room)
    texts = {name: _outline(brought[name], cap - floors[name], prompt.measure.count) for name, cap in caps.items()}
    told = _tell([f"{name} is sent as its outline: its {weights[name]:,} tokens do not fit." for name in texts])
    return _replace(turn, {**texts, **dict.fromkeys(named, NAMED_ONLY)}, (*told, *tell_named(named)))


def name_turn(turn: Turn, opened: State, *, only: Collection[str] | None = None) -> Turn:
    """The turn with a line for each thing that it brings and may be sent as less, or ``only`` for some of them."""
    small = [one.id for one in waiting(opened).attached if may_be_less(one)]
    named = [name for name in small if only is None or name in only]
    return _replace(turn, dict.fromkeys(named, NAMED_ONLY), tell_named(named))


def _replace(turn: Turn, texts: Mapping[str, str], told: Sequence[str]) -> Turn:
    """The turn with these texts in place of what it brings, and more to be said of it."""
    if not texts:
        return turn

    def lessen(every: Sequence[Artifact]) -> tuple[Artifact, ...]:
        less = [replace(one, condensed=texts[one.id], outlined=False) if one.id in texts else one for one in every]
        return tuple(less)

    return replace(turn, attached=lessen(turn.attached), results=lessen(turn.results), warnings=(*turn.warnings, *told))


def _tell(sentences: Sequence[str]) -> tuple[str, ...]:
    more = len(sentences) - _TOLD
    return (*sentences[:_TOLD], *((f"So are {more:,} more.",) if more > 0 else ()))


def _weigh_kept(prompt: Prompt, budget: Budget) -> int:
    """What no compaction of earlier things takes out of a request."""
    by_layer = count_tokens(prompt, budget).by_layer
    kept = sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]
    return kept + sum(segment.tokens for segment in prompt.moved_in)


def may_be_less(artifact: Artifact) -> bool:
    """Whether something that is attached now may be sent as less than its text."""
    return may_shrink(artifact) and artifact.kind is not Kind.IMAGE


def _find_large(prompt: Prompt) -> Mapping[str, int]:
    """What this turn brings in full and may be sent as less, with its tokens."""
    shrinks = {one.id for one in prompt.attached if may_be_less(one)}
    return {
        segment.id: segment.tokens
        for segment in (*prompt.shown[0], *prompt.moved_in)
        if segment.id in shrinks and segment.form is not Form.REFERENCE
    }


def _share_or_name(
    weights: Mapping[str, int], floors: Mapping[str, int], *, room: int
) -> tuple[Mapping[str, int], Sequence[str]]:
    """How much each may weigh that cannot stand as it is, and which are named because the room is not for so many.

    What is short comes first.
    """
    names = sorted(weights, key=weights.__getitem__)

    def share(shown: int) -> Mapping[str, int]:
        left = room if shown == len(names) else room - LIST_TOKENS
        return _share({name: weights[name] for name in names[:shown]}, room=left)

    def is_too_many(shown: int) -> bool:
        return any(cap < floors[name] + _LEAST for name, cap in share(shown).items())

    # The more are shown, the less each has.
    shown = len(names) if not is_too_many(len(names)) else bisect_left(range(len(names)), x=True, key=is_too_many) - 1
    left = {*names[max(shown, 0) :]}
    return share(max(shown, 0)), [name for name in weights if name in left]


def _share(weights: Mapping[str, int], *, room: int) -> dict[str, int]:
    """How much each may weigh so that all have room: the short stand as they are, the others share what is left."""
    left, caps = dict(weights), dict[str, int]()
    while left:
        share = max(room, 0) // len(left)
        short = {name for name, tokens in left.items() if tokens <= share}
        if not short:
            caps = dict.fromkeys(left, share)
            break
        room -= sum(left.pop(name) for name in short)
    return caps


def _weigh_frame(artifact: Artifact, count: Count) -> int:
    """What the outline of an artifact weighs that has no words."""
    return count(render_condensed(artifact, _tell_left(len(shown_text(artifact))))) + _SLACK


def _tell_left(chars: int) -> str:
    return f"[Made without a model: the beginning of each part. {chars:,} characters are left out.]"


def _outline(artifact: Artifact, room: int, count: Count) -> str:
    """The outline of an artifact within so many tokens, and how much of its text is left out."""
    text = shown_text(artifact)
    # Without headings there is nothing in an outline of headings.
    outlines = [outline for chars in _CHARS if (outline := build_outline(text, chars=chars))]
    outline = next((one for one in outlines if count(one) <= room), outlines[-1] if outlines else "")
    while outline and count(outline) > room:
        # Dense text has more tokens to a character: a share of them is a guess, and made again until it holds.
        outline = outline[: min(len(outline) * room // count(outline), len(outline) - 1)]
    told = _tell_left(len(text) - len(outline))
    return f"{outline}\n{told}" if outline else told
