"""Live updates: changes of conversations and progress of the index, sent to every page that is open.

``ChangeHub`` polls the store while somebody listens, so changes by other processes arrive as well, and at once after a
write of this process. Each listener gets the changes of its owner.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from time import perf_counter
from typing import NamedTuple

from lamella.conversation.changes import ChangeFeed, ChangeKind, ConversationChange
from lamella.conversation.threads import Workers
from lamella.errors import ServerUnavailableError
from lamella.ports import ConversationListItem, Store

POLL_SECONDS = 1.0
# Polling a very long list takes at most this share of the time.
_MAX_POLLING_SHARE = 0.05
_MAX_LISTENERS = 1_000
# A client that reads slower than this loses single changes, and is told to read everything again.
_MAX_WAITING_CHANGES = 500

# An index that takes longer than this is reported, and then so often, in seconds.
_REPORT_AFTER_SECONDS, _REPORT_EVERY_SECONDS = 0.3, 0.25


class IndexProgress(NamedTuple):
    """How many notes are indexed for the search, of how many that have to be read."""

    done: int
    total: int


# None means that everything may have changed.
LiveChange = ConversationChange | IndexProgress | None
FindOwn = Callable[[ConversationListItem], ConversationListItem | None]


class _Listener:
    """One open page: the changes that wait to be sent to it."""

    def __init__(self, find_own: FindOwn) -> None:
        self._find_own = find_own
        self.changes: asyncio.Queue[LiveChange] = asyncio.Queue()

    def add(self, change: ConversationChange) -> None:
        """Add a change if it is of a conversation of this listener."""
        own = self._find_own(change.conversation)
        if own is None:
            return
        if self.changes.qsize() >= _MAX_WAITING_CHANGES:
            while not self.changes.empty():
                self.changes.get_nowait()
            self.changes.put_nowait(None)
            return
        self.changes.put_nowait(
            ConversationChange(
                kind=change.kind, conversation=own, message_id=change.message_id, reply_id=change.reply_id
            )
        )


class ChangeHub:
    """Sends the changes of a store to all listeners of this process."""

    def __init__(self, store: Store, workers: Workers) -> None:
        self._store = store
        self._workers = workers
        self._listeners: set[_Listener] = set()
        self._wake = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._index_begun, self._index_reported = 0.0, 0.0

    def report_indexing(self, done: int, total: int) -> None:
        """Report how far an index is, if it takes a while; called in a worker thread for each file."""
        now = perf_counter()
        if done <= 1:
            self._index_begun, self._index_reported = now, 0.0
        is_due = now - self._index_begun > _REPORT_AFTER_SECONDS and now - self._index_reported > _REPORT_EVERY_SECONDS
        loop = self._loop
        if loop is None or loop.is_closed() or not (is_due or (done >= total and self._index_reported)):
            return
        self._index_reported = now
        loop.call_soon_threadsafe(self._send_progress, IndexProgress(done, total))

    def _send_progress(self, progress: IndexProgress) -> None:
        for listener in self._listeners:
            # A page that reads slowly does without: only the last number counts.
            if listener.changes.empty():
                listener.changes.put_nowait(progress)

    def poll_now(self) -> None:
        """Look for changes now; this process has just written some."""
        self._wake.set()

    def publish(self, conversation: ConversationListItem | None) -> None:
        """Report a change that the list of conversations does not show, to the listeners of this process."""
        if conversation is not None:
            for listener in self._listeners:
                listener.add(ConversationChange(kind=ChangeKind.CHANGED, conversation=conversation))

    def close(self) -> None:
        """End all listening, because the server stops."""
        self._closed = True
        self._wake.set()
        for listener in self._listeners:
            listener.changes.put_nowait(None)

    async def listen(self, find_own: FindOwn) -> AsyncGenerator[LiveChange, None]:
        """Yield changes as they happen; None means that everything may have changed, as at the start.

        ``find_own`` returns a conversation as the listener sees it, or None if it may not see it.
        """
        if len(self._listeners) >= _MAX_LISTENERS:
            raise ServerUnavailableError("Too many pages listen for changes.", hint="Close some, or try again later.")
        listener = _Listener(find_own)
        self._listeners.add(listener)
        self._loop = asyncio.get_running_loop()
        if self._task is None:
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._poll_until_nobody_listens(started))
            await started
        try:
            yield None
            while not self._closed:
                change = await listener.changes.get()
                if not self._closed:
                    yield change
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _poll_until_nobody_listens(self, started: asyncio.Future[None]) -> None:
        feed = ChangeFeed(self._store)
        while True:
            self._wake.clear()
            begun = perf_counter()
            try:
                changes = await self._workers.run(feed.poll)
            except Exception as error:  # noqa: BLE001 - the store may be unavailable for a while
                if not started.done():
                    started.set_exception(error)
                    return
                changes = []
            if not started.done():
                started.set_result(None)
            for change in changes:
                for listener in self._listeners:
                    listener.add(change)
            pause = max(POLL_SECONDS, (perf_counter() - begun) / _MAX_POLLING_SHARE)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass
