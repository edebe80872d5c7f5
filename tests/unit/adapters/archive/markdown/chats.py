"""Conversations to archive: a desk over memory with a clock of its own, and chats that were really had at it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.artifacts.make import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.log import Log
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.conversations import Conversations, ImportOutcome
from lamella.engine.keeping.stored import StoredChat
from lamella.holdings import Chronicle
from lamella.ports import Sources
from lamella.wiring import open_backend

NAME = "0190-chat"


@dataclass(slots=True)
class TickingClock:
    """A second passes with each look at it."""

    moment: datetime = field(default_factory=lambda: datetime(2026, 11, 15, 10, 0, 0, tzinfo=UTC))

    def now(self) -> datetime:
        now = self.moment
        self.moment += timedelta(seconds=1)
        return now


def make_backend(vault: Path | None = None) -> Backend:
    """A desk with an empty store."""
    return replace(
        open_backend("memory:", vault=vault, ledger=False), store=MemoryStore(), clock=TickingClock(), make_key=str
    )


def sources_of(backend: Backend) -> Sources:
    """What the desk's vault has now."""
    return backend.world.sources()


def take_out(backend: Backend, name: str = NAME) -> Chronicle:
    return Conversations(backend.store, backend.clock).take_out(name)


def take_in(backend: Backend, chronicle: Chronicle) -> ImportOutcome:
    """Bring a conversation in, and see that all of it verifies."""
    conversations = Conversations(backend.store, backend.clock)
    taken = conversations.take_in(chronicle)
    assert list(conversations.verify(chronicle.conversation)) == []
    return taken


def fold(chronicle: Chronicle) -> Log:
    log = Log(conversation=chronicle.conversation)
    log.extend(chronicle.records)
    return log


def said(chronicle: Chronicle) -> list[str]:
    """The texts of the active branch."""
    nodes = [node for told in fold(chronicle).path() for node in (told.message, told.reply)]
    return [node.text for node in nodes if node is not None]


def attached(chronicle: Chronicle) -> list[list[str]]:
    """The ids attached to each question of the active branch."""
    questions = [told.message.question for told in fold(chronicle).path()]
    return [[ref.id for ref in question.attached] for question in questions if question is not None]


def first_asked(chronicle: Chronicle) -> MessageEvent:
    """The first question of the active branch."""
    question = fold(chronicle).path()[0].message.question
    assert question is not None
    return question


def note(path: str) -> Wanted:
    return Wanted(kind=Kind.NOTE, name=path)


def given(path: str, text: str, *, kind: Kind = Kind.NOTE, policy: Policy | None = None) -> Artifact:
    """A file whose text is given, wherever it may be."""
    return make_artifact(kind, text=text, source=Source(path=path), policy=policy)


def page(url: str, text: str) -> Artifact:
    return make_artifact(Kind.URL, text=text, source=Source(url=url))


def selection(path: str, text: str) -> Artifact:
    return make_artifact(Kind.SELECTED_TEXT, text=text, source=Source(path=path, lines=(10, 20)))


def search(output: str) -> Artifact:
    return make_tool_result("search", arguments={"q": "x"}, output=output)


def chat(backend: Backend, *exchanges: tuple[str, str], name: str = NAME) -> StoredChat:
    """A conversation of these questions and answers."""
    stored = StoredChat(backend, name)
    for question, answer in exchanges:
        stored.ask(Ask(text=question))
        stored.reply(answer)
    return stored


def next_turn(backend: Backend, name: str = NAME) -> TurnView:
    """What would be sent next."""
    return StoredChat(backend, name).ask(Ask(text="And now?"))
