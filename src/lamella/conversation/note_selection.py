"""Select the notes of a folder or tag that fit into the prompt and match the question.

The selection is made once, when the folder is attached or refreshed, and is stored with the turn. The prompt therefore
stays the same until the user asks for another selection.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import LIST_MARKER, make_omission_list
from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.log.turn import ArtifactForm, Turn
from lamella.core.prompt.advance import advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import make_envelope
from lamella.core.prompt.layers.library import render_shorter_form
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import PromptState
from lamella.core.search.language import normalize_text
from lamella.core.search.search import rank_paths
from lamella.core.values import replace

# Takes a question and (path, text) pairs, and returns the paths, best first.
RankNotes = Callable[[str, Sequence[tuple[str, str]]], Sequence[str]]
# Prefixes of ``ArtifactSource.via`` that mean a folder or tag. A template names one of the two without saying which.
_KIND_BY_PREFIX = {"folder": ArtifactKind.FOLDER, "tag": ArtifactKind.TAG}
_TEMPLATE_PREFIX = "template"
# The share of the available tokens for whole notes; the rest is for outlines. And the tokens for each list of the notes
# that are not included.
_FULL_TEXT_SHARE = 0.75
_OMITTED_LIST_TOKENS = 300
# Fewer tokens than any outline has.
_MIN_OUTLINE_TOKENS = 40
_MAX_NAMED_NOTES = 3


def rank_by_words(question: str, notes: Sequence[tuple[str, str]]) -> Sequence[str]:
    """Rank notes by the words of the question, rarer words first; needs no index."""
    return rank_paths(question, notes, normalize=normalize_text)


def with_group_notes_that_fit(
    turn: Turn, state: PromptState, settings: PromptSettings, *, rank: RankNotes, question: str = ""
) -> Turn:
    """Return the turn with as many notes of its folders and tags as fit, and a list of the others for each.

    All notes stay if the request fits under the trigger, after a compaction if necessary. Otherwise they get the
    turn's own share of what the limit leaves beside the parts that no compaction removes. Whole notes come first, then
    outlines, in the order of their relevance to the question.
    """
    groups = group_by_folder_or_tag(turn.attached)
    previous = {
        via: choice
        for via, notes in groups.items()
        if (choice := _repeat_previous_selection(via, notes, state)) is not None
    }
    new_groups = {via: notes for via, notes in groups.items() if via not in previous}
    chosen, messages = _select_by_group(
        new_groups,
        turn,
        state,
        settings=settings,
        ranked=lambda notes: _rank_artifacts(rank, question or turn.typed, notes),
    )
    return _with_selection(turn, {**previous, **chosen}, (*turn.warnings, *messages)) if previous or chosen else turn


def _select_by_group(
    groups: Mapping[str, Sequence[Artifact]],
    turn: Turn,
    state: PromptState,
    *,
    settings: PromptSettings,
    ranked: Callable[[Sequence[Artifact]], Sequence[Artifact]],
) -> tuple[dict[str, list[Artifact]], list[str]]:
    """Return the selected notes of each folder and a message about each; both empty if everything fits."""
    budget, count = settings.budget, settings.tokenizer.count
    fresh = [note for notes in groups.values() for note in notes if not is_fully_in_prompt(note, state)]
    # No text has more tokens than bytes. Most folders therefore fit for certain without counting their tokens.
    if (
        sum(len(note.text.encode()) for note in fresh)
        <= budget.trigger * budget.limit - _count_last_request_tokens(state) - _OMITTED_LIST_TOKENS
    ):
        return {}, []
    others = tuple(one for one in turn.attached if not _is_unpinned_group_note(one, groups))
    used = _count_protected_tokens(replace(turn, attached=others), state, settings)
    weights = {str(note.id): count(render_block(note)) for note in fresh}
    if used + sum(weights.values()) <= budget.trigger * budget.limit:
        return {}, []
    room = int(budget.current_turn_share * max(0, budget.limit - used)) - _OMITTED_LIST_TOKENS * len(groups)
    whole, outlined = _choose_full_and_outlined_notes(ranked(fresh), weights, room, count=count)
    chosen: dict[str, list[Artifact]] = {}
    messages: list[str] = []
    for via, notes in groups.items():
        chosen[via], message = _build_folder_artifacts(via, notes, full_ids=whole, outlined_ids=outlined, state=state)
        messages += [message] if message else []
    return chosen, messages


def group_by_folder_or_tag(attached: Sequence[Artifact]) -> dict[str, list[Artifact]]:
    """Group the notes that came with a folder or tag by ``ArtifactSource.via``, if no selection was made yet.

    A pin by the user and a list of omitted notes both count as a selection.
    """
    groups: dict[str, list[Artifact]] = {}
    for one in attached:
        via = one.source.via
        if via is not None and one.policy is not AttachmentPolicy.PIN and parse_folder_or_tag_origin(via) is not None:
            groups.setdefault(via, []).append(one)
    there = {one.id for one in attached}
    return {via: notes for via, notes in groups.items() if _omission_list_title(via) not in there}


def _is_unpinned_group_note(note: Artifact, groups: Mapping[str, object]) -> bool:
    return note.source.via in groups and note.policy is not AttachmentPolicy.PIN


def parse_folder_or_tag_origin(via: str) -> tuple[ArtifactKind, str] | None:
    """Return the kind and name of the folder or tag in a ``ArtifactSource.via``; None if it names neither."""
    how, _, name = via.partition(":")
    if not name:
        return None
    if how == _TEMPLATE_PREFIX:
        return (ArtifactKind.TAG if name.startswith("#") else ArtifactKind.FOLDER), name
    return (_KIND_BY_PREFIX[how], name) if how in _KIND_BY_PREFIX else None


def _count_last_request_tokens(state: PromptState) -> int:
    return 0 if state.last_prompt is None else state.last_prompt.total


def _count_protected_tokens(turn: Turn, state: PromptState, settings: PromptSettings) -> int:
    """Count the tokens that no compaction removes: system prompt, tools, and what this turn attaches and asks."""
    prompt = get_pending_prompt(advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer))
    by_layer = make_envelope(prompt, settings.budget).tokens.by_layer
    return sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]


def is_fully_in_prompt(note: Artifact, state: PromptState) -> bool:
    """Return whether the full text of a note is in the request already, so that it is only referred to."""
    placed = state.placed.get(note.id)
    return placed is not None and placed.is_full and placed.artifact.hash == note.hash


def _is_outlined(note: Artifact, state: PromptState) -> bool:
    placed = state.placed.get(note.id)
    return placed is not None and placed.form is ArtifactForm.PREVIEW and placed.artifact.hash == note.hash


def _repeat_previous_selection(via: str, notes: Sequence[Artifact], state: PromptState) -> list[Artifact] | None:
    """Return the earlier selection from a folder with its current texts; None if there is none.

    A refresh discards the earlier selection.
    """
    name = _omission_list_title(via)
    entry = state.library.get(name)
    if entry is None or any(note.is_fresh for note in notes):
        return None
    chosen: list[Artifact] = []
    for note in notes:
        known = state.library.get(note.id)
        if known is None:
            continue
        if known.form is None:
            chosen.append(note)
        elif known.artifact.hash != note.hash:
            chosen.append(replace(note, is_outlined=True))
    return [*chosen, entry.artifact]


def _omission_list_title(via: str) -> str:
    kind, name = parse_folder_or_tag_origin(via) or (ArtifactKind.FOLDER, via)
    return make_omission_list(kind, name=name, text="").id


def _rank_artifacts(rank: RankNotes, question: str, notes: Sequence[Artifact]) -> list[Artifact]:
    """Return the notes, best first; notes that the ranking omits come last."""
    by_id = {str(note.id): note for note in notes}
    ranked = [name for name in rank(question, [(note.id, note.text) for note in notes]) if name in by_id]
    return [by_id[name] for name in dict.fromkeys((*ranked, *by_id))]


def _choose_full_and_outlined_notes(
    ordered: Sequence[Artifact], token_counts: Mapping[str, int], budget: int, *, count: Callable[[str], int]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of notes to send in full, and of notes to send as outlines."""
    whole: set[str] = set()
    outlined: set[str] = set()
    left = budget * _FULL_TEXT_SHARE
    for note in ordered:
        if token_counts[note.id] <= left:
            whole.add(note.id)
            left -= token_counts[note.id]
    left = budget - sum(token_counts[name] for name in whole)
    for note in ordered:
        if left < _MIN_OUTLINE_TOKENS:
            break
        if note.id in whole:
            continue
        outline = render_shorter_form(note, ArtifactForm.PREVIEW)
        tokens = token_counts[note.id] if outline is None else min(count(outline), token_counts[note.id])
        if tokens <= left:
            (whole if outline is None else outlined).add(note.id)
            left -= tokens
    return frozenset(whole), frozenset(outlined)


def _build_folder_artifacts(
    via: str, notes: Sequence[Artifact], *, full_ids: Collection[str], outlined_ids: Collection[str], state: PromptState
) -> tuple[list[Artifact], str]:
    """Return the artifacts that represent a folder, including the list of omitted notes, and a message.

    The message is empty if all notes are there in full. An outline that is in the request already is not sent again.
    """
    full = [note for note in notes if note.id in full_ids or is_fully_in_prompt(note, state)]
    full_ids_found = {note.id for note in full}
    short = [
        note
        for note in notes
        if note.id in outlined_ids or (note.id not in full_ids_found and _is_outlined(note, state))
    ]
    shown_ids = {note.id for note in (*full, *short)}
    omitted = [note.id for note in notes if note.id not in shown_ids]
    kind, name = parse_folder_or_tag_origin(via) or (ArtifactKind.FOLDER, via)
    shown = name if name.strip("./") else "the vault"
    summary = (
        f"Of the {len(notes):,} notes of {shown}, {len(full):,} {_pluralize(full, 'stands', 'stand')} in full, "
        f"{len(short):,} as {_pluralize(short, 'its outline', 'their outlines')}, and "
        f"{len(omitted):,} {_pluralize(omitted, 'is', 'are')} left out"
    )
    heading = f"{summary}; each can be attached by its path:" if omitted else f"{summary}."
    listed = make_omission_list(
        kind, name=name, text="\n".join((heading, *(f"{LIST_MARKER}{path}" for path in omitted)))
    )
    some = (
        f": {', '.join(omitted[:_MAX_NAMED_NOTES])}{f' and {len(omitted) - _MAX_NAMED_NOTES:,} more' * (len(omitted) > _MAX_NAMED_NOTES)}"
        if omitted
        else ""
    )
    sent = [*full, *(replace(note, is_outlined=True) for note in short if not _is_outlined(note, state))]
    counts = f"{len(full):,} in full, {len(short):,} as {_pluralize(short, 'an outline', 'outlines')}"
    message = (
        f"Not all notes of {shown} fit: {counts}, {len(omitted):,} not attached{some}. Refresh it to choose again."
        if omitted or short
        else ""
    )
    # Sorted by id, so that the bytes of the prompt do not depend on the ranking.
    return [
        *sorted(sent, key=lambda one: one.id),
        replace(listed, is_fresh=any(note.is_fresh for note in notes)),
    ], message


def _pluralize(counted: Sequence[object], singular: str, plural: str) -> str:
    return singular if len(counted) == 1 else plural


def _with_selection(turn: Turn, chosen: Mapping[str, Sequence[Artifact]], warnings: tuple[str, ...]) -> Turn:
    """Return the turn with the selected artifacts at the position of each folder's first note."""
    left = dict(chosen)
    attached: list[Artifact] = []
    for one in turn.attached:
        if not _is_unpinned_group_note(one, chosen):
            attached.append(one)
        else:
            attached += left.pop(one.source.via or "", ())
    return replace(turn, attached=tuple(attached), warnings=warnings)
