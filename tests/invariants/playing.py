"""Playing a plan: the vault on disk, the calls of the public API, and the same conversation as a transcript."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.invariants.expected_history import Ask, Expected, Fact, Truth, folder_notes
from tests.invariants.items import EMBEDDED, Entry, Item, attachment_of, entry_of, fact_of, png, raw_text, result_of
from tests.invariants.strategies import TAGGED, VAULT_NOTES, Attach, Edit, Plan, Step
from tests.invariants.texts import Version

from lamella import Conversation, Envelope, Folder, Tag, Tool, Turn

WINDOW = 1_000_000_000
DEFINITIONS: tuple[tuple[Tool, ...], ...] = (
    (),
    (Tool(name="search", description="Finds <things>.", parameters={"type": "object", "a": [1, None]}),),
    (Tool(name="search", description="Finds <things>."), Tool(name="clock")),
)
NOWHERE = "nothing/there.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One turn as built, the envelope before it, and what must be true of it."""

    turn: Turn
    before: Envelope | None
    expected: Expected

    @property
    def envelope(self) -> Envelope:
        return self.turn.envelope

    @property
    def text(self) -> str:
        """All text of the request; between two messages stands a character that no text here has."""
        return "\ue000".join(message.text for message in self.turn.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A whole conversation: its turns, and the transcript that describes the same."""

    seen: tuple[Seen, ...]
    transcript: dict[str, object]


@contextmanager
def playing(plan: Plan, *, ledger: bool = False) -> Iterator[tuple[Played, Path]]:
    """The plan as played, while its vault still is in the folder given."""
    with TemporaryDirectory() as folder:
        yield Player(plan, Path(folder), ledger=ledger).play(), Path(folder)


def play(plan: Plan, *, ledger: bool = False) -> tuple[Seen, ...]:
    """The turns of a plan."""
    with playing(plan, ledger=ledger) as (played, _):
        return played.seen


class Player:
    """Walks a plan. What is attached is told to the truth and to Lamella, to each in its own words."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        conversation: str = "played",
        ledger: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._plan = plan
        self._vault = folder / "vault"
        self._history: list[list[Version]] = [[Version()] for _ in plan.things]
        if plan.vault:
            (self._vault / "docs").mkdir(parents=True)
            (self._vault / EMBEDDED).write_bytes(png(0, 0))
            for place in range(len(plan.things)):
                self._file(place)
        given: dict[str, Any] = {**plan_settings(plan), **(settings or {})}
        self.chat = Conversation(
            conversation_key=conversation,
            vault=self._vault if plan.vault else None,
            keep_ledger=ledger,
            **given,
        )
        self._truth = Truth(layout=plan.layout, image_notes=plan.image_notes, vault=plan.vault, model=plan.model)

    def play(self) -> Played:
        """Every step, in order."""
        seen: list[Seen] = []
        turns: list[Entry] = []
        for step in self._plan.steps:
            items = self._items(step)
            drop = self._named(step.drop)
            expected = self._truth.ask(self._asked(step, items, drop))
            turn = self.ask(step, items, drop)
            seen.append(Seen(turn=turn, before=seen[-1].envelope if seen else None, expected=expected))
            turns.append(_turn_in(step, items, drop))
            if step.reply is not None:
                self.chat.reply(step.reply)
            self._truth.reply(expected, step.reply or "")
        head: dict[str, object] = {"lamella": 1, "conversation": "played", **_settings(self._plan)}
        if self._plan.vault:
            head["vault"] = "vault"
        return Played(seen=tuple(seen), transcript=head | {"turns": turns})

    def ask(self, step: Step, items: Sequence[Item], drop: Sequence[str]) -> Turn:
        """The call a program would make."""
        expand = [Folder(path="docs") if name == "folder" else Tag(tag="#red") for name in step.expand]
        return self.chat.ask(
            " ".join(step.typed),
            attach=[*(attachment_of(item) for item in items if item.kind != "tool"), *expand],
            results=[result_of(item) for item in items if item.kind == "tool"],
            tools=None if step.definitions is None else DEFINITIONS[step.definitions],
            system=dict(step.system) or None,
            model=step.model,
            drop=drop,
            detach=self._named(step.detach),
            fold=step.fold,
        )

    def _asked(self, step: Step, items: Sequence[Item], drop: Sequence[str]) -> Ask:
        facts = [fact_of(item) for item in items]
        filed = self._filed()
        expanded = {"folder": folder_notes(filed), "tag": [filed[name] for name in TAGGED if filed]}
        return Ask(
            tools=tuple(fact for fact in facts if fact.kind == "tool"),
            attached=(
                *(fact for fact in facts if fact.kind != "tool"),
                *(fact for name in step.expand for fact in expanded[name]),
            ),
            typed=step.typed,
            vault=filed,
            dropped=tuple(drop),
            system=dict(step.system),
            definitions=step.definitions,
            model=step.model,
            fold=step.fold,
        )

    def _items(self, step: Step) -> list[Item]:
        """What the turn attaches, after the edits; a file in the vault is read when the turn is asked."""
        for place in step.touch:
            self._edit(Attach(thing=place, edit=Edit.SMALL))
        attached: list[tuple[Attach, Version]] = []
        for attach in step.attach:
            version = self._edit(attach)
            attached += [(attach, version)] * (2 if attach.twice else 1)
        return [
            Item(
                thing=self._plan.things[attach.thing],
                version=self._history[attach.thing][-1] if self._plan.things[attach.thing].in_vault else version,
                attach=attach,
            )
            for attach, version in attached
        ]

    def _edit(self, attach: Attach) -> Version:
        history = self._history[attach.thing]
        edits = 1 + max(version.edit for version in history)
        match attach.edit:
            case Edit.SMALL:
                history.append(Version(edit=edits, draft=history[-1].draft))
            case Edit.LARGE:
                history.append(Version(edit=edits, draft=edits))
            case Edit.BACK:
                history.append(history[max(0, len(history) - 2)])
            case Edit.NONE:
                return history[-1]
        if self._plan.vault:
            self._file(attach.thing)
        return history[-1]

    def _file(self, place: int) -> None:
        thing = self._plan.things[place]
        if thing.in_vault:
            (self._vault / thing.name).write_bytes(raw_text(thing, self._history[place][-1]).encode())

    def _filed(self) -> dict[str, Fact]:
        return {
            thing.name: fact_of(Item(thing=thing, version=self._history[place][-1], attach=Attach(thing=place)))
            for place, thing in enumerate(self._plan.things)
            if thing.in_vault and thing.name in VAULT_NOTES
        }

    def _named(self, places: Sequence[int]) -> list[str]:
        things = self._plan.things
        return [
            fact_of(Item(thing=things[place], version=self._history[place][-1], attach=Attach(thing=place))).id
            if place < len(things)
            else NOWHERE
            for place in places
        ]


def plan_settings(plan: Plan) -> dict[str, object]:
    """What a plan is played under."""
    return {
        "window": WINDOW,
        "layout": plan.layout,
        "carry_forward": plan.carry_forward,
        "image_notes": plan.image_notes,
        "attachments": plan.attachments,
        "linger": plan.linger,
        "model": plan.model,
    }


def _settings(plan: Plan) -> dict[str, object]:
    return {name: value for name, value in plan_settings(plan).items() if value is not None}


def _turn_in(step: Step, items: Sequence[Item], drop: Sequence[str]) -> Entry:
    expand: list[Entry] = [
        {"kind": "folder", "path": "docs"} if name == "folder" else {"kind": "tag", "tag": "#red"}
        for name in step.expand
    ]
    turn: Entry = {
        "user": " ".join(step.typed),
        "attach": [*(entry_of(item) for item in items if item.kind != "tool"), *expand],
        "tools": [entry_of(item) for item in items if item.kind == "tool"],
        "drop": list(drop),
        "fold": step.fold,
    }
    if step.system:
        turn["system"] = dict(step.system)
    if step.definitions is not None:
        turn["tool_definitions"] = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in DEFINITIONS[step.definitions]
        ]
    if step.model:
        turn["model"] = step.model
    if step.reply is not None:
        turn["reply"] = step.reply
    return turn
