"""Warmup: a model in this process reads what is attached while the question is still being typed.

And what a provider's cache holds is kept there meanwhile, where settings say so.
"""

import asyncio
from asyncio import Runner, Task
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from lamella import Message
from lamella.engine.dialogue.ask import Ask
from lamella.engine.sending.keep_alive import keep_alive
from lamella.errors import LamellaError
from lamella.faces.cli.chat.opening import OpenChat


class Warmup:
    """At most one prompt is read ahead. What cannot be is read when it is asked: nothing here is an error.

    Nor is a cache that cannot be kept: it lapses, and that is told.
    """

    def __init__(self, opened: OpenChat, runner: Runner) -> None:
        self._opened = opened
        self._runner = runner
        self._task: Task[None] | None = None
        self._keeping: Task[None] | None = None
        self._warm: Callable[[Sequence[Message]], Coroutine[Any, Any, None]] | None = getattr(
            opened.find_post().provider, "warm", None
        )

    @property
    def is_on(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, asked: Ask) -> None:
        """Read in what asking this would send, before there is a question."""
        if self._warm is None:
            return
        self.end()
        with suppress(LamellaError):
            messages = self._opened.stored.preview(asked).messages
            self._task = self._runner.get_loop().create_task(_quietly(self._warm(messages)))

    def keep(self) -> None:
        """Have the cache kept while nothing is sent."""
        opened = self._opened
        if not opened.stored.keep_alives or (self._keeping is not None and not self._keeping.done()):
            return
        keeping = keep_alive(opened.stored, lambda model: opened.pool.post(model, answer=1))
        self._keeping = self._runner.get_loop().create_task(_quietly(keeping))

    def stop_keeping(self) -> None:
        """Something is about to be sent."""
        task, self._keeping = self._keeping, None
        self._cancel(task)

    def end(self) -> None:
        """Leave it; what was read stays read."""
        task, self._task = self._task, None
        self._cancel(task)

    def _cancel(self, task: Task[None] | None) -> None:
        if task is not None and not task.done():
            task.cancel()
            self._runner.run(_finish(task))


async def _quietly(warming: Coroutine[Any, Any, object]) -> None:
    with suppress(LamellaError):
        await warming


async def _finish(task: Task[None]) -> None:
    await asyncio.wait([task])
