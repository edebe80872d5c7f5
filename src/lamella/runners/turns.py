"""The turn runner: walks one turn at a time from what was typed to what would be sent, and keeps the books."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.envelope.diff import find_movement
from lamella.core.envelope.model import Envelope, TokenCounts
from lamella.core.history.asked import Asked
from lamella.core.history.state import OpenTurn, Rules, State, TurnInput
from lamella.core.history.turns import close_turn, open_turn
from lamella.core.layers.system import SystemParts
from lamella.core.layers.templates import Expanded, expand_instructions, expand_typed
from lamella.core.ledger.cache import CacheUse
from lamella.core.ledger.entry import Books, Cost, Entry, Prefix, Terms, enter_turn
from lamella.core.messages.model import Message
from lamella.errors import CallError
from lamella.ports import PriceBook, ProfileBook, SourceReader, TokenCounter
from lamella.runners.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn as built: what is sent, what each part of it weighs, what moved and what it costs."""

    number: int
    envelope: Envelope
    entry: Entry

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.envelope.messages

    @property
    def tokens(self) -> TokenCounts:
        return self.envelope.tokens

    @property
    def prefix(self) -> Prefix:
        return self.entry.prefix

    @property
    def cache(self) -> CacheUse | None:
        return self.entry.cache

    @property
    def cost(self) -> Cost | None:
        return self.entry.cost


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The adapters a runner walks through."""

    counter: TokenCounter
    prices: PriceBook
    profiles: ProfileBook
    sources: SourceReader | None = None


class TurnRunner:
    """One conversation, in memory. Ask, then reply; asking again leaves the turn before with the empty reply."""

    def __init__(
        self, world: World, rules: Rules, *, conversation: str, model: str | None, ledger: bool = True
    ) -> None:
        self._ledger = ledger
        self._world = world
        self._rules = rules
        self._state = State(conversation=conversation, model=model)
        self._books = Books()
        self._opened: OpenTurn | None = None
        self._number = 0

    def ask(self, asked: Asked, *, at: datetime | None = None) -> Turn:
        """Build the next turn. If it cannot be built, nothing has changed."""
        state = close_turn(self._opened, "", self._rules) if self._opened else self._state
        turn_input = self._read(asked, state)
        model = turn_input.model or state.model
        rules = replace(self._rules, measure=self._world.counter.measure(model))
        opened = open_turn(state, turn_input, rules)
        entry, books = self._enter(state, opened, at=at)
        self._state, self._rules = state, rules
        self._opened, self._books = opened, books
        self._number += 1
        return Turn(number=self._number, envelope=opened.envelope, entry=entry)

    def reply(self, text: str) -> None:
        """Record what the model answered to the turn asked last."""
        if self._opened is None:
            raise CallError("There is no open turn to reply to.", hint="Call ask() first; each turn takes one reply.")
        self._state = close_turn(self._opened, text, self._rules)
        self._opened = None

    def _enter(self, state: State, opened: OpenTurn, *, at: datetime | None) -> tuple[Entry, Books]:
        if self._ledger:
            return enter_turn(self._books, opened, terms=self._terms(opened), at=at)
        movement = find_movement(state.last, opened.envelope)
        return Entry(prefix=Prefix(movement=movement, common_tokens=None)), self._books

    def _read(self, asked: Asked, state: State) -> TurnInput:
        reading = Reading(self._world.sources, known=_newest(state))
        attached = reading.read_wanted(asked.attach)
        typed = expand_typed(asked.text, reading.resolve)
        system, drawn = _system_parts({**state.system.as_typed(), **asked.system}, reading)
        return TurnInput(
            text=typed.text,
            typed=asked.text,
            attached=(*attached, *typed.artifacts),
            results=asked.results,
            system=None if system == state.system else system,
            tools=asked.tools,
            model=asked.model,
            drop=asked.drop,
            fold=asked.fold,
            warnings=(*reading.warnings, *typed.warnings, *drawn.warnings),
        )

    def _terms(self, opened: OpenTurn) -> Terms:
        model = opened.envelope.model

        def price(use: CacheUse, at: datetime | None) -> Decimal | None:
            return self._world.prices.price(model, use, at) if model else None

        return Terms(
            profile=self._world.profiles.profile(model), price=price, measure=self._world.counter.measure(model)
        )


def _system_parts(parts: Mapping[str, str], reading: Reading) -> tuple[SystemParts, Expanded]:
    typed = parts.get("instructions", "")
    drawn = expand_instructions(typed, reading.resolve)
    named = {**parts, "instructions": drawn.text}
    return SystemParts(**named, inlined=drawn.artifacts, typed_instructions=typed), drawn


def _newest(state: State) -> list[Artifact]:
    """What a link can mean without reading; an active note is active only in its own turn."""
    return [
        replace(artifact, kind=Kind.NOTE) if artifact.kind is Kind.ACTIVE_NOTE else artifact
        for artifact in state.known.values()
    ]
