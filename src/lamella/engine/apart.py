"""Apart: work in a thread that neither a cancelled task nor the end of the program waits for."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")


async def run_apart(work: Callable[[], _Result], *, name: str) -> _Result:
    """What work gives that waits for something: it holds up nobody else, also if it never ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()
    context = copy_context()

    def run() -> None:
        try:
            tell = partial(_settle, done, context.run(_finish, work))
        except BaseException as error:  # noqa: BLE001 - whoever waits is told, whatever it was
            tell = partial(_fail, done, error)
        # Nobody waits any more where the loop is over.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell)

    Thread(target=run, name=name, daemon=True).start()
    return await done


def _finish(work: Callable[[], _Result]) -> _Result:
    try:
        return work()
    except (StopIteration, KeyboardInterrupt, GeneratorExit) as error:
        # No future can carry the first, and a loop would take the others for its own end: keys are never heard here.
        raise RuntimeError(type(error).__name__) from error


def _settle(done: "asyncio.Future[_Result]", result: _Result) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[_Result]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
