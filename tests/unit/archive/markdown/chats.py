"""Conversations to archive: a desk over memory with a clock of its own, and chats that were really had at it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, ImportOutcome
from lamella.conversation.turn import BuiltTurn, TurnRequest
from lamella.core.artifacts.kinds import make_artifact, make_tool_result
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy, UnresolvedAttachment
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.log import FoldedLog
from lamella.core.values import replace
from lamella.ports import ConversationExport, SourceReaders
from lamella.stores.memory import InMemoryStore
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
        open_backend("memory:", vault=vault, keep_ledger=False),
        store=InMemoryStore(),
        clock=TickingClock(),
        make_key=str,
    )


def sources_of(backend: Backend) -> SourceReaders:
    """What the desk's vault has now."""
    return backend.adapters.open_sources()


def export_log(backend: Backend, name: str = NAME) -> ConversationExport:
    return ConversationRepository(backend.store, backend.clock).export_conversation(name)


def import_log(backend: Backend, chronicle: ConversationExport) -> ImportOutcome:
    """Bring a conversation in, and see that all of it verifies."""
    conversations = ConversationRepository(backend.store, backend.clock)
    taken = conversations.import_conversation(chronicle)
    assert list(conversations.verify(chronicle.conversation_key)) == []
    return taken


def fold(chronicle: ConversationExport) -> FoldedLog:
    log = FoldedLog(conversation=chronicle.conversation_key)
    log.extend(chronicle.records)
    return log


def said(chronicle: ConversationExport) -> list[str]:
    """The texts of the active branch."""
    nodes = [node for record in fold(chronicle).branch_records() for node in (record.message, record.reply)]
    return [node.text for node in nodes if node is not None]


def attached(chronicle: ConversationExport) -> list[list[str]]:
    """The ids attached to each question of the active branch."""
    questions = [record.message.question_event for record in fold(chronicle).branch_records()]
    return [[ref.id for ref in question.attached] for question in questions if question is not None]


def first_asked(chronicle: ConversationExport) -> QuestionEvent:
    """The first question of the active branch."""
    question = fold(chronicle).branch_records()[0].message.question_event
    assert question is not None
    return question


def note(path: str) -> UnresolvedAttachment:
    return UnresolvedAttachment(kind=ArtifactKind.NOTE, name=path)


def given(
    path: str, text: str, *, kind: ArtifactKind = ArtifactKind.NOTE, policy: AttachmentPolicy | None = None
) -> Artifact:
    """A file whose text is given, wherever it may be."""
    return make_artifact(kind, text=text, source=ArtifactSource(path=path), policy=policy)


def page(url: str, text: str) -> Artifact:
    return make_artifact(ArtifactKind.URL, text=text, source=ArtifactSource(url=url))


def selection(path: str, text: str) -> Artifact:
    return make_artifact(ArtifactKind.SELECTED_TEXT, text=text, source=ArtifactSource(path=path, lines=(10, 20)))


def search(output: str) -> Artifact:
    return make_tool_result("search", arguments={"q": "x"}, output=output)


def chat(backend: Backend, *exchanges: tuple[str, str], name: str = NAME) -> Conversation:
    """A conversation of these questions and answers."""
    conversation_log = Conversation.open(backend, name)
    for question, answer in exchanges:
        conversation_log.ask(TurnRequest(text=question))
        conversation_log.reply(answer)
    return conversation_log


def next_turn(backend: Backend, name: str = NAME) -> BuiltTurn:
    """What would be sent next."""
    return Conversation.open(backend, name).ask(TurnRequest(text="And now?"))
