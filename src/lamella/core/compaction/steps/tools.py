"""Old tool results to the call that gets them back."""

from collections.abc import Iterator, Sequence

from lamella.core.compaction.draft import Draft
from lamella.core.compaction.outlining import may_be_less
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.attached import name_brought
from lamella.core.prompt.folding import stub_tool
from lamella.core.prompt.layers.rounds import TOOL_KIND, split_rounds, stub_result
from lamella.core.prompt.layers.strip import Said

_KEPT_ROUNDS = 2
# What the lines take that say what of a turn under way is left out.
_TOLD = 60


def cut_tool_results(draft: Draft) -> Step | None:
    """Oldest results first; those of the last exchange stay, and those of the last two rounds of the turn under way.

    Where neither leaves room for the turn itself, they go as well.
    """
    taken = take_until(_stubs(draft), draft.excess + (_TOLD if draft.stuck else 0), sparing=draft.stuck)
    return Step(name=StepName.TOOL_RESULTS, removed=taken) if taken else None


def _stubs(draft: Draft) -> Iterator[tuple[str, int]]:
    stay = set(draft.held)
    if draft.state.talk.exchanges and not draft.resort:
        stay.update(tool.artifact.id for tool in draft.state.talk.exchanges[-1].tools)
    for exchange in draft.free:
        for tool in () if draft.span.since else exchange.tools:
            if tool.form is Form.FULL and tool.artifact.id not in stay:
                yield tool.artifact.id, tool.tokens - stub_tool(tool, draft.measure).tokens
        for said in exchange.rounds:
            if said.segment.kind == TOOL_KIND and said.segment.form is Form.FULL:
                yield said.id, _freed(said, draft)
    if draft.stuck:
        yield from _list_stuck(draft)
    else:
        yield from ((said.id, _freed(said, draft)) for said in _list_earlier(draft.prompt.rounds))


def _list_stuck(draft: Draft) -> Iterator[tuple[str, int]]:
    """What a turn under way can do without, or else could not go on: its earlier rounds, then what the last ones gave.

    Last of all come the round before the last, and what was attached to the question.
    """
    rounds = split_rounds(draft.prompt.rounds)
    for index, (calling, results) in enumerate(rounds[:-1]):
        weighs = sum(one.segment.tokens + draft.measure.per_message for one in (calling, *results))
        if index < len(rounds) - _KEPT_ROUNDS or not any(map(_is_larger, results)):
            yield calling.id, weighs
    for _, results in rounds[-_KEPT_ROUNDS:]:
        yield from ((said.id, _freed(said, draft)) for said in results if _is_larger(said))
    brought = {one.id for one in draft.prompt.attached if may_be_less(one)} if rounds else set[str]()
    shown = [one for one in draft.prompt.shown[0] if one.id in brought and one.form is not Form.HANDLE]
    for segment in sorted(shown, key=lambda one: -one.tokens):
        yield name_brought(draft.prompt.user.id, segment.id), segment.tokens


def _list_earlier(rounds: Sequence[Said]) -> Iterator[Said]:
    """The results of a running turn's rounds but for the last two: the model is still working with those."""
    for _, results in split_rounds(rounds)[:-_KEPT_ROUNDS]:
        yield from filter(_is_larger, results)


def _is_larger(said: Said) -> bool:
    # What is shown in part may be too long, too.
    return said.segment.form is not Form.HANDLE


def _freed(said: Said, draft: Draft) -> int:
    return said.segment.tokens - stub_result(said, draft.measure).segment.tokens
