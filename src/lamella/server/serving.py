"""Starting the server: from options to a server that runs until it is stopped."""

import gc
import json
import logging
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import uvicorn
from fastapi import FastAPI
from msgspec import Struct
from msgspec.structs import replace
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from lamella.clocks import SystemClock
from lamella.conversation.runs import RunRegistry
from lamella.errors import UsageError
from lamella.ports import ModelProvider
from lamella.server.app import make_app
from lamella.server.live import ChangeHub
from lamella.server.observability import set_up_tracing
from lamella.server.security import TimeLimitedConfig
from lamella.server.sessions import SessionSigner, make_session_key
from lamella.server.state import ServerState
from lamella.wiring import (
    AccessTokenFile,
    HttpServerSettings,
    ServiceContainer,
    list_allowed_hosts,
    needs_token,
    open_engine_pool,
    open_token_file,
    read_services,
    server_settings,
)

LOGGER = logging.getLogger("lamella.server")
_LOGGER_NAMES = ("lamella.requests", "lamella.answers", "lamella.server")
# Limits for the headers of a request, for connections that wait to be accepted, and for idle ones in seconds.
_MAX_HEADER_BYTES, _SOCKET_BACKLOG, _KEEP_ALIVE_SECONDS = 65_536, 2_048, 30
# After SIGHUP, the longest wait for a new worker before the old one is kept. A worker that fails ends the wait at once.
_WORKER_RESTART_SECONDS = 600
# How long to wait for the first conversation before the page is opened without it; workers take a while to start.
_PAGE_SECONDS = 60


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Options from the command line; None means the value from the settings."""

    vault: Path | None = None
    store: str | None = None
    model: str | None = None
    host: str | None = None
    port: int | None = None
    # The key that signs the cookies of sessions; workers of one server share it. Without one, it is drawn at the start.
    session_key: bytes = b""


def open_server_state(
    options: ServerOptions, *, services: ServiceContainer | None = None, provider: ModelProvider | None = None
) -> ServerState:
    """Open everything that a server needs."""
    services = services or read_services()
    rules = server_settings(services, host=options.host, port=options.port)
    if rules.traces:
        set_up_tracing(rules.traces)
    suite = open_engine_pool(
        options.store, vault=options.vault, model=options.model, services=services, provider=provider
    )
    runs = RunRegistry(
        suite.reservations,
        clock=SystemClock(),
        workers=suite.pool.workers,
        grace_seconds=rules.grace,
        max_runs=rules.runs,
        shared_table=suite.backend.store.shared_table,
    )
    suite.find_permission_function = runs.find_permission_function
    hub = ChangeHub(suite.backend.store, suite.pool.workers)
    suite.on_index_progress = hub.report_indexing
    return ServerState(
        engine_pool=suite,
        settings=rules,
        tokens=open_token_file(services),
        runs=runs,
        needs_token=needs_token(rules),
        hosts=tuple(list_allowed_hosts(rules)),
        hub=hub,
        sessions=SessionSigner(options.session_key),
    )


def make_worker_app(
    options: ServerOptions, *, services: ServiceContainer | None = None, provider: ModelProvider | None = None
) -> FastAPI:
    """Return the application of a process that only serves requests; it changes logging and garbage collection."""
    set_up_logging()
    app = make_app(open_server_state(options, services=services, provider=provider))
    # Objects that exist at the start live until the end. Scanning them in every garbage collection blocked all streams
    # for up to 240 ms (200 conversations, 2026-11-18).
    gc.collect()
    gc.freeze()
    return app


def set_up_logging() -> None:
    """Write the server's log lines to stderr without a prefix."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    plain = logging.StreamHandler(sys.stderr)
    plain.setFormatter(_JsonLineFormatter())
    for name, level in (*((name, logging.INFO) for name in _LOGGER_NAMES), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [plain if name == "uvicorn" else handler]
        logger.setLevel(level)
        logger.propagate = False


class _JsonLineFormatter(logging.Formatter):
    """Formats log messages of other libraries as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({"at": "server", "said": super().format(record)})


def run_server(options: ServerOptions, *, workers: int = 1, opens_page: bool = False) -> None:
    """Serve requests until the process is stopped; running answers are finished or stored first.

    With ``opens_page``, the browser opens the page.

    Raises ``UsageError`` if other machines can reach the server and no token exists, and for several workers over a
    store that is not PostgreSQL.
    """
    services = read_services()
    rules = server_settings(services, host=options.host, port=options.port)
    check_tokens_exist(rules, open_token_file(services))
    store = options.store or services.settings.store
    if workers > 1 and not store.startswith("postgres"):
        raise UsageError(
            f"{workers} workers need a store that processes share well.",
            hint="Name one with --store postgresql://…, or serve with one worker.",
        )
    options = replace(options, session_key=make_session_key())
    listener = bind_socket(rules.host, rules.port)
    set_up_logging()
    with listener:
        address = get_local_address(rules.host, listener)
        LOGGER.info("%s", json.dumps({"at": "start", "address": address, "workers": workers}))
        if opens_page:
            # The browser may ask before the server is ready: its connection waits until then.
            listener.listen(_SOCKET_BACKLOG)
            Thread(target=open_welcome_page, args=(address,), name="browser", daemon=True).start()
        if workers == 1:
            # Opened here and not by uvicorn, so that an error in a store or a vault is printed like any other.
            uvicorn.Server(build_uvicorn_config(make_worker_app(options, services=services), rules)).run([listener])
            return
        config = build_uvicorn_config(partial(make_worker_app, options), rules, workers=workers)
        supervisor = WorkerSupervisor(config, [listener])
        supervisor.run()
        if supervisor.has_failed:
            sys.exit(STARTUP_FAILURE)


def open_welcome_page(address: str) -> None:
    """Open the page in the user's browser at the welcome conversation.

    Where a login is needed, the page begins there. The address is logged, and a terminal shows it as plain text if there
    is no browser on this machine.
    """
    page = f"{address}/"
    request = Request(f"{address}/v1/conversations/welcome", method="POST")
    with suppress(OSError, ValueError), urlopen(request, timeout=_PAGE_SECONDS) as answer:
        page += f"#/c/{json.load(answer)['conversation']}"
    opened = webbrowser.open(page)
    LOGGER.info("%s", json.dumps({"at": "page", "address": page, "opened": opened}))
    if not opened and sys.stdout is not None and sys.stdout.isatty():
        sys.stdout.write(f"Open this address: {page}\n")
        sys.stdout.flush()


def get_local_address(host: str, listener: socket.socket) -> str:
    """Return the address at which programs on this machine reach a server."""
    return f"http://{_get_host_for_browser(host)}:{listener.getsockname()[1]}"


def _get_host_for_browser(host: str) -> str:
    """Return a host name with which a browser on this machine reaches the server."""
    if host in ("0.0.0.0", "::", "[::]"):
        return "localhost"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def check_tokens_exist(settings: HttpServerSettings, tokens: AccessTokenFile) -> None:
    """Raise ``UsageError`` if other machines can reach the server and no token exists."""
    if needs_token(settings) and not tokens.read():
        raise UsageError(
            f"Others can reach {settings.host}, and no token was given out: nobody could come in.",
            hint="Give one out first: lamella tokens add NAME --scope chat",
        )


class WorkerSupervisor(Multiprocess):
    """Runs several worker processes and replaces those that end.

    A worker that is slow to answer is never killed. Uvicorn's health check kills workers that are still importing on a
    busy machine, and then their successors, so that the server never starts.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._has_served = False
        # Whether the server stopped because a worker failed before any worker served.
        self.has_failed = False

    def keep_subprocess_alive(self) -> None:
        """Replace each worker process that has ended; stop the server if one failed and none has served yet.

        This overrides uvicorn's method, which uvicorn calls again and again while the server runs.
        """
        for index, worker in enumerate(self.processes):
            if worker.process.is_alive():
                self._has_served = self._has_served or worker.is_ready(timeout=0)
                continue
            worker.kill()
            worker.join()
            code = worker.exitcode or 0
            LOGGER.warning("%s", json.dumps({"at": "worker", "process": worker.pid, "exit": code}))
            if code > 0 and not self._has_served:
                self.has_failed = True
                self.should_exit.set()
                return
            self.processes[index] = Process(self.config, self.sockets)
            self.processes[index].start()


def build_uvicorn_config(
    app: Callable[..., object], settings: HttpServerSettings, *, workers: int = 1
) -> uvicorn.Config:
    """Return uvicorn's configuration for an application, or for a factory of one in each of several processes."""
    return TimeLimitedConfig(
        app,
        head_seconds=settings.body_seconds,
        unread_seconds=settings.unread_seconds,
        factory=workers > 1,
        workers=workers,
        timeout_worker_healthcheck=_WORKER_RESTART_SECONDS,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_SOCKET_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        # Open streams would delay the shutdown forever. After this time they are cut, and their text so far is stored.
        timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
    )


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 chooses a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    # An impossible host name raises ValueError, or TypeError if it contains a null character.
    except (OSError, ValueError, TypeError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{host}:{port} cannot be listened at: {why}.", hint="Choose another with --host or --port."
        ) from error
    listener.set_inheritable(True)
    return listener
