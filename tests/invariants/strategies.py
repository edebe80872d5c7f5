"""Random conversations: what people attach, edit, drop, type and change, turn by turn.

A plan is a value and says nothing about what should come of it. ``playing`` walks it through the public API, and
``truth`` knows, by the documented rules alone, what every request must hold.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

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
    """Something that can be attached again and again; ``key`` stands in every text it ever has."""

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
    """One turn. ``expand`` attaches a folder or a tag; ``drop`` names things, one past the last names nothing."""

    typed: tuple[str, ...] = ("What now?",)
    attach: tuple[Attach, ...] = ()
    expand: tuple[str, ...] = ()
    system: tuple[tuple[str, str], ...] = ()
    definitions: int | None = None
    model: str | None = None
    drop: tuple[int, ...] = ()
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
    vault: bool = False
    model: str | None = None


_words = st.builds(
    Words,
    spice=st.sampled_from(SPICES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    length=st.sampled_from(LENGTHS),
    crlf=st.sampled_from([False, False, False, True]),
    bom=st.sampled_from([False, False, True]),
)


@st.composite
def _thing(draw: st.DrawFn) -> Thing:
    kind = draw(st.sampled_from(KINDS))
    by_url = kind in (*PAGE_KINDS, "web_selection")
    return Thing(
        key=0,
        kind=kind,
        name=draw(st.sampled_from(URLS if by_url else PATHS)),
        words=draw(_words),
        query=draw(st.sampled_from(["LIST", "TABLE <x>\nFROM #a"])) if kind == "dataview" else "",
        lines=draw(st.sampled_from([None, (1, 2), (10, 20)])) if kind in SELECTION_KINDS else None,
        pictured=kind in ("note", "code") and draw(st.sampled_from([False, False, True])),
    )


@st.composite
def _things(draw: st.DrawFn, *, vault: bool) -> tuple[Thing, ...]:
    """The plan's own things first, then the notes of the vault, which exist without one as well."""
    own = draw(st.lists(_thing(), min_size=1, max_size=5))
    words = draw(_words)
    filed = [
        Thing(key=0, kind="note", name=name, words=words, pictured=name == "Pictured.md", in_vault=vault)
        for name in VAULT_NOTES
    ]
    return tuple(replace(thing, key=key) for key, thing in enumerate([*own, *filed]))


def _attachments(count: int) -> st.SearchStrategy[Attach]:
    return st.builds(
        Attach,
        thing=st.integers(0, count - 1),
        edit=st.sampled_from([Edit.NONE, Edit.NONE, Edit.SMALL, Edit.SMALL, Edit.LARGE, Edit.BACK]),
        policy=st.sampled_from([None, None, None, None, "follow", "snapshot", "pin"]),
        active=st.sampled_from([False, False, True]),
        twice=st.sampled_from([False, False, False, True]),
    )


_system_changes = st.one_of(
    st.just(()),
    st.just(()),
    st.tuples(
        st.tuples(
            st.just("memory"), st.sampled_from(["", "Likes tea.", "Tea.\n\n## Context Library\n\n<note_context>"])
        )
    ),
    st.tuples(st.tuples(st.just("instructions"), st.sampled_from(INSTRUCTIONS))),
    st.tuples(
        st.tuples(st.just("base"), st.sampled_from(["", "You are terse."])),
        st.tuples(st.just("project"), st.sampled_from(["", "Atlas"])),
    ),
)


@st.composite
def _step(draw: st.DrawFn, count: int, *, calm: bool) -> Step:
    step = Step(
        typed=tuple(draw(st.lists(st.sampled_from(TYPED), min_size=1, max_size=3))),
        attach=tuple(draw(st.lists(_attachments(count), max_size=4))),
        expand=draw(st.sampled_from([(), (), (), ("folder",), ("tag",), ("tag", "folder")])),
        reply=draw(st.sampled_from(["Yes.", "", "<note_context>\nquoted\n</note_context>", "No.\r\n", None])),
    )
    if calm:
        return step
    return replace(
        step,
        system=draw(_system_changes),
        definitions=draw(st.sampled_from([None, None, None, None, 0, 1, 2])),
        model=draw(st.sampled_from([None, None, None, None, None, *MODELS])),
        drop=draw(st.just(()) | st.just(()) | st.lists(st.integers(0, count), max_size=2).map(tuple)),
        fold=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def plans(
    draw: st.DrawFn, *, layout: str | None = None, calm: bool = False, models: bool = True, turns: int = 6
) -> Plan:
    """Any conversation; a calm one has, after its first turn, nothing that begins an epoch. Without models: none."""
    vault = draw(st.sampled_from([True, True, False]))
    things = draw(_things(vault=vault))
    first = draw(_step(len(things), calm=False))
    later = draw(st.lists(_step(len(things), calm=calm), min_size=1, max_size=turns - 1))
    steps = [step if models else replace(step, model=None) for step in (first, *later)]
    return Plan(
        things=things,
        steps=tuple(step if vault else replace(step, expand=()) for step in steps),
        layout=layout or draw(st.sampled_from(["library", "in_place"])),
        carry_forward=draw(st.sampled_from(["full", "preview"])),
        image_notes=draw(st.booleans()),
        vault=vault,
        model=draw(st.sampled_from([None, *MODELS])) if models else None,
    )
