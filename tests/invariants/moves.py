"""Random stored conversations: turns as in ``strategies``, and between them all operations on a history.

A move names messages by number; whoever plays it takes that number modulo what there is.
"""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from hypothesis import strategies as st
from tests.invariants.strategies import MODELS, TYPED, Plan, Step, plans


class Deed(StrEnum):
    """What can be done to a conversation beside asking."""

    REPLY = "reply"
    EDIT = "edit"
    REGENERATE = "regenerate"
    REGENERATE_ANY = "regenerate_any"
    DELETE = "delete"
    FORK = "fork"
    SWITCH = "switch"
    RENAME = "rename"
    SETTINGS = "settings"
    COMPACT = "compact"
    UNDO = "undo"


TREE = (Deed.EDIT, Deed.REGENERATE, Deed.REGENERATE_ANY, Deed.DELETE, Deed.FORK, Deed.SWITCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One thing done: a turn with its step, or a deed with the message it is done to and a text."""

    step: Step | None = None
    deed: Deed | None = None
    pick: int = 0
    text: str = ""
    settings: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A plan, its moves, and for each move whether the conversation is closed and opened again before it."""

    plan: Plan
    moves: tuple[Move, ...]
    reopened: tuple[bool, ...]
    settings: tuple[tuple[str, object], ...] = ()


_PLAIN = (Deed.REPLY, Deed.RENAME)
_TEXTS = (*TYPED, "Another question.", "Yes.", "No.\r\n")
_SETTINGS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("layout", ("library", "in_place", "auto")),
    ("carry_forward", ("full", "preview")),
    ("image_notes", ("text", "handle")),
    ("attachments", ("turn", "sticky")),
    ("linger", (0, 2)),
)


def _settings(random: Random, *, auto: bool) -> tuple[tuple[str, object], ...]:
    name, values = random.choice((*_SETTINGS, ("model", MODELS)))
    return ((name, random.choice(values if auto else [value for value in values if value != "auto"])),)


def _deed(random: Random, *, tree: bool, auto: bool) -> Move:
    deed = random.choice((*TREE, Deed.REPLY, Deed.RENAME, Deed.SETTINGS, Deed.SETTINGS) if tree else _PLAIN)
    return Move(
        deed=deed,
        pick=random.randrange(1_000),
        text=random.choice(_TEXTS),
        settings=_settings(random, auto=auto) if deed is Deed.SETTINGS else (),
    )


@st.composite
def stored_conversation_plans(
    draw: st.DrawFn, *, tree: bool = True, layout: str | None = None, turns: int = 6, auto: bool = True
) -> Kept:
    """Any conversation with what is done to it between its turns; it always ends in a turn.

    Without ``auto`` where things are follows from what was said alone, and from no time.
    """
    random = draw(st.randoms(use_true_random=False) | st.randoms(use_true_random=True))
    layout = layout or ("auto" if auto and random.randrange(2) else None)
    plan = draw(plans(layout=layout, turns=turns, sticky=True))
    eager = random.choice((2, 3, 6))
    moves: list[Move] = []
    for step in plan.steps:
        moves.append(Move(step=step))
        if step.reply is not None:
            moves.append(Move(deed=Deed.REPLY, text=step.reply))
        moves += [_deed(random, tree=tree, auto=auto) for _ in range(random.randrange(eager))]
    moves.append(Move(step=Step(typed=("And now?",))))
    often = random.choice((1, 2, 4))
    return Kept(plan=plan, moves=tuple(moves), reopened=tuple(random.randrange(often) == 0 for _ in moves))
