"""What waits for the next question: commands given before it, joined so that of two opposites the later holds."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.model import Artifact, Kind, Policy
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.library import render_smaller
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.pins import name_said
from lamella.engine.dialogue.reading.working_set import match_names, name_artifact

NOTHING_WAITS = Ask(text="")
_TAKEN_BACK = "{name} does not go with the next turn any more."
_STAYS = "{name} is attached by this turn itself, and so it is neither dropped nor detached with it."
_INSTEAD = "{name} was to be {was} with the next turn; that is taken back."


class Commands(Struct, frozen=True, kw_only=True):
    """What waits for the next turn: what it attaches, as it was read, and the ids that it detaches, drops and pins.

    ``rules`` are texts that hold from it on, ``ended`` those of rules that hold no more. ``tokens`` are what each
    attachment takes there, and ``said`` is what is to be told of all this.
    """

    attach: tuple[Artifact, ...] = ()
    detach: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    tokens: Mapping[str, int] = {}
    said: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        changes = self.detach or self.drop or self.pin or self.unpin or self.rules or self.ended
        return bool(self.attach or changes)


def describe_waiting(waits: Ask, count: Callable[[str], int], *, said: Iterable[str] = ()) -> Commands:
    """What waits, with what it weighs; a picture weighs what its model makes of it."""
    texts = [one for one in waits.earlier if one.kind is not Kind.IMAGE]
    return Commands(
        attach=waits.earlier,
        detach=waits.detach,
        drop=waits.drop,
        pin=waits.pin,
        unpin=waits.unpin,
        rules=waits.rules,
        ended=waits.ended,
        tokens={one.id: count(_render(one)) for one in texts},
        said=tuple(said),
    )


def _render(artifact: Artifact) -> str:
    outline = render_smaller(artifact, Form.PREVIEW) if artifact.outlined else None
    return outline or render_block(artifact)


def does_nothing(asked: Ask) -> bool:
    """Whether a command comes to nothing."""
    changes = asked.detach or asked.drop or asked.pin or asked.unpin or asked.rules or asked.ended
    return not (asked.earlier or changes)


def join_asks(waits: Ask, later: Ask, *, back: Collection[str] = ()) -> Ask:
    """What is asked later, with what waits and is not contradicted by it; ``back`` is no longer attached at all."""
    leaves = {*later.drop, *later.detach, *back}
    comes = {one.id for one in later.earlier} | _list_brought(later)
    pinned = {*later.pin, *later.unpin}
    policies = {**dict.fromkeys(later.pin, Policy.PIN), **dict.fromkeys(later.unpin, Policy.FOLLOW)}
    gone = {one.id for name in leaves for one in waits.earlier if one.id in match_names(name, waits.earlier)}
    stays = [one for one in waits.earlier if one.id not in gone and one.id not in comes]
    held = {one.id for one in stays}
    return replace(
        later,
        earlier=(
            *(replace(one, policy=policies[one.id]) if one.id in policies else one for one in stays),
            *later.earlier,
        ),
        detach=_merge(waits.detach, later.detach, but=comes | pinned | set(later.drop)),
        drop=_merge(waits.drop, later.drop, but=comes | pinned | set(later.detach)),
        pin=_merge(waits.pin, [name for name in later.pin if name not in held], but=leaves | pinned),
        unpin=_merge(waits.unpin, [name for name in later.unpin if name not in held], but=leaves | pinned),
        rules=_merge(waits.rules, later.rules, but=later.ended),
        ended=_merge(waits.ended, later.ended, but=later.rules),
        warnings=(*waits.warnings, *later.warnings),
    )


def _list_brought(asked: Ask) -> set[str]:
    """What a question attaches by itself, by the names it has or will have."""
    return {one.id if isinstance(one, Artifact) else one.name for one in asked.attach}


def _merge(earlier: Iterable[str], later: Iterable[str], *, but: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(name for name in earlier if name not in but), *later)))


def tell_contradictions(waits: Ask, joined: Ask, later: Ask, *, names: Mapping[str, str]) -> Iterator[str]:
    """Words on what waited and waits no more, because something later said otherwise; ``names`` are those of ids."""
    stays = {one.id for one in (*joined.earlier, *later.earlier)}
    yield from (_TAKEN_BACK.format(name=name_artifact(one)) for one in waits.earlier if one.id not in stays)
    for waited, left, was in (
        (waits.detach, joined.detach, "detached"),
        (waits.drop, joined.drop, "dropped"),
        (waits.pin, joined.pin, "pinned"),
        (waits.unpin, joined.unpin, "unpinned"),
    ):
        taken = (name for name in waited if name not in left)
        yield from (_INSTEAD.format(name=names.get(name, name), was=was) for name in taken)


def take_along(waits: Ask, asked: Ask, state: State) -> Ask:
    """A question with what waits for it; a pin of what is not there any more is said, and pins nothing.

    What it brings along itself neither leaves the prompt nor the working set with it, and that is said.
    """
    joined = join_asks(waits, asked)
    stays = [
        _STAYS.format(name=name) for name in dict.fromkeys((*waits.drop, *waits.detach)) if name in _list_brought(asked)
    ]
    joined = replace(joined, warnings=(*joined.warnings, *stays)) if stays else joined
    there = {*state.library, *state.pinned, *name_said(state), *name_said(state).values(), *asked.pin, *asked.unpin}
    missing = [name for name in (*joined.pin, *joined.unpin) if name not in there]
    if not missing:
        return joined
    return replace(
        joined,
        pin=tuple(name for name in joined.pin if name in there),
        unpin=tuple(name for name in joined.unpin if name in there),
        warnings=(*joined.warnings, *(f"{name} is not there to be pinned or unpinned any more." for name in missing)),
    )
