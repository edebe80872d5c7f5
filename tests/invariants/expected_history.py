"""The expected state of a conversation, computed from the documented rules without using Lamella."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from tests.invariants.strategies import PAGE_KINDS, SELECTION_KINDS, TAGGED, Thing

NOT_FETCHED_AGAIN = (*SELECTION_KINDS, "unknown", "image")
NEVER_SHELVED = ("tool", "image")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One attachment as it was when it was attached; of one that is ``handled`` the library may have a handle alone."""

    id: str
    kind: str
    name: str
    text: str
    head: str
    tail: str
    policy: str | None = None
    active: bool = False
    pictured: bool = False
    picture: bytes | None = None
    handled: bool = False

    @property
    def hash(self) -> str:
        return "sha256:" + digest(self.picture if self.picture is not None else self.text)

    @property
    def fetched_again(self) -> bool:
        return self.kind not in NOT_FETCHED_AGAIN

    @property
    def is_note(self) -> bool:
        return self.kind == "note"

    @property
    def shelved(self) -> bool:
        """Whether it belongs into the library once its turn is over."""
        return self.kind not in NEVER_SHELVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a turn asks for, in the order in which it is attached."""

    tools: tuple[Fact, ...]
    attached: tuple[Fact, ...]
    typed: tuple[str, ...]
    vault: Mapping[str, Fact]
    dropped: tuple[str, ...]
    system: Mapping[str, str]
    definitions: int | None
    model: str | None
    fold: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a turn's request must hold.

    ``known`` is what earlier turns attached and nobody dropped, in first-seen order; ``inlined`` is what L1's
    instructions draw in; ``attached`` is this turn's, a snapshot with its first text.
    """

    typed: str
    known: Mapping[str, Fact]
    attached: Mapping[str, Fact]
    inlined: Mapping[str, Fact]
    dropped: frozenset[str]
    begins_epoch: bool
    earlier: tuple["ExpectedMessage", ...]
    epoch_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMessage:
    """An earlier turn: what was typed, its tool results, and the reply.

    ``given`` are the results that its message held: those that was in none before it in the epoch of then.
    """

    typed: str
    reply: str
    tools: tuple[Fact, ...]
    given: tuple[Fact, ...]


@dataclass(slots=True, kw_only=True)
class Truth:
    """A conversation between two turns."""

    layout: str
    image_notes: bool
    vault: bool
    model: str | None
    known: dict[str, Fact] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    definitions: int = 0
    said: list[ExpectedMessage] = field(default_factory=list)
    epoch_start: int = 0
    drawn: tuple[object, ...] | None = None
    riding: set[str] = field(default_factory=set)

    def ask(self, asked: Ask) -> Expected:
        """What the request for this turn must hold, and the truth after it."""
        self.parts |= asked.system
        # A link can still mean what this very turn drops; then it is attached again.
        typed, drawn_in = self._expand(asked.typed, asked)
        inlined = {fact.id: fact for fact in self._expand(_tokens(self.parts.get("instructions", "")), asked)[1]}
        dropped = [name for name in asked.dropped if name in self.known and self.known[name].policy != "pin"]
        # What is not there moves nothing; pictures and tool results are there while their messages are.
        riding = [name for name in asked.dropped if name in self.riding and name not in self.known]
        for name in dropped:
            self.known.pop(name, None)
        attached = self._merged([*asked.tools, *asked.attached, *drawn_in])
        begins = self._begins(asked, inlined) or bool(dropped or riding)
        if begins:
            self.epoch_start = len(self.said)
            self.riding.clear()
        self.riding |= {fact.id for fact in attached.values() if not fact.shelved}
        expected = Expected(
            typed=" ".join(typed),
            known=dict(self.known),
            attached=attached,
            inlined=inlined,
            dropped=frozenset(dropped),
            begins_epoch=begins,
            earlier=tuple(self.said),
            epoch_start=self.epoch_start,
        )
        self._learn(attached.values())
        return expected

    def reply(self, expected: Expected, text: str) -> None:
        tools = tuple(fact for fact in expected.attached.values() if fact.kind == "tool")
        standing = {tool.id for message in self.said[self.epoch_start :] for tool in message.tools}
        given = tuple(tool for tool in tools if tool.id not in standing)
        self.said.append(ExpectedMessage(typed=expected.typed, reply=text, tools=tools, given=given))

    def _begins(self, asked: Ask, inlined: Mapping[str, Fact]) -> bool:
        drawn = (tuple(self.parts.get(p, "") for p in ("base", "instructions", "project", "memory")), _shown(inlined))
        definitions = self.definitions if asked.definitions is None else asked.definitions
        model = asked.model or self.model
        changed = (drawn, definitions, model) != (self.drawn, self.definitions, self.model)
        first = self.drawn is None
        self.drawn, self.definitions, self.model = drawn, definitions, model
        return first or self.layout == "library" or changed or asked.fold

    def _merged(self, facts: Iterable[Fact]) -> dict[str, Fact]:
        """Each id once: the last text, the last policy given; a snapshot keeps its text where none is given."""
        merged: dict[str, Fact] = {}
        facts = list(facts)
        given = {fact.id: fact.policy for fact in facts if fact.policy is not None}
        for fact in (replace(fact, policy=fact.policy or given.get(fact.id)) for fact in facts):
            old, before = self.known.get(fact.id), merged.get(fact.id)
            if old is not None and old.policy == "snapshot" and fact.policy in (None, "snapshot"):
                fact = replace(old, active=fact.active, handled=False)
            if before is not None:
                active = fact.active or (before.active and before.hash == fact.hash)
                fact = replace(fact, policy=fact.policy or before.policy, active=active)
            merged[fact.id] = fact
        return merged

    def _learn(self, attached: Iterable[Fact]) -> None:
        for fact in attached:
            if not fact.shelved:
                continue
            old = self.known.get(fact.id)
            usual = "snapshot" if old is None and fact.kind in PAGE_KINDS else None
            policy = fact.policy or (old.policy if old else usual)
            handled = fact.pictured and fact.is_note and not self.image_notes and policy != "pin"
            self.known[fact.id] = replace(fact, policy=policy, handled=handled)

    def _expand(self, parts: Sequence[str], asked: Ask) -> tuple[list[str], list[Fact]]:
        """Typed parts after templates, and what they draw in, each once."""
        text: list[str] = []
        found: dict[str, Fact] = {}
        for part in parts:
            token = part.removeprefix("{") if part.startswith("{{") else part
            named = self._named(token, asked)
            text.append(part if named is None else part.replace(token, f'"{named[0]}"'))
            found |= {fact.id: fact for fact in (named[1] if named else ())}
        return text, list(found.values())

    def _named(self, token: str, asked: Ask) -> tuple[str, Sequence[Fact]] | None:
        """The id a template stands for and what it draws in; nothing where it is not a template."""
        filed = asked.vault if self.vault else {}
        match token:
            case "{activeNote}":
                return next(((f.id, [f]) for f in asked.attached if f.active), None)
            case "{}":
                picked = [f for f in asked.attached if f.kind in SELECTION_KINDS]
                return ('", "'.join(f.id for f in picked), picked) if picked else None
            case "{[[Alpha]]}" | "{[[docs/Gamma|shown so]]}":
                note = self._linked("Alpha.md" if "Alpha" in token else "docs/Gamma.md", asked, filed)
                return (note.id, [note]) if note else None
            case "{#red}":
                return ("#red", [filed[name] for name in TAGGED]) if filed else None
            case "{docs}":
                return ("docs", folder_notes(filed)) if filed else None
        return None

    def _linked(self, name: str, asked: Ask, filed: Mapping[str, Fact]) -> Fact | None:
        attached = next((f for f in asked.attached if f.is_note and f.id == name), None)
        return attached or filed.get(name) or self.known.get(name)


def _tokens(instructions: str) -> list[str]:
    return [word.rstrip(".") for word in instructions.split() if word != "{}"]


def _shown(inlined: Mapping[str, Fact]) -> tuple[tuple[str, str], ...]:
    return tuple((fact.name, fact.text) for fact in inlined.values())


def folder_notes(filed: Mapping[str, Fact]) -> list[Fact]:
    """The notes of the folder ``docs``, sorted."""
    return [filed[name] for name in sorted(filed) if name.startswith("docs/")]


def digest(content: str | bytes) -> str:
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def id_of(thing: Thing, text: str) -> str:
    """The id that the design's table gives to a thing."""
    short = digest(text)[:12]
    path = "/".join(part for part in thing.name.split("/") if part not in ("", "."))
    match thing.kind:
        case "unknown":
            return f"unparsed:{digest(text)}"
        case "tool":
            return f"tool:search:{digest(arguments_of(thing) + chr(10) + text)[:12]}"
        case "dataview":
            return f"{path}#dataview:{digest(thing.query)[:12]}"
        case "selected_text" | "web_selection":
            place = path if thing.kind == "selected_text" else thing.name
            return f"{place}#{_span(thing)}:{short}"
        case kind if kind in PAGE_KINDS:
            return thing.name.removesuffix("#install")
    return path


def arguments_of(thing: Thing) -> str:
    """A tool's arguments as JSON with sorted keys."""
    return json.dumps({"a": thing.key, "q": thing.name}, ensure_ascii=False, separators=(",", ":"))


def _span(thing: Thing) -> str:
    return f"L{thing.lines[0]}-L{thing.lines[1]}" if thing.lines else "selection"


def newest(expected: Expected) -> Iterator[Fact]:
    """Everything the request must hold, each with the text that is in force now."""
    yield from (one for one in {**expected.known, **expected.attached}.values() if not one.handled)
