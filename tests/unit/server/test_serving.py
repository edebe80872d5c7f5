"""A process that serves: what it has from the start is not looked through for garbage."""

import gc
import logging
from collections.abc import Iterator

import pytest

from lamella.server.serving import ServerOptions, make_worker_app

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
def test_what_a_worker_has_at_its_start_is_never_looked_through_for_garbage() -> None:
    app = make_worker_app(ServerOptions(store="memory:", model="scripted:none"))
    assert gc.get_freeze_count() > 0
    assert not any(one is app for one in gc.get_objects())
