"""Old tool results to the call that gets them back."""

from collections.abc import Iterator

from lamella.core.compaction.draft import Draft
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Cut, StepName
from lamella.core.prompt.applying import stub_tool


def cut_tool_results(draft: Draft) -> Cut | None:
    """Oldest results first; those of the last exchange stay."""
    taken = take_until(_stubs(draft), draft.excess)
    return Cut(name=StepName.TOOL_RESULTS, removed=taken) if taken else None


def _stubs(draft: Draft) -> Iterator[tuple[str, int]]:
    stay = set(draft.held)
    if draft.state.exchanges:
        stay.update(tool.artifact.id for tool in draft.state.exchanges[-1].tools)
    for exchange in draft.free[draft.with_tools :]:
        for tool in exchange.tools:
            if tool.form is Form.FULL and tool.artifact.id not in stay:
                yield tool.artifact.id, tool.tokens - stub_tool(tool, draft.rules).tokens
