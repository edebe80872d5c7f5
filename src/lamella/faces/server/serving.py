"""Serving: from options to a server that runs until it is stopped."""

import gc
import json
import logging
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from msgspec import Struct

from lamella.adapters.clocks.system import SystemClock
from lamella.engine.runs.book import RunBook
from lamella.errors import UsageError
from lamella.faces.server.app import make_app
from lamella.faces.server.guard.connections import BoundConfig
from lamella.faces.server.state import ServerState
from lamella.faces.server.watching.traces import send_traces
from lamella.ports import ChatProvider
from lamella.wiring import (
    ServeSettings,
    Services,
    find_serve_rules,
    list_hosts,
    needs_token,
    open_engines,
    open_tokens,
    read_services,
)

LOGGER = logging.getLogger("lamella.server")
_LOGGERS = ("lamella.requests", "lamella.answers", "lamella.server")
# A client that sends no end of headers, and how many connections wait to be looked at.
_HEADER_BYTES, _BACKLOG, _KEEP_ALIVE = 65_536, 2_048, 30


class ServeOptions(Struct, frozen=True, kw_only=True):
    """What was asked for on the command line; what is not said is as settings say."""

    vault: Path | None = None
    store: str | None = None
    model: str | None = None
    host: str | None = None
    port: int | None = None


def open_state(
    options: ServeOptions, *, services: Services | None = None, provider: ChatProvider | None = None
) -> ServerState:
    """Everything a server works with, opened."""
    services = services or read_services()
    rules = find_serve_rules(services, host=options.host, port=options.port)
    if rules.traces:
        send_traces(rules.traces)
    suite = open_engines(options.store, vault=options.vault, model=options.model, services=services, provider=provider)
    runs = RunBook(
        suite.reservations,
        clock=SystemClock(),
        workers=suite.pool.workers,
        grace=rules.grace,
        most=rules.runs,
        shelf=suite.backend.store.shelf,
    )
    return ServerState(
        suite=suite,
        rules=rules,
        tokens=open_tokens(services),
        runs=runs,
        needs_token=needs_token(rules),
        hosts=tuple(list_hosts(rules)),
    )


def make_worker_app(
    options: ServeOptions, *, services: Services | None = None, provider: ChatProvider | None = None
) -> FastAPI:
    """The application of a process that does nothing else."""
    set_up_logging()
    app = make_app(open_state(options, services=services, provider=provider))
    # What is there at the start stays until the end. Looked through for garbage with the rest, again and again, it held
    # up every stream for up to 240 ms (200 chats, 2026-11-18).
    gc.collect()
    gc.freeze()
    return app


def set_up_logging() -> None:
    """Lines of the log go to stderr, each as it is."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    plain = logging.StreamHandler(sys.stderr)
    plain.setFormatter(_PlainLine())
    for name, level in (*((name, logging.INFO) for name in _LOGGERS), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [plain if name == "uvicorn" else handler]
        logger.setLevel(level)
        logger.propagate = False


class _PlainLine(logging.Formatter):
    """What others say of a server in words, on one line as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({"at": "server", "said": super().format(record)})


def run_server(options: ServeOptions, *, workers: int = 1) -> None:
    """Serve until somebody stops it; streams end or are kept before it does."""
    services = read_services()
    rules = find_serve_rules(services, host=options.host, port=options.port)
    tokens = open_tokens(services)
    if needs_token(rules) and not tokens.read():
        raise UsageError(
            f"Others can reach {rules.host}, and no token was given out: nobody could come in.",
            hint="Give one out first: lamella tokens add NAME --scope chat",
        )
    store = options.store or services.settings.store
    if workers > 1 and not store.startswith("postgres"):
        raise UsageError(
            f"{workers} workers need a store that processes share well.",
            hint="Name one with --store postgresql://…, or serve with one worker.",
        )
    listener = bind(rules.host, rules.port)
    set_up_logging()
    with listener:
        address = f"http://{rules.host}:{listener.getsockname()[1]}"
        LOGGER.info("%s", json.dumps({"at": "start", "address": address, "workers": workers}))
        if workers == 1:
            # Opened here, so that what is wrong with a store or a vault is told as it is everywhere.
            uvicorn.Server(configure(make_worker_app(options, services=services), rules)).run([listener])
            return
        from uvicorn.supervisors import Multiprocess

        config = configure(partial(make_worker_app, options), rules, workers=workers)
        Multiprocess(config, sockets=[listener]).run()


def configure(app: Callable[..., object], rules: ServeSettings, *, workers: int = 1) -> uvicorn.Config:
    """How uvicorn runs an application, or what makes one in each of several processes."""
    return BoundConfig(
        app,
        head_seconds=rules.body_seconds,
        unread_seconds=rules.unread_seconds,
        factory=workers > 1,
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        # Streams would keep it from ever ending: those that are not over by then are cut, and what was said is kept.
        timeout_graceful_shutdown=max(1, round(rules.stop_seconds)),
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    # A name that no name of a machine can be is a fault of its letters, or of its type where it holds a null.
    except (OSError, ValueError, TypeError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{host}:{port} cannot be listened at: {why}.", hint="Choose another with --host or --port."
        ) from error
    listener.set_inheritable(True)
    return listener
