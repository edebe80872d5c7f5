"""Attachments of a turn, and what the context library knows after it."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from lamella.core.artifacts.kinds import KINDS, goes_to_library, is_turn_only, make_image_artifact
from lamella.core.artifacts.model import FOUND_BY_SEARCH, NAMED_ONLY, Artifact, ArtifactKind, AttachmentPolicy
from lamella.core.budget import Tokenizer
from lamella.core.log.turn import ArtifactForm, AttachmentMode, ImageNoteMode, Turn, TurnSettings
from lamella.core.prompt.layers.library import LibraryEntry, PlacedArtifact, count_repeats, image_note_form
from lamella.core.prompt.layers.turn import image_rejection_reasons
from lamella.core.values import replace
from lamella.errors import ArtifactError

Library = Mapping[str, LibraryEntry]
# How many shortened artifacts a warning names one by one; more are only counted.
_MAX_LISTED_SHRUNK = 3
_MAX_LISTED_NAMED_ONLY = 10
# Prefix of stub ids. Message ids are hexadecimal and no path begins like this, so the ids cannot collide.
_STUB_PREFIX = "attached:"


def drop_from_library(
    library: Library,
    artifact_ids: Sequence[str],
    *,
    placed_ids: Collection[str] = (),
    inlined_ids: Collection[str] = (),
) -> tuple[Library, tuple[str, ...], tuple[str, ...]]:
    """Drop ids from the library; return the library, the dropped ids and the warnings.

    Pinned artifacts are not dropped. ``placed_ids`` are ids in the request that are not in the library, such as images;
    they are dropped as well. ``inlined_ids`` are ids that the instructions inline into L1, where a drop has no effect.
    """
    kept = dict(library)
    left: dict[str, None] = {}
    warnings: list[str] = []
    for name in dict.fromkeys(artifact_ids):
        entry = kept.get(name)
        if entry is not None and entry.artifact.policy is AttachmentPolicy.PIN:
            warnings.append(f"{name} is pinned and was not dropped; attach it with policy follow to unpin it.")
        elif entry is not None or name in placed_ids:
            kept.pop(name, None)
            left[name] = None
        elif name not in inlined_ids:
            warnings.append(f"Nothing to drop: {name} is not in the library.")
        if name in inlined_ids:
            warnings.append(f"{name} stays in the system prompt: its instructions draw it in.")
    return kept, tuple(left), tuple(warnings)


def collect_attachments(turn: Turn, library: Library) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """Return each attachment of a turn once, with the last text and policy given, and the warnings.

    A snapshot keeps its first text. The images of the active note are added.
    """
    if _adds_one_new_artifact(turn, library):
        return turn.attached, ()
    merged: dict[str, Artifact] = {}
    warnings: list[str] = []
    for artifact in (*turn.tool_results, *turn.attached):
        entry = library.get(artifact.id)
        old = None if entry is None else entry.artifact
        known = merged.get(artifact.id) or old
        if known is not None:
            _check_same_recoverability(known, artifact)
        if old is not None and _is_snapshot_attached_again(old, artifact):
            if old.hash != artifact.hash:
                warnings.append(
                    f"{artifact.id} keeps its first text; attach it with policy follow to have the new one."
                )
            artifact = _keep_snapshot_text(old, artifact)
        before = merged.get(artifact.id)
        if before is not None and before.hash != artifact.hash:
            warnings.append(f"{artifact.id} is attached twice with different text; the last text is used.")
        merged[artifact.id] = artifact if before is None else _merge_attachments_of_same_id(before, artifact)
    _add_images(merged)
    return tuple(merged.values()), tuple(warnings)


def stub_id(question_id: str, artifact_id: str) -> str:
    """Return the id by which a receipt names an attachment of the current turn that is reduced to a line."""
    return f"{_STUB_PREFIX}{question_id}:{artifact_id}"


def replace_stubbed_by_names(
    attached: Sequence[Artifact], question_id: str, stubbed: Set[str]
) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """Return the attachments, with only the name of those that receipts reduced to a line, and a warning."""
    named = {one.id for one in attached if stub_id(question_id, one.id) in stubbed}
    less = [replace(one, condensed=NAMED_ONLY, is_outlined=False) if one.id in named else one for one in attached]
    return tuple(less), warn_about_attachments_only_named([one.id for one in less if one.id in named])


def warn_about_attachments_only_named(names: Sequence[str]) -> tuple[str, ...]:
    """Return a warning about attachments that are only named because their text does not fit."""
    if not names:
        return ()
    more = len(names) - _MAX_LISTED_NAMED_ONLY
    listed = ", ".join(names[:_MAX_LISTED_NAMED_ONLY]) + (f" and {more:,} more" if more > 0 else "")
    return (f"There is no room for the text of what is attached, so it is only named: {listed}.",)


def _adds_one_new_artifact(turn: Turn, library: Library) -> bool:
    """Return whether a turn attaches exactly one artifact, which is new and has no images."""
    if len(turn.attached) != 1 or turn.tool_results:
        return False
    return turn.attached[0].id not in library and not turn.attached[0].images


def _add_images(attached: dict[str, Artifact]) -> None:
    if any(artifact.images for artifact in attached.values()):
        for picture in _list_active_note_images(attached.values()):
            attached.setdefault(picture.id, picture)


def _check_same_recoverability(one: Artifact, other: Artifact) -> None:
    """Raise ``ArtifactError`` if one id names both a recoverable and an unrecoverable artifact.

    The text of the unrecoverable one would be lost when the other replaces it.
    """
    if one.recoverable is not other.recoverable:
        raise ArtifactError(
            f"{other.id} is the id of a {one.kind}, and now of a {other.kind} as well.",
            hint="Attach one of the two under another path.",
        )


def _is_snapshot_attached_again(known: Artifact, attached: Artifact) -> bool:
    return (
        known.policy is AttachmentPolicy.SNAPSHOT
        and attached.policy in (None, AttachmentPolicy.SNAPSHOT)
        and not attached.is_fresh
    )


def _keep_snapshot_text(known: Artifact, attached: Artifact) -> Artifact:
    """Return the first text of a snapshot; whether it is the active note depends on this turn."""
    whole = known if known.condensed == attached.condensed else replace(known, condensed=attached.condensed)
    if known.kind is attached.kind or ArtifactKind.ACTIVE_NOTE not in (known.kind, attached.kind):
        return whole
    return replace(whole, kind=attached.kind, images=attached.images)


def _merge_attachments_of_same_id(before: Artifact, artifact: Artifact) -> Artifact:
    """Merge two attachments of the same id in one turn."""
    other = before.hash != artifact.hash or before.is_outlined
    newest = artifact if other or artifact.kind is ArtifactKind.ACTIVE_NOTE else before
    policy = artifact.policy or before.policy
    return newest if newest.policy is policy else replace(newest, policy=policy)


def _list_active_note_images(attached: Iterable[Artifact]) -> list[Artifact]:
    return [
        make_image_artifact(image, title=f"{artifact.title} (embedded)")
        for artifact in attached
        if artifact.kind is ArtifactKind.ACTIVE_NOTE
        for image in artifact.images
    ]


def is_in_working_set(entry: LibraryEntry, turn_settings: TurnSettings, *, turn_number: int) -> bool:
    """Return whether the model must be able to read an entry in a turn that does not attach it.

    ``turn_number`` is the number of that turn.
    """
    if entry.stays_attached is False:
        return False
    was_attached = entry.stays_attached and turn_settings.attachments is AttachmentMode.STICKY
    return bool(was_attached) or turn_number - entry.last_attached_turn <= turn_settings.linger


def detach_from_working_set(library: Library, artifact_ids: Collection[str]) -> Library:
    """Return the library with these entries out of the working set; their texts stay in the request."""
    return {name: replace(one, stays_attached=False) if name in artifact_ids else one for name, one in library.items()}


def with_new_unlisted_attachments(
    unlisted: Mapping[str, Artifact], attached: Sequence[Artifact], turn: Turn
) -> Mapping[str, Artifact]:
    """Return the sticky attachments that never enter the library, with those that a turn adds.

    Images that a note embeds are not included: they are sent only with the turn of the active note. The same applies to
    passages that belong to one turn.
    """
    given = {artifact.id for artifact in turn.attached}
    kept = {name: one for name, one in unlisted.items() if name not in given}
    for artifact in attached:
        if artifact.id in given and not goes_to_library(artifact) and not is_turn_only(artifact):
            kept[artifact.id] = artifact
    return kept


def shrunk_attachment_warnings(library: Library, attached: Sequence[Artifact]) -> tuple[str, ...]:
    """Return warnings about sticky attachments that a compaction or condensing shortened.

    The first ones are named, the rest is counted.
    """
    now = {artifact.id for artifact in attached}
    kept = [(name, one) for name, one in library.items() if one.stays_attached and name not in now]
    smaller = [(name, one) for name, one in kept if one.form is not None or one.artifact.condensed is not None]
    reasons = [
        f"{name} stands as its {'outline' if one.form else 'summary'}, to make room; attach it again to have it whole."
        for name, one in smaller[:_MAX_LISTED_SHRUNK]
    ]
    more = len(smaller) - len(reasons)
    return (*reasons, f"So do {more:,} more, as outlines or summaries.") if more > 0 else tuple(reasons)


def update_library(
    library: Library,
    attached: Sequence[Artifact],
    *,
    turn_number: int,
    image_notes: ImageNoteMode,
    stays_attached: bool | None = None,
    restored_ids: Set[str] = frozenset(),
) -> Library:
    """Return the library after turn number ``turn_number``: new entries at the end, new texts at their old position.

    An artifact that is attached again gets its full form back. ``stays_attached`` is set for sticky attachments; search
    results keep the value that they had. Artifacts in ``restored_ids`` stay in full, although the turn settings carry
    outlines forward.
    """
    if not attached:
        return library
    learnt = dict(library)
    for artifact in attached:
        entry = learnt.get(artifact.id)
        if goes_to_library(artifact):
            newest = (
                _without_flags_of_its_turn(artifact)
                if entry is None
                else _choose_newest_version(entry.artifact, _without_flags_of_its_turn(artifact))
            )
            # A sticky attachment stays readable even if it has images. An artifact attached as an outline stays one.
            found = KINDS[artifact.kind].is_file_part or artifact.source.via == FOUND_BY_SEARCH
            is_attached = (None if entry is None else entry.stays_attached) if found else stays_attached
            form = (
                ArtifactForm.PREVIEW
                if artifact.is_outlined
                else None
                if is_attached
                else image_note_form(artifact, image_notes)
            )
            was_restored = artifact.id in restored_ids or (entry is not None and entry.form is ArtifactForm.FULL)
            form = ArtifactForm.FULL if form is None and was_restored else form
            form, listed = (ArtifactForm.HANDLE, True) if artifact.condensed == NAMED_ONLY else (form, False)
            learnt[artifact.id] = LibraryEntry(
                artifact=newest,
                last_attached_turn=turn_number,
                form=form,
                stays_attached=is_attached,
                is_listed=listed,
                repeats=count_repeats(entry, artifact, turn_number=turn_number),
            )
    return learnt


def _without_flags_of_its_turn(artifact: Artifact) -> Artifact:
    """Return an artifact without the flags that apply only to the turn that attached it."""
    return (
        replace(artifact, is_outlined=False, is_fresh=False) if artifact.is_outlined or artifact.is_fresh else artifact
    )


def _choose_newest_version(old: Artifact, artifact: Artifact) -> Artifact:
    policy = artifact.policy or old.policy
    if old.hash != artifact.hash:
        return artifact if artifact.policy is policy else replace(artifact, policy=policy)
    # The same text under the same id stays as it is, even if its file was moved.
    source = replace(old.source, current_path=artifact.source.current_path)
    if old.policy is not policy or old.condensed != artifact.condensed or old.source != source:
        return replace(old, policy=policy, condensed=artifact.condensed, source=source)
    return old


def unsupported_image_warnings(
    attached: Sequence[Artifact], model: str | None, *, placed: Mapping[str, PlacedArtifact], tokenizer: Tokenizer
) -> tuple[str, ...]:
    """Return warnings about images that the model does not support or that the request cannot take."""
    subject = model or "This model"
    pictures = [artifact for artifact in attached if artifact.kind is ArtifactKind.IMAGE]
    if not pictures:
        return ()
    if not tokenizer.supports_images:
        return tuple(f"{subject} does not see pictures: {one.title} is sent as a line of words." for one in pictures)
    refused = image_rejection_reasons(pictures, placed=placed, tokenizer=tokenizer)
    return tuple(
        f"{one.title} is sent as a line of words to {subject}: {refused[one.id]}."
        for one in pictures
        if one.id in refused
    )


def image_handle_warnings(
    library: Library, attached: Sequence[Artifact], *, image_notes: ImageNoteMode
) -> tuple[str, ...]:
    """Return warnings about library texts that become handles after this turn because they embed images now."""
    leaving = [
        artifact.id
        for artifact in attached
        if artifact.id in library
        and image_note_form(artifact, image_notes) is ArtifactForm.HANDLE
        and library[artifact.id].form is not ArtifactForm.HANDLE
    ]
    warning = "embeds a picture now: it is sent with this turn, and the library has a handle of it after it."
    return tuple([f"{name} {warning}" for name in leaving]) if leaving else ()
