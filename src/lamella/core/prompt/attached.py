"""What is attached in a turn, and what of it is known once the turn is over."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lamella.core.artifacts.make import make_image
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.layers.library import promotes
from lamella.core.values import replace
from lamella.errors import ArtifactError


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A turn's attachments, each once."""

    artifacts: tuple[Artifact, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What a drop leaves known, what it took out, and what is to be said about it."""

    known: dict[str, Artifact]
    left: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def drop_known(
    known: Mapping[str, Artifact],
    names: Sequence[str],
    *,
    standing: Collection[str] = (),
    drawn_in: Collection[str] = (),
) -> Dropped:
    """What stays known when the user drops these; a pin is stronger than a drop.

    ``standing`` are ids that stand in the request without being known, such as notes with pictures: they leave, too.
    ``drawn_in`` are ids that the instructions draw into L1: dropping does not reach them.
    """
    kept = dict(known)
    left: dict[str, None] = {}
    warnings: list[str] = []
    for name in dict.fromkeys(names):
        artifact = kept.get(name)
        if artifact is not None and artifact.policy is Policy.PIN:
            warnings.append(f"{name} is pinned and was not dropped; attach it with policy follow to unpin it.")
        elif artifact is not None or name in standing:
            kept.pop(name, None)
            left[name] = None
        elif name not in drawn_in:
            warnings.append(f"Nothing to drop: {name} is not in the library.")
        if name in drawn_in:
            warnings.append(f"{name} stays in the system prompt: its instructions draw it in.")
    return Dropped(known=kept, left=tuple(left), warnings=tuple(warnings))


def gather(turn: TurnInput, known: Mapping[str, Artifact]) -> Gathered:
    """Each attachment once, with the last text and policy given; a snapshot keeps its first text.

    The active note brings its pictures.
    """
    merged: dict[str, Artifact] = {}
    warnings: list[str] = []
    for artifact in (*turn.results, *turn.attached):
        old = known.get(artifact.id)
        _check_same_class(merged.get(artifact.id) or old, artifact)
        if old is not None and _keeps_snapshot(old, artifact):
            artifact = _snapshot(old, artifact)
        before = merged.get(artifact.id)
        if before is not None and before.hash != artifact.hash:
            warnings.append(f"{artifact.id} is attached twice with different text; the last text is used.")
        merged[artifact.id] = artifact if before is None else _again(before, artifact)
    for picture in _pictures(merged.values()):
        merged.setdefault(picture.id, picture)
    return Gathered(artifacts=tuple(merged.values()), warnings=tuple(warnings))


def _check_same_class(one: Artifact | None, other: Artifact) -> None:
    """One id never stands both for what can be fetched again and for what cannot: the second would be lost."""
    if one is not None and one.recoverable is not other.recoverable:
        raise ArtifactError(
            f"{other.id} is the id of a {one.kind}, and now of a {other.kind} as well.",
            hint="Attach one of the two under another path.",
        )


def _keeps_snapshot(known: Artifact, attached: Artifact) -> bool:
    return known.policy is Policy.SNAPSHOT and attached.policy in (None, Policy.SNAPSHOT)


def _snapshot(known: Artifact, attached: Artifact) -> Artifact:
    """The text as it was first; whether the note is the active one is a matter of this turn."""
    whole = known if known.condensed is None else replace(known, condensed=None)
    if known.kind is attached.kind or Kind.ACTIVE_NOTE not in (known.kind, attached.kind):
        return whole
    return replace(whole, kind=attached.kind, images=attached.images)


def _again(before: Artifact, artifact: Artifact) -> Artifact:
    """The same id attached twice in a turn."""
    newest = artifact if before.hash != artifact.hash or artifact.kind is Kind.ACTIVE_NOTE else before
    policy = artifact.policy or before.policy
    return newest if newest.policy is policy else replace(newest, policy=policy)


def _pictures(attached: Iterable[Artifact]) -> list[Artifact]:
    return [
        make_image(image, title=f"{artifact.title} (embedded)")
        for artifact in attached
        if artifact.kind is Kind.ACTIVE_NOTE
        for image in artifact.images
    ]


def learn(known: Mapping[str, Artifact], attached: Sequence[Artifact], *, image_notes: bool) -> dict[str, Artifact]:
    """What is known once the turn is over: new at the end, newer text at its first-seen place."""
    learnt = dict(known)
    learn_into(learnt, attached, image_notes=image_notes)
    return learnt


def learn_into(learnt: dict[str, Artifact], attached: Sequence[Artifact], *, image_notes: bool) -> None:
    """The same, for a caller who folds many turns and owns the mapping."""
    for artifact in attached:
        old = learnt.get(artifact.id)
        if not promotes(artifact, image_notes=image_notes):
            learnt.pop(artifact.id, None)
            continue
        policy = artifact.policy or (old.policy if old is not None else None)
        if old is None or old.hash != artifact.hash:
            learnt[artifact.id] = artifact if artifact.policy is policy else replace(artifact, policy=policy)
        elif old.policy is not policy or old.condensed != artifact.condensed:
            learnt[artifact.id] = replace(old, policy=policy, condensed=artifact.condensed)


def find_leaving(known: Mapping[str, Artifact], attached: Sequence[Artifact], *, image_notes: bool) -> tuple[str, ...]:
    """Words on what was in the library and leaves it with this turn, because it embeds pictures now."""
    return tuple(
        f"{artifact.id} embeds a picture now: it is sent with this turn and leaves the library after it."
        for artifact in attached
        if artifact.id in known and not promotes(artifact, image_notes=image_notes)
    )
