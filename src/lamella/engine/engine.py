"""The engine: conversations that last, behind one object."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from lamella.core.log.records import Listed
from lamella.engine.chat import Chat
from lamella.engine.checks import check_text
from lamella.engine.keeping import Keeper
from lamella.engine.office import PostOffice
from lamella.engine.stored import Desk


class Engine:
    """A store of conversations. Use it in a ``with`` block, or close it."""

    def __init__(self, desk: Desk, office: PostOffice, *, model: str | None = None) -> None:
        self._desk = desk
        self._office = office
        self._settings = {} if model is None else {"model": model}
        self._office.name(model)
        self._keeper = Keeper(desk.store, desk.clock)

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
