"""What is attached in a turn, and what of it is known once the turn is over."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from lamella.core.artifacts.kinds import KINDS, promotes
from lamella.core.artifacts.make import make_image
from lamella.core.artifacts.model import FOUND, NAMED_ONLY, Artifact, Kind, Policy
from lamella.core.budget.counting import Measure
from lamella.core.log.placement import Form
from lamella.core.log.terms import Attachments, ImageNotes, Terms
from lamella.core.log.turn import Turn
from lamella.core.prompt.layers.library import LibraryEntry, Standing, promoted_form
from lamella.core.prompt.layers.turn import find_refused
from lamella.core.values import replace
from lamella.errors import ArtifactError

Library = Mapping[str, LibraryEntry]
# How many things that stand as less than their text are told of one by one.
_TOLD = 3
_NAMED = 10
# Ids of messages are hexadecimal, and no path begins so.
_BROUGHT = "attached:"


def drop_known(
    library: Library, names: Sequence[str], *, standing: Collection[str] = (), drawn_in: Collection[str] = ()
) -> tuple[Library, tuple[str, ...], tuple[str, ...]]:
    """What stays known when the user drops these, what left, and what is to be said about it.

    A pin is stronger than a drop. ``standing`` are ids that stand in the request without being known, such as
    pictures: they leave, too. ``drawn_in`` are ids that the instructions draw into L1: dropping does not reach them.
    """
    kept = dict(library)
    left: dict[str, None] = {}
    warnings: list[str] = []
    for name in dict.fromkeys(names):
        entry = kept.get(name)
        if entry is not None and entry.artifact.policy is Policy.PIN:
            warnings.append(f"{name} is pinned and was not dropped; attach it with policy follow to unpin it.")
        elif entry is not None or name in standing:
            kept.pop(name, None)
            left[name] = None
        elif name not in drawn_in:
            warnings.append(f"Nothing to drop: {name} is not in the library.")
        if name in drawn_in:
            warnings.append(f"{name} stays in the system prompt: its instructions draw it in.")
    return kept, tuple(left), tuple(warnings)


def gather(turn: Turn, library: Library) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """Each attachment once, with the last text and policy given, and warnings; a snapshot keeps its first text.

    The active note brings its pictures.
    """
    if _brings_new(turn, library):
        return turn.attached, ()
    merged: dict[str, Artifact] = {}
    warnings: list[str] = []
    for artifact in (*turn.results, *turn.attached):
        entry = library.get(artifact.id)
        old = None if entry is None else entry.artifact
        known = merged.get(artifact.id) or old
        if known is not None:
            _check_same_class(known, artifact)
        if old is not None and _keeps_snapshot(old, artifact):
            if old.hash != artifact.hash:
                warnings.append(
                    f"{artifact.id} keeps its first text; attach it with policy follow to have the new one."
                )
            artifact = _snapshot(old, artifact)
        before = merged.get(artifact.id)
        if before is not None and before.hash != artifact.hash:
            warnings.append(f"{artifact.id} is attached twice with different text; the last text is used.")
        merged[artifact.id] = artifact if before is None else _again(before, artifact)
    _add_pictures(merged)
    return tuple(merged.values()), tuple(warnings)


def name_brought(turn: str, artifact: str) -> str:
    """What a turn brings, as receipts name it that leave a line of it while the turn is under way."""
    return f"{_BROUGHT}{turn}:{artifact}"


def name_stubbed(
    attached: Sequence[Artifact], turn: str, stubbed: Set[str]
) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """What is attached with only the names of what receipts left a line of, and words on that."""
    named = {one.id for one in attached if name_brought(turn, one.id) in stubbed}
    less = [replace(one, condensed=NAMED_ONLY, outlined=False) if one.id in named else one for one in attached]
    return tuple(less), tell_named([one.id for one in less if one.id in named])


def tell_named(names: Sequence[str]) -> tuple[str, ...]:
    """Words on what is attached now and has no room for its text."""
    if not names:
        return ()
    more = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return (f"There is no room for the text of what is attached, so it is only named: {listed}.",)


def _brings_new(turn: Turn, library: Library) -> bool:
    """Whether a turn brings one thing, which nobody knows yet."""
    if len(turn.attached) != 1 or turn.results:
        return False
    return turn.attached[0].id not in library and not turn.attached[0].images


def _add_pictures(attached: dict[str, Artifact]) -> None:
    if any(artifact.images for artifact in attached.values()):
        for picture in _pictures(attached.values()):
            attached.setdefault(picture.id, picture)


def _check_same_class(one: Artifact, other: Artifact) -> None:
    """One id never stands both for what can be fetched again and for what cannot: the second would be lost."""
    if one.recoverable is not other.recoverable:
        raise ArtifactError(
            f"{other.id} is the id of a {one.kind}, and now of a {other.kind} as well.",
            hint="Attach one of the two under another path.",
        )


def _keeps_snapshot(known: Artifact, attached: Artifact) -> bool:
    return known.policy is Policy.SNAPSHOT and attached.policy in (None, Policy.SNAPSHOT) and not attached.anew


def _snapshot(known: Artifact, attached: Artifact) -> Artifact:
    """The text as it was first; whether the note is the active one is a matter of this turn."""
    whole = known if known.condensed == attached.condensed else replace(known, condensed=attached.condensed)
    if known.kind is attached.kind or Kind.ACTIVE_NOTE not in (known.kind, attached.kind):
        return whole
    return replace(whole, kind=attached.kind, images=attached.images)


def _again(before: Artifact, artifact: Artifact) -> Artifact:
    """The same id attached twice in a turn."""
    other = before.hash != artifact.hash or before.outlined
    newest = artifact if other or artifact.kind is Kind.ACTIVE_NOTE else before
    policy = artifact.policy or before.policy
    return newest if newest.policy is policy else replace(newest, policy=policy)


def _pictures(attached: Iterable[Artifact]) -> list[Artifact]:
    return [
        make_image(image, title=f"{artifact.title} (embedded)")
        for artifact in attached
        if artifact.kind is Kind.ACTIVE_NOTE
        for image in artifact.images
    ]


def is_in_working_set(entry: LibraryEntry, terms: Terms, *, turn: int) -> bool:
    """Whether the model must be able to read something in the turn of this number that does not attach it."""
    if entry.held is False:
        return False
    held = entry.held and terms.attachments is Attachments.STICKY
    return bool(held) or turn - entry.at <= terms.linger


def detach_known(library: Library, names: Collection[str]) -> Library:
    """What is known, with these out of the working set; their texts stay where they stand."""
    return {name: replace(one, held=False) if name in names else one for name, one in library.items()}


def hold_apart(apart: Mapping[str, Artifact], attached: Sequence[Artifact], turn: Turn) -> Mapping[str, Artifact]:
    """What stays attached without going into the library, once a turn is asked that attaches until detached.

    Pictures that a note embeds are sent with the turn of the active note only, and are not among it.
    """
    given = {artifact.id for artifact in turn.attached}
    kept = {name: one for name, one in apart.items() if name not in given}
    for artifact in attached:
        if artifact.id in given and not promotes(artifact):
            kept[artifact.id] = artifact
    return kept


def tell_smaller(library: Library, attached: Sequence[Artifact]) -> tuple[str, ...]:
    """Words on what is held and cannot be read in full any more: a compaction made it smaller, or it was condensed.

    Of many that came as outlines, or became such, the first are named.
    """
    now = {artifact.id for artifact in attached}
    held = [(name, one) for name, one in library.items() if one.held and name not in now]
    smaller = [(name, one) for name, one in held if one.form is not None or one.artifact.condensed is not None]
    told = [
        f"{name} stands as its {'outline' if one.form else 'summary'}, to make room; attach it again to have it whole."
        for name, one in smaller[:_TOLD]
    ]
    more = len(smaller) - len(told)
    return (*told, f"So do {more:,} more, as outlines or summaries.") if more > 0 else tuple(told)


def learn(
    library: Library, attached: Sequence[Artifact], *, at: int, image_notes: ImageNotes, held: bool | None = None
) -> Library:
    """What is known once turn number ``at`` is asked: new at the end, newer text at its first-seen place.

    What is attached again stands in full again. ``held`` says that it stays attached until it is detached; what a
    search found is held as it was.
    """
    if not attached:
        return library
    learnt = dict(library)
    for artifact in attached:
        entry = learnt.get(artifact.id)
        if promotes(artifact):
            newest = _settle(artifact) if entry is None else _newest(entry.artifact, _settle(artifact))
            # What stays attached can be read, pictures or not; of what came as an outline that is what stays.
            found = KINDS[artifact.kind].part or artifact.source.via == FOUND
            holds = (None if entry is None else entry.held) if found else held
            form = Form.PREVIEW if artifact.outlined else None if holds else promoted_form(artifact, image_notes)
            form, listed = (Form.HANDLE, True) if artifact.condensed == NAMED_ONLY else (form, False)
            learnt[artifact.id] = LibraryEntry(artifact=newest, at=at, form=form, held=holds, listed=listed)
    return learnt


def _settle(artifact: Artifact) -> Artifact:
    """An artifact once its turn is asked: how it came is a matter of that turn."""
    return replace(artifact, outlined=False, anew=False) if artifact.outlined or artifact.anew else artifact


def _newest(old: Artifact, artifact: Artifact) -> Artifact:
    policy = artifact.policy or old.policy
    if old.hash != artifact.hash:
        return artifact if artifact.policy is policy else replace(artifact, policy=policy)
    # The same text under the same name stays as it stands, wherever its file was moved to.
    source = replace(old.source, found_at=artifact.source.found_at)
    if old.policy is not policy or old.condensed != artifact.condensed or old.source != source:
        return replace(old, policy=policy, condensed=artifact.condensed, source=source)
    return old


def find_unseen(
    attached: Sequence[Artifact], model: str | None, *, standing: Mapping[str, Standing], measure: Measure
) -> tuple[str, ...]:
    """Words on pictures that go to a model which does not see, or does not take them."""
    who = model or "This model"
    pictures = [artifact for artifact in attached if artifact.kind is Kind.IMAGE]
    if not pictures:
        return ()
    if not measure.sees:
        return tuple(f"{who} does not see pictures: {one.title} is sent as a line of words." for one in pictures)
    refused = find_refused(pictures, standing=standing, measure=measure)
    return tuple(
        f"{one.title} is sent as a line of words to {who}: {refused[one.id]}." for one in pictures if one.id in refused
    )


def find_leaving(library: Library, attached: Sequence[Artifact], *, image_notes: ImageNotes) -> tuple[str, ...]:
    """Words on what had its text in the library and has it no longer after this turn, because it embeds pictures."""
    leaving = [
        artifact.id
        for artifact in attached
        if artifact.id in library
        and promoted_form(artifact, image_notes) is Form.HANDLE
        and library[artifact.id].form is not Form.HANDLE
    ]
    told = "embeds a picture now: it is sent with this turn, and the library has a handle of it after it."
    return tuple([f"{name} {told}" for name in leaving]) if leaving else ()
