"""Outlining: what is attached now and could not be sent whole beside the question is sent as its outline.

No model is asked. Text that cannot be fetched again and pins stand as they are; each outline keeps its artifact's id.
"""

from collections.abc import Mapping

from lamella.core.artifacts.blocks import shown_text
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.thresholds import Budget, is_over
from lamella.core.log.placement import Form
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import waiting
from lamella.core.prompt.envelope import count_tokens
from lamella.core.prompt.layers.library import may_shrink
from lamella.core.prompt.layers.model import Count, LayerId
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.text.outline import build_outline
from lamella.core.values import replace

# What the lines around an outline weigh, at most, however long its name and title are.
_AROUND = 120


def outline_turn(turn: Turn, opened: State, *, budget: Budget, alone: bool = True) -> Turn:
    """The turn as it was, unless it is over the hard threshold: then what it brings shares what is left to it.

    It is so where it is too large ``alone``, or, where that is not asked, beside what is left of everything else.
    """
    prompt = waiting(opened)
    kept = _weigh_kept(prompt, budget)
    if alone and not is_over(kept, budget.hard, budget):
        return turn
    weights = _find_large(prompt)
    if not weights:
        return turn
    caps = _share(weights, room=budget.own - (kept - sum(weights.values())))
    count = prompt.measure.count
    by_name: dict[str, Artifact] = {artifact.id: artifact for artifact in (*turn.attached, *turn.results)}
    texts = {name: _outline(by_name[name], cap, count) for name, cap in caps.items() if name in by_name}
    told = tuple(f"{name} is sent as its outline: its {weights[name]:,} tokens do not fit." for name in texts)
    return replace(
        turn,
        attached=tuple(replace(a, condensed=texts[a.id]) if a.id in texts else a for a in turn.attached),
        results=tuple(replace(a, condensed=texts[a.id]) if a.id in texts else a for a in turn.results),
        warnings=(*turn.warnings, *told),
    )


def _weigh_kept(prompt: Prompt, budget: Budget) -> int:
    """What no compaction of earlier things takes out of a request."""
    by_layer = count_tokens(prompt, budget).by_layer
    kept = sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]
    return kept + sum(segment.tokens for segment in prompt.moved_in)


def _find_large(prompt: Prompt) -> Mapping[str, int]:
    """What this turn brings in full and may be sent as less, with its tokens."""
    shrinks = {one.id for one in prompt.attached if may_shrink(one) and one.kind is not Kind.IMAGE}
    return {
        segment.id: segment.tokens
        for segment in (*prompt.shown[0], *prompt.moved_in)
        if segment.id in shrinks and segment.form in (Form.FULL, Form.UPDATE, Form.SUMMARY, Form.PREVIEW)
    }


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


def _outline(artifact: Artifact, cap: int, count: Count) -> str:
    """The outline of an artifact within so many tokens, and how much of its text is left out."""
    text = shown_text(artifact)
    outline = build_outline(text)
    room = max(cap - _AROUND, 0)
    while outline and count(outline) > room:
        # Dense text has more tokens to a character: a share of them is a guess, and made again until it holds.
        outline = outline[: min(len(outline) * room // count(outline), len(outline) - 1)]
    told = f"[Made without a model: the beginning of each part. {len(text) - len(outline):,} characters are left out.]"
    return f"{outline}\n{told}" if outline else told
