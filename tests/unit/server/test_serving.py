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

from lamella.errors import UsageError
from lamella.server.serving import (
    ServerOptions,
    WorkerSupervisor,
    _get_host_for_browser,
    bind_socket,
    build_uvicorn_config,
    make_worker_app,
    run_server,
    set_up_logging,
)
from lamella.settings.model import HttpServerSettings

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


@pytest.mark.usefixtures("as_before")
def test_log_lines_have_no_prefix_and_those_of_libraries_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging()
    logging.getLogger("lamella.requests").info('{"at": "request"}')
    logging.getLogger("lamella.answers").debug("not shown")
    logging.getLogger("uvicorn").warning("%s is slow", "it")
    logging.getLogger("uvicorn").info("not shown")
    assert capsys.readouterr().err.splitlines() == ['{"at": "request"}', '{"at": "server", "said": "it is slow"}']


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "localhost"),
        ("::", "localhost"),
        ("[::]", "localhost"),
        ("::1", "[::1]"),
        ("[::1]", "[::1]"),
        ("my-host", "my-host"),
    ],
)
def test_browser_gets_a_host_that_it_can_reach(host: str, shown: str) -> None:
    assert _get_host_for_browser(host) == shown


def test_limits_of_the_settings_are_those_of_the_connections() -> None:
    rules = HttpServerSettings(stop_seconds=0.2)
    config = build_uvicorn_config(answer_nothing, rules)
    assert (config.factory, config.workers, config.timeout_graceful_shutdown) == (False, 1, 1)
    assert (config.access_log, config.server_header, config.proxy_headers) == (False, False, False)
    several = build_uvicorn_config(make_idle_app, HttpServerSettings(stop_seconds=12.4), workers=3)
    assert (several.factory, several.workers, several.timeout_graceful_shutdown) == (True, 3, 12)


def test_address_in_use_is_an_error_that_names_it() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        listener.listen()
        with pytest.raises(UsageError, match=f"127.0.0.1:{port} cannot be listened at: Address already in use") as used:
            bind_socket("127.0.0.1", port)
    assert used.value.hint == "Choose another with --host or --port."
    with pytest.raises(UsageError, match="cannot be listened at"):
        bind_socket("no such\0host", 0)


def test_server_that_others_can_reach_needs_a_token() -> None:
    with pytest.raises(UsageError, match=r"Others can reach 0\.0\.0\.0, and no token was given out") as refused:
        run_server(ServerOptions(store="memory:", host="0.0.0.0", port=0))
    assert refused.value.hint == "Give one out first: lamella tokens add NAME --scope chat"


def test_several_workers_need_a_store_that_they_can_share() -> None:
    with pytest.raises(UsageError, match="3 workers need a store that processes share well") as refused:
        run_server(ServerOptions(store="sqlite:///chats.db", port=0), workers=3)
    assert refused.value.hint == "Name one with --store postgresql://…, or serve with one worker."
