"""Old tool results to the call that gets them back."""

from collections.abc import Iterator, Sequence

from lamella.core.compaction.draft import Draft
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.folding import stub_tool
from lamella.core.prompt.layers.rounds import TOOL_KIND, stub_result
from lamella.core.prompt.layers.strip import Said

_KEPT_ROUNDS = 2


def cut_tool_results(draft: Draft) -> Step | None:
    """Oldest results first; those of the last exchange stay, and those of the last two rounds of the turn under way.

    Where neither leaves room for the turn itself, they go as well.
    """
    taken = take_until(_stubs(draft), draft.excess, sparing=draft.stuck)
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
    kept = 0 if draft.stuck else _KEPT_ROUNDS
    yield from ((said.id, _freed(said, draft)) for said in _list_earlier(draft.prompt.rounds, kept))


def _list_earlier(rounds: Sequence[Said], kept: int) -> Iterator[Said]:
    """The results of a running turn's rounds but for the last so many: the model is still working with those."""
    starts = [*(index for index, said in enumerate(rounds) if said.message.calls), len(rounds)]
    for said in rounds[: starts[-kept - 1]] if len(starts) > kept + 1 else ():
        # What is shown in part may be too long, too.
        if said.segment.kind == TOOL_KIND and said.segment.form is not Form.HANDLE:
            yield said


def _freed(said: Said, draft: Draft) -> int:
    return said.segment.tokens - stub_result(said, draft.measure).segment.tokens
