"""Build questions for layouts that costs decide: a line states changes of the working set."""

from collections.abc import Mapping, Sequence, Set

from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.budget import Tokenizer
from lamella.core.log.turn import ArtifactForm, LayoutPlan, TurnSettings
from lamella.core.messages import Message
from lamella.core.prompt.attachments import is_in_working_set
from lamella.core.prompt.cutting import list_pieces_moved_by_cut
from lamella.core.prompt.layers.library import LibraryEntry
from lamella.core.prompt.layers.turn import RenderedAttachments, is_shown_in_full, render_attachment_delta
from lamella.core.prompt.prompt import build_question_message
from lamella.core.prompt.state import PromptState, get_index
from lamella.core.text.content import escape_line

_DETACHED_LABEL, _REATTACHED_LABEL = "No longer attached", "Attached again"
_UNLISTED_KINDS = (ArtifactKind.TOOL, ArtifactKind.IMAGE)


def working_set_ids(
    library: Mapping[str, LibraryEntry], attached: Sequence[Artifact], turn_settings: TurnSettings, *, turn_number: int
) -> tuple[str, ...]:
    """Return the ids of the working set in the turn of this number, in first-seen order."""
    now = {artifact.id: None for artifact in attached if artifact.kind not in _UNLISTED_KINDS}
    known = [
        name
        for name, one in library.items()
        if name in now or is_in_working_set(one, turn_settings, turn_number=turn_number)
    ]
    return tuple(dict.fromkeys((*known, *now)))


def build_question_with_delta(
    state: PromptState,
    attached: Sequence[Artifact],
    typed: Message,
    *,
    layout_plan: LayoutPlan,
    position: str,
    working_set: Sequence[str],
    tokenizer: Tokenizer,
    names_recall: bool,
) -> tuple[Message, RenderedAttachments]:
    """Build the user message of a turn and its rendered attachments.

    The message has the texts that a cut moved here, new attachments, and a line on the working set if it changed.
    """
    index = get_index(state)
    moved = (
        list_pieces_moved_by_cut(index.active_library, index.active_placed, position)
        if layout_plan.keep_messages is not None
        else []
    )
    shown = render_attachments_and_changes(
        state,
        attached,
        layout_plan=layout_plan,
        position=position,
        working_set=working_set,
        tokenizer=tokenizer,
        names_recall=names_recall,
    )
    if not layout_plan.order:
        return build_question_message(shown, typed, count=tokenizer.count, moved=moved), shown
    segments, pieces, added, images = shown
    names = {one.pieces[-1]: name for name, one in index.active_placed.items() if one.place == position and one.pieces}
    names |= {segment.text: segment.id for segment in segments if segment.text}
    arranged = _order_pieces((*moved, *pieces), names, layout_plan.order)
    return build_question_message((segments, arranged, added, images), typed, count=tokenizer.count), shown


def _order_pieces(pieces: Sequence[str], artifact_by_piece: Mapping[str, str], order: Sequence[str]) -> tuple[str, ...]:
    """Return the pieces of a question, with those of artifacts in ``order`` before all others."""
    ranks = {name: rank for rank, name in enumerate(order)}
    first = [piece for piece in pieces if artifact_by_piece.get(piece) in ranks]
    rest = [piece for piece in pieces if artifact_by_piece.get(piece) not in ranks]
    return (*sorted(first, key=lambda piece: ranks[artifact_by_piece[piece]]), *rest)


def render_attachments_and_changes(
    state: PromptState,
    attached: Sequence[Artifact],
    *,
    layout_plan: LayoutPlan,
    position: str,
    working_set: Sequence[str],
    tokenizer: Tokenizer,
    names_recall: bool,
) -> RenderedAttachments:
    """Render the attachments of a turn, with a line if the working set changed in another way."""
    new = {artifact.id for artifact in attached if not is_shown_in_full(artifact, state.placed.get(artifact.id))}
    return render_attachment_delta(
        attached,
        placed=state.placed,
        position=position,
        tokenizer=tokenizer,
        working_set_line=_render_working_set_lines(
            state, working_set, new, is_cut=layout_plan.keep_messages is not None, position=position
        ),
        show_in_full=changed_ids_shown_in_full(layout_plan),
        names_recall=names_recall,
    )


def changed_ids_shown_in_full(layout_plan: LayoutPlan) -> Set[str]:
    """Return the ids of changed artifacts that the plan shows in full although a diff would be short."""
    return {name for name, form in layout_plan.forms.items() if form is ArtifactForm.FULL}


def _render_working_set_lines(
    state: PromptState, working_set: Sequence[str], new_ids: Set[str], *, is_cut: bool, position: str
) -> str:
    """Return lines on the working set that the model could not know otherwise; empty if there are none.

    That is: artifacts that are no longer attached, and artifacts that are attached again without their text.
    """
    before, placed = state.cache_history.working_set, state.placed
    current, known = frozenset(working_set), frozenset(before)
    here = {name for name in working_set if name in new_ids or (name in placed and placed[name].place == position)}
    # A cut also removes earlier lines, so everything that stays readable and is not attached must be named again.
    candidates = get_index(state).active_placed if is_cut else before
    removed = [
        name for name in candidates if name not in current and name in state.library and _is_readable(state, name)
    ]
    back = [name for name in working_set if name not in known and name not in here]
    lines = ((_DETACHED_LABEL, removed), (_REATTACHED_LABEL, back))
    return "".join(f"{label}: {', '.join(map(escape_line, names))}.\n" for label, names in lines if names)


def _is_readable(state: PromptState, name: str) -> bool:
    return name in state.placed and state.placed[name].is_full
