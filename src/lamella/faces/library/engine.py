"""The engine: conversations that last, behind one object."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Self

from lamella.attach import Attachment
from lamella.core.log.call import Call
from lamella.core.log.nodes import Told
from lamella.core.log.records import Listed
from lamella.engine.keeping import Keeper
from lamella.engine.office import PostOffice
from lamella.engine.sending import Event, send
from lamella.engine.stored import Desk, StoredChat
from lamella.engine.turn import TurnView
from lamella.errors import CallError, NotAvailableError
from lamella.faces.library.checks import (
    check_answer,
    check_folder,
    check_patience,
    check_provider,
    check_summarizer,
    check_text,
    check_time,
)
from lamella.faces.library.talk import Described, Talk
from lamella.ports import ChatProvider, Summarizer
from lamella.wiring import open_desk, open_office, read_services


class Chat(Talk):
    """A conversation in a store: what it acknowledges is durable, and opening it again goes on where it was left."""

    def __init__(
        self, desk: Desk, conversation: str, settings: dict[str, object], *, office: PostOffice | None = None
    ) -> None:
        self._stored = StoredChat(desk, conversation, settings)
        self._office = office or open_office()
        self._sending = False
        super().__init__(self._stored, system=None)

    def send(
        self,
        text: str,
        *,
        attach: Sequence[Attachment] = (),
        system: str | Mapping[str, str] | None = None,
        model: str | None = None,
        drop: Sequence[str] = (),
        fold: bool = False,
        runner: str = "chat",
        max_tokens: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Ask the model and record its answer, as events; each has the ``text`` it adds to the answer.

        Closing the iterator stops the model, and what it said until then is kept. An answer may have ``max_tokens``,
        1,024 if nothing is said; more than the request leaves of the window, if you say so much, is refused unsent.
        """
        self._office.name(model)
        asked = self._describe(Described(text=text, attach=attach, system=system, model=model, drop=drop, fold=fold))
        if runner != "chat":
            raise NotAvailableError(f"There is no runner {runner!r} yet.", hint="Use runner='chat'.")
        window = self._stored.window
        answer = check_answer(max_tokens, window=window)
        model = self._stored.model_for(asked)
        post = self._office.post(model, answer=answer, window=None if max_tokens is None else window)
        return self._alone(send(self._stored, asked, post))

    async def _alone(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """One turn at a time: an answer belongs to the question that was asked last."""
        if self._sending:
            raise CallError("A turn is being sent.", hint="Wait for its answer, or close its iterator to stop it.")
        self._sending = True
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._sending = False

    def ledger(self) -> Sequence[Sequence[Call]]:
        """For each turn of the active branch the model calls that were made for it."""
        return self._stored.ledger()

    @property
    def id(self) -> str:
        return self._stored.id

    @property
    def title(self) -> str:
        return self._stored.title

    @property
    def head(self) -> str:
        """The id of the active branch's last message."""
        return self._stored.head

    def turns(self, head: str | None = None) -> Sequence[Told]:
        """The turns of a branch as they were said, by default of the active one."""
        return self._stored.turns(head)

    def branches(self) -> Sequence[str]:
        """Every branch by its last message; none is ever lost by editing, regenerating, deleting or forking."""
        return self._stored.branches()

    def edit(self, message: str, text: str, *, at: datetime | None = None) -> TurnView:
        """Ask another text in place of a message, with the same attachments."""
        return self._stored.edit(check_text(message, "message"), check_text(text, "text"), at=check_time(at))

    def regenerate(self, message: str | None = None, *, at: datetime | None = None) -> TurnView:
        """Open a question again, by default the last; the next reply stands beside the old one."""
        named = None if message is None else check_text(message, "message")
        return self._stored.regenerate(named, at=check_time(at))

    def delete(self, message: str, *, at: datetime | None = None) -> None:
        """Go on without a message; a question goes with its answer."""
        self._stored.delete(check_text(message, "message"), at=check_time(at))

    def fork(self, message: str, *, at: datetime | None = None) -> None:
        """Go on from an earlier message."""
        self._stored.fork(check_text(message, "message"), at=check_time(at))

    def switch(self, head: str, *, at: datetime | None = None) -> None:
        """Make another branch the active one."""
        self._stored.switch(check_text(head, "head"), at=check_time(at))

    def rename(self, title: str, *, at: datetime | None = None) -> None:
        """Give the conversation a title."""
        self._stored.rename(check_text(title, "title"), at=check_time(at))

    def reload(self) -> None:
        """Read what others wrote since; do this after a conflict, then repeat what you did."""
        self._stored.reload()


class Engine:
    """A store of conversations. Use it in a ``with`` block, or close it."""

    def __init__(
        self,
        url: str,
        *,
        vault: str | PathLike[str] | None = None,
        ledger: bool = True,
        summarizer: Summarizer | None = None,
        model: str | None = None,
        provider: ChatProvider | None = None,
        patience: float | None = None,
        tries: int | None = None,
    ) -> None:
        self._settings = {} if model is None else {"model": check_text(model, "model", may_be_empty=False)}
        services = read_services()
        patient = check_patience(patience, tries)
        self._office = open_office(check_provider(provider), services=services, patience=patient)
        self._office.name(model)
        self._desk = open_desk(
            check_text(url, "url"),
            services=services,
            vault=check_folder(vault),
            ledger=ledger,
            summarizer=check_summarizer(summarizer),
        )
        self._keeper = Keeper(self._desk.store, self._desk.clock)

    def chat(self, conversation: str, **settings: object) -> Chat:
        """A conversation, new or as it was left. Settings given here are written down and hold from now on."""
        name = check_text(conversation, "conversation", may_be_empty=False)
        given = settings.get("model")
        self._office.name(given if isinstance(given, str) else None)
        return Chat(self._desk, name, {**self._settings, **settings}, office=self._office)

    async def conversation(self, conversation: str, **settings: object) -> Chat:
        """The same, for programs that send."""
        return self.chat(conversation, **settings)

    def chats(self) -> Sequence[Listed]:
        """Every conversation, the last changed first."""
        return [listed for listed in self._desk.store.list_conversations() if listed.erased is None]

    def erase(self, conversation: str) -> None:
        """Remove a conversation's content and all that was derived from it, for good."""
        self._keeper.erase(conversation)

    def close(self) -> None:
        self._desk.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._office.close()
        finally:
            self.close()


def open_engine(
    url: str,
    *,
    vault: str | PathLike[str] | None = None,
    ledger: bool = True,
    summarizer: Summarizer | None = None,
    model: str | None = None,
    provider: ChatProvider | None = None,
    patience: float | None = None,
    tries: int | None = None,
) -> Engine:
    """Open a store of conversations: ``sqlite:///chats.db`` or ``postgresql://host/name``.

    ``model`` is what conversations are sent to, ``provider`` what sends, in place of the one that the model names.
    ``patience`` is how many seconds of silence are borne, and the longest wait that a provider may ask for (120);
    ``tries`` is how often a request is sent before giving up (4).
    """
    return Engine(
        url,
        vault=vault,
        ledger=ledger,
        summarizer=summarizer,
        model=model,
        provider=provider,
        patience=patience,
        tries=tries,
    )
