"""Random conversations: attachments, edits, drops, typed text and changed settings, turn by turn.

A plan is a value and says nothing about what should come of it. ``playing`` walks it through the public API, and
``truth`` knows, by the documented rules alone, what every request must hold.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

from hypothesis import strategies as st
from tests.invariants.texts import LENGTHS, SPICES, Words

PATHS: tuple[str, ...] = (
    "a.md",
    "./a.md",
    "deep//er/b.md",
    'quo"te & amp; [x], y.md',
    "<b>.md",
    "&lt;b&gt;.md",
    "new\nline\u2028.md",
    "nul\x00.md",
    "😀 \u202etxt.md",
    "שלום.md",
    "spaces  at end ",
    "- a.md",
    "{docs}.md",
)
URLS: tuple[str, ...] = (
    "https://example.org/x",
    "https://example.org/x#install",
    "https://example.org/x#:~:text=part",
    "https://example.org/x?a=1&b=<2>#/route",
    "https://example.org/ü \n#t=12",
    "a.md",
)
PAGE_KINDS = ("url", "web_tab", "youtube")
SELECTION_KINDS = ("selected_text", "web_selection")
KINDS = (
    *("note", "note", "note", "pdf", "office", "canvas", "code", *PAGE_KINDS, "dataview"),
    *(*SELECTION_KINDS, "selected_text", "unknown", "image", "tool", "tool"),
)
VAULT_NOTES: tuple[str, ...] = ("Alpha.md", "Beta.md", "docs/Gamma.md", "docs/Delta.md", "Pictured.md")
TAGGED = ("Alpha.md", "docs/Gamma.md")
MODELS = ("openai:gpt-5", "anthropic:claude-opus-5-5", "nobody:unheard-of")
TYPED: tuple[str, ...] = (
    "What now?",
    "",
    "{activeNote}",
    "{[[Alpha]]}",
    "{[[docs/Gamma|shown so]]}",
    "{[[Nobody]]}",
    "{#red}",
    "{docs}",
    "{no such folder}",
    "{}",
    "{ }",
    "{.}",
    "{{docs}",
    "}{",
    "</note_context> <tool_result>",
    "[User query]:\n",
    " leading and trailing \n",
    "\n\nafter a gap",
    "/slash",
    "\r\n",
    "😀 مرحبا \x00",
    "@composer do it",
)
INSTRUCTIONS = (
    "",
    "Be brief.",
    "Use {[[Alpha]]}.",
    "Use {#red} and {docs} and {[[Alpha]]}.",
    "{activeNote} {} {x",
    "{[[Nobody]]}",
)


class Edit(StrEnum):
    """What happened to a thing since it was last attached."""

    NONE = "none"
    SMALL = "small"
    LARGE = "large"
    BACK = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Something that can be attached again and again; ``key`` is in every text it ever has."""

    key: int
    kind: str
    name: str
    words: Words = field(default_factory=Words)
    query: str = ""
    lines: tuple[int, int] | None = None
    pictured: bool = False
    in_vault: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """One attachment of a turn: which thing, by its place in the plan, and what became of it meanwhile."""

    thing: int
    edit: Edit = Edit.NONE
    policy: str | None = None
    active: bool = False
    twice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn. ``expand`` attaches a folder or a tag; ``drop`` names things, one past the last names nothing.

    So does ``detach``; ``touch`` names things that change at their source before it.
    """

    typed: tuple[str, ...] = ("What now?",)
    attach: tuple[Attach, ...] = ()
    expand: tuple[str, ...] = ()
    system: tuple[tuple[str, str], ...] = ()
    definitions: int | None = None
    model: str | None = None
    drop: tuple[int, ...] = ()
    detach: tuple[int, ...] = ()
    touch: tuple[int, ...] = ()
    fold: bool = False
    reply: str | None = "Yes."


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole conversation, with its settings."""

    things: tuple[Thing, ...]
    steps: tuple[Step, ...]
    layout: str = "library"
    carry_forward: str = "full"
    image_notes: bool = False
    attachments: str = "turn"
    linger: int = 2
    vault: bool = False
    model: str | None = None


_MEMORY = ("", "Likes tea.", "Tea.\n\n## Context Library\n\n<note_context>")
_REPLIES = ("Yes.", "", "<note_context>\nquoted\n</note_context>", "No.\r\n", None)
_CHANGES = ("memory", "base", "instructions", "instructions", "tools", "drop", "drop", "drop", "fold", "fold")
_ALPHABET = " \t\n\r\x00\x1f\x85\xa0\u2028\ufeffaA0_-/\\#*`~<>&{}[]|@+é\u0301ß漢🙂\u202e"


def _chance(random: Random, one_in: int) -> bool:
    return random.randrange(one_in) == 0


def _words(random: Random) -> Words:
    scribble = "".join(random.choice(_ALPHABET) for _ in range(random.randrange(12)))
    return Words(
        spice=random.choice((*SPICES, scribble, scribble)),
        length=random.choice(LENGTHS),
        crlf=_chance(random, 4),
        bom=_chance(random, 4),
    )


def _thing(random: Random) -> Thing:
    kind = random.choice(KINDS)
    by_url = kind in (*PAGE_KINDS, "web_selection")
    words = _words(random)
    if kind == "tool":
        # Its block says its call and no id: whoever reads it makes the id of the text, which has to be what it reads,
        # without a backslash that is not there and a return that is normalised once more.
        words = replace(words, spice=words.spice.replace("\\", "").replace("\r", ""))
    return Thing(
        key=0,
        kind=kind,
        name=random.choice(URLS if by_url else PATHS),
        words=words,
        query=random.choice(("LIST", "TABLE <x>\nFROM #a")) if kind == "dataview" else "",
        lines=random.choice((None, (1, 2), (10, 20))) if kind in SELECTION_KINDS else None,
        pictured=kind in ("note", "code") and _chance(random, 4),
    )


def _things(random: Random, *, vault: bool) -> tuple[Thing, ...]:
    """The plan's own things first, then the notes of the vault, which exist without one as well."""
    own = [_thing(random) for _ in range(random.randint(1, 4))]
    filed = [
        Thing(key=0, kind="note", name=name, words=_words(random), pictured=name == "Pictured.md", in_vault=vault)
        for name in VAULT_NOTES
    ]
    return tuple(replace(thing, key=key) for key, thing in enumerate([*own, *filed]))


def _attach(random: Random, count: int) -> Attach:
    own = count - len(VAULT_NOTES)
    return Attach(
        thing=random.randrange(own if _chance(random, 2) else count),
        edit=random.choice((Edit.NONE, Edit.NONE, Edit.NONE, Edit.SMALL, Edit.SMALL, Edit.LARGE, Edit.BACK)),
        policy=random.choice((None, None, None, None, None, "follow", "snapshot", "pin")),
        active=_chance(random, 3),
        twice=_chance(random, 6),
    )


def _change(random: Random, count: int, *, models: bool) -> Step:
    """A step with one thing in it that moves the prefix; most steps have none."""
    match random.choice((*_CHANGES, "model") if models else _CHANGES):
        case "memory":
            return Step(system=(("memory", random.choice(_MEMORY)),))
        case "base":
            return Step(system=(("base", random.choice(("", "You are terse."))), ("project", "Atlas")))
        case "instructions":
            return Step(system=(("instructions", random.choice(INSTRUCTIONS)),))
        case "tools":
            return Step(definitions=random.randrange(3))
        case "drop":
            return Step(drop=tuple(random.randrange(count + 1) for _ in range(random.randint(1, 2))))
        case "fold":
            return Step(fold=True)
    return Step(model=random.choice(MODELS))


def _step(random: Random, count: int, *, change: Step, vault: bool) -> Step:
    return replace(
        change,
        typed=tuple(random.choice(TYPED) for _ in range(random.randint(1, 2))),
        attach=tuple(_attach(random, count) for _ in range(random.randrange(4))),
        expand=random.choice(((), (), (), ("folder",), ("tag",), ("tag", "folder"))) if vault else (),
        reply=random.choice(_REPLIES),
    )


def _loosen(random: Random, step: Step, count: int) -> Step:
    """The same step, with things taken out of the working set and things that change by themselves."""
    detach = tuple(random.randrange(count + 1) for _ in range(random.randint(1, 2))) if _chance(random, 3) else ()
    touch = tuple(random.randrange(count) for _ in range(random.randint(1, 3))) if _chance(random, 2) else ()
    return replace(step, detach=detach, touch=touch)


@st.composite
def plans(
    draw: st.DrawFn, *, layout: str | None = None, models: bool = True, turns: int = 7, sticky: bool = False
) -> Plan:
    """Any conversation of two turns or more. Without models: of none, ever. Sticky: of any kind of attachments.

    Half of them are drawn choice by choice, which shrinks well; half from a seed, which wanders further.
    """
    random = draw(st.randoms(use_true_random=False) | st.randoms(use_true_random=True))
    vault = not _chance(random, 3)
    things = _things(random, vault=vault)
    restless = random.choice((2, 4, 8))
    steps = []
    for number in range(random.randint(2, turns)):
        changing = _chance(random, restless) or number == 0
        change = _change(random, len(things), models=models) if changing else Step()
        step = _step(random, len(things), change=change, vault=vault)
        steps.append(_loosen(random, step, len(things)) if sticky else step)
    return Plan(
        things=things,
        steps=tuple(steps),
        layout=layout or random.choice(("library", "in_place", "in_place")),
        carry_forward=random.choice(("full", "preview")),
        image_notes=_chance(random, 3),
        attachments=random.choice(("turn", "sticky", "sticky")) if sticky else "turn",
        linger=random.choice((0, 1, 2)) if sticky else 2,
        vault=vault,
        model=random.choice((None, *MODELS)) if models else None,
    )
