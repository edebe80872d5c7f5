"""What is attached in a turn, and what of it is known once the turn is over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lamella.core.artifacts.make import make_image
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.history.state import TurnInput
from lamella.core.layers.library import promotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A turn's attachments, each once."""

    artifacts: tuple[Artifact, ...]
    warnings: tuple[str, ...]


def drop_known(known: Mapping[str, Artifact], names: Sequence[str]) -> tuple[dict[str, Artifact], list[str]]:
    """What stays known when the user drops these; a pin is stronger than a drop."""
    kept = dict(known)
    warnings: list[str] = []
    for name in names:
        artifact = kept.get(name)
        if artifact is None:
            warnings.append(f"Nothing to drop: {name} is not in the library.")
        elif artifact.policy is Policy.PIN:
            warnings.append(f"{name} is pinned and was not dropped; attach it with policy follow to unpin it.")
        else:
            del kept[name]
    return kept, warnings


def gather(turn: TurnInput, known: Mapping[str, Artifact]) -> Gathered:
    """Each attachment once, with the last text and policy given; a snapshot keeps its first text.

    The active note brings its pictures.
    """
    merged: dict[str, Artifact] = {}
    warnings: list[str] = []
    for artifact in (*turn.results, *turn.attached):
        old = known.get(artifact.id)
        if old is not None and _keeps_snapshot(old, artifact):
            artifact = _snapshot(old, artifact)
        before = merged.get(artifact.id)
        if before is not None and before.hash != artifact.hash:
            warnings.append(f"{artifact.id} is attached twice with different text; the last text is used.")
        merged[artifact.id] = artifact if before is None else _again(before, artifact)
    for picture in _pictures(merged.values()):
        merged.setdefault(picture.id, picture)
    return Gathered(artifacts=tuple(merged.values()), warnings=tuple(warnings))


def _keeps_snapshot(known: Artifact, attached: Artifact) -> bool:
    return known.policy is Policy.SNAPSHOT and attached.policy in (None, Policy.SNAPSHOT)


def _snapshot(known: Artifact, attached: Artifact) -> Artifact:
    """The text as it was first; whether the note is the active one is a matter of this turn."""
    if known.kind is attached.kind or Kind.ACTIVE_NOTE not in (known.kind, attached.kind):
        return known
    return replace(known, kind=attached.kind, images=attached.images)


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
        elif old.policy is not policy:
            learnt[artifact.id] = replace(old, policy=policy)
