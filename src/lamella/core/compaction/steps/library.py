"""Library entries to one line of a list, or to their outline: only what can be fetched again and is not pinned."""

from lamella.core.artifacts.blocks import render_listed
from lamella.core.compaction.draft import WHOLE, Draft
from lamella.core.compaction.steps.taking import take_until
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Step, StepName
from lamella.core.prompt.attached import is_in_working_set
from lamella.core.prompt.layers.library import Standing, may_shrink, render_smaller
from lamella.core.values import replace


def cut_to_previews(draft: Draft) -> Step | None:
    """Oldest large entries to their outline."""
    large = (
        (name, _freed(entry, draft))
        for name, entry in _shrinkable(draft)
        if entry.form is Form.FULL and len(entry.artifact.text) > draft.chain.of_kind(entry.artifact.kind).preview_over
    )
    taken = take_until(large, draft.excess)
    return Step(name=StepName.PREVIEW, removed=taken) if taken else None


def cut_to_handles(draft: Draft) -> Step | None:
    """Oldest entries that are out of the working set to the list of handles."""
    stale = (one for one in _shrinkable(draft) if not one[1].listed and not _is_wanted(*one, draft))
    freed = ((name, entry.tokens - draft.measure.count(render_listed(entry.artifact))) for name, entry in stale)
    taken = take_until(freed, draft.excess)
    return Step(name=StepName.HANDLE, removed=taken) if taken else None


def _shrinkable(draft: Draft) -> list[tuple[str, Standing]]:
    chain, library, span = draft.chain, draft.state.library, draft.span
    # A former text of what is attached now may be what leaves no room for it.
    held = frozenset(draft.turn.drop) if draft.resort else draft.held
    # What is dead where prices decide stands in the list already: there is nothing more to gain from it.
    shown = draft.prompt.standing if draft.prompt.placement.priced else {}
    left = {name for name, one in shown.items() if one.listed}
    shelved = [(name, entry) for name, entry in draft.state.shelf.items() if name not in held and name not in left]
    if span is not WHOLE:
        shelved = [one for one in shelved if one[0] not in library or span.holds(library[one[0]].at)]
    return [
        (name, one) for name, one in shelved if may_shrink(one.artifact) and chain.of_kind(one.artifact.kind).shrink
    ]


def _is_wanted(name: str, entry: Standing, draft: Draft) -> bool:
    """Whether it is in the working set of the turn that is to be asked."""
    if draft.resort or name in draft.turn.detach:
        return False
    after, terms = draft.chain.of_kind(entry.artifact.kind).handle_after, draft.turn.terms
    terms = terms if after is None else replace(terms, linger=after)
    return is_in_working_set(draft.state.library[name], terms, turn=draft.state.turns)


def _freed(entry: Standing, draft: Draft) -> int:
    smaller = render_smaller(entry.artifact, Form.PREVIEW)
    return entry.tokens - draft.measure.count(smaller) if smaller is not None else 0
