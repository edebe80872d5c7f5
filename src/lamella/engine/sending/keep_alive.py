"""Keeping a cache while nobody asks: the last request is sent again just before it lapses, as long as that pays.

Each is a call of the conversation, written down with what it cost. Who asks something ends it by cancelling it.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol

from lamella.core.messages.request import Request
from lamella.engine.cold import KeepAlive
from lamella.engine.dialogue.answer import Answer
from lamella.engine.sending.asides import call_aside
from lamella.engine.sending.delivery import Delivery


class RepeatingChat(Protocol):
    """A conversation whose last request can be sent again, and that knows whether it should be."""

    is_kept_alive: bool

    @property
    def head(self) -> str: ...

    @property
    def keep_alives(self) -> int: ...

    def reload(self) -> None: ...

    def find_keep_alive(self, *, at: datetime | None = None) -> KeepAlive | None: ...

    def repeat_last(self) -> Request | None: ...

    def note_keep_alive(self, request: Request, given: Answer, *, after: str, at: datetime) -> None: ...


async def keep_alive(chat: RepeatingChat, find_post: Callable[[str], Delivery], *, once: bool = False) -> int:
    """Send the last request again each time it is due, as often as settings say; how often it was.

    It ends early where the next would not pay, where the cache lapsed before it could be sent, and once something was
    asked. ``find_post`` gives what sends to a model. ``once`` waits for nothing: whatever settings say, it is
    sent if that is due by now. While it is done already nothing is.
    """
    if chat.is_kept_alive:
        return 0
    chat.is_kept_alive = True
    try:
        return await (_keep_once(chat, find_post) if once else _keep(chat, find_post))
    finally:
        chat.is_kept_alive = False


async def _keep(chat: RepeatingChat, find_post: Callable[[str], Delivery]) -> int:
    head, made = chat.head, 0
    while made < chat.keep_alives:
        request = chat.repeat_last()
        if request is None or chat.head != head:
            break
        post = find_post(request.model)
        due = await post.workers.run(partial(chat.find_keep_alive, at=post.clock.now()))
        if due is None:
            break
        await post.sleep(max(0.0, (due.due_at - post.clock.now()).total_seconds()))
        # Whoever slept may have slept through it: a machine that was closed, for one.
        if await post.workers.run(partial(_find_due, chat, post, head)) is None:
            break
        await _send(chat, request, post, head=head)
        made += 1
    return made


async def _keep_once(chat: RepeatingChat, find_post: Callable[[str], Delivery]) -> int:
    """Send the last request again if that is due by now and pays, whatever settings say; how often it was."""
    request = chat.repeat_last()
    if request is None:
        return 0
    post, head = find_post(request.model), chat.head
    due = await post.workers.run(partial(_find_due, chat, post, head))
    if due is None or due.due_at > post.clock.now():
        return 0
    await _send(chat, request, post, head=head)
    return 1


def _find_due(chat: RepeatingChat, post: Delivery, head: str) -> KeepAlive | None:
    """When the next is due, if nothing was said since; others who have the conversation open may have kept it, too."""
    if chat.head != head:
        # Under a turn that is on its way nothing is read anew.
        return None
    chat.reload()
    return chat.find_keep_alive(at=post.clock.now()) if chat.head == head else None


async def _send(chat: RepeatingChat, request: Request, post: Delivery, *, head: str) -> None:
    # A cache counts from when a request was sent, not from when it was answered.
    started = post.clock.now()

    async def note(given: Answer) -> None:
        def write() -> None:
            if post.answered is not None:
                post.answered()
            chat.note_keep_alive(request, given, after=head, at=started)

        await post.workers.finish(write)

    await call_aside(request, post, note=note)
