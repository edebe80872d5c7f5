"""Worker processes: what they have from the start is no garbage, and they are replaced only when they end."""

import gc
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from tests.waiting import wait_until
from uvicorn.supervisors.multiprocess import SIGNALS

from lamella.server.serving import ServerOptions, WorkerSupervisor, bind_socket, make_worker_app

LOGGERS = ("lamella.requests", "lamella.answers", "lamella.server", "uvicorn")


@pytest.fixture
def as_before() -> Iterator[None]:
    """A process of tests has loggers of its own, and its own garbage."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    kept = [(one, one.handlers[:], one.level, one.propagate) for one in loggers]
    yield
    gc.unfreeze()
    for logger, handlers, level, propagate in kept:
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.usefixtures("as_before")
def test_worker_startup_objects_are_excluded_from_garbage_collection() -> None:
    app = make_worker_app(ServerOptions(store="memory:", model="scripted:none"))
    assert gc.get_freeze_count() > 0
    assert not any(one is app for one in gc.get_objects())


async def answer_nothing(_scope: object, _receive: object, _send: object) -> None:
    """An application that is enough for a worker to start."""


def make_idle_app() -> object:
    return answer_nothing


def fail_to_start() -> object:
    raise ValueError("the store is not there")


@contextmanager
def supervise(factory: str) -> Iterator[WorkerSupervisor]:
    """A supervisor with two workers whose health check has no time at all, as on a machine that is too busy."""
    config = uvicorn.Config(
        f"{__name__}:{factory}", factory=True, workers=2, lifespan="off", log_config=None, timeout_worker_healthcheck=0
    )
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    with bind_socket("127.0.0.1", 0) as listener:
        supervisor = WorkerSupervisor(config, [listener])
        try:
            yield supervisor
        finally:
            for worker in supervisor.processes:
                worker.kill()
                worker.join()
            for number, handler in handlers.items():
                signal.signal(number, handler)


def test_worker_that_is_slow_to_start_is_not_killed() -> None:
    with supervise("make_idle_app") as supervisor:
        supervisor.init_processes()
        started = [worker.pid for worker in supervisor.processes]
        for _ in range(3):
            supervisor.keep_subprocess_alive()
        assert [worker.pid for worker in supervisor.processes] == started
        assert all(worker.process.is_alive() for worker in supervisor.processes)


def test_worker_that_ends_is_replaced() -> None:
    with supervise("make_idle_app") as supervisor:
        supervisor.init_processes()
        killed, kept = supervisor.processes
        os.kill(killed.pid or 0, signal.SIGKILL)
        wait_until(lambda: not killed.process.is_alive(), "the worker ends")
        supervisor.keep_subprocess_alive()
        assert supervisor.processes[0] is not killed
        assert supervisor.processes[1] is kept
        assert not supervisor.should_exit.is_set()


def test_server_stops_if_a_worker_fails_before_any_has_served() -> None:
    with supervise("fail_to_start") as supervisor:
        supervisor.run()
        assert supervisor.has_failed
