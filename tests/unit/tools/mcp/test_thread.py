"""A thread with its own event loop: started by work, ended on request."""

import asyncio
import threading

from lamella.tools.mcp import EventLoopThread


async def name_thread() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_work_runs_in_thread_that_ends() -> None:
    thread = EventLoopThread("elsewhere")
    assert not thread.is_running
    assert thread.start(name_thread()).result(10) == "elsewhere"
    assert thread.is_running
    thread.close()
    thread.close()
    assert "elsewhere" not in {one.name for one in threading.enumerate()}
    assert thread.start(name_thread()).result(10) == "elsewhere"
    thread.close()
