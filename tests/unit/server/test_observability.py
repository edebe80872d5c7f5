"""Log handlers and metrics of one server process."""

import logging
from collections.abc import Iterator

import pytest

from lamella.server.observability import ServerMetrics, TurnMetricsHandler

LOGGERS = (logging.getLogger("lamella.turns"), logging.getLogger("lamella.calls"))


@pytest.fixture(autouse=True)
def quiet_loggers() -> Iterator[None]:
    before = [logger.level for logger in LOGGERS]
    for logger in LOGGERS:
        logger.setLevel(logging.WARNING)
    yield
    for logger, level in zip(LOGGERS, before, strict=True):
        logger.setLevel(level)


def levels() -> list[int]:
    return [logger.level for logger in LOGGERS]


def test_stopped_handler_restores_logger_levels() -> None:
    handler = TurnMetricsHandler(ServerMetrics())
    handler.start()
    assert levels() == [logging.INFO] * 2
    handler.stop()
    assert levels() == [logging.WARNING] * 2
    assert all(handler not in logger.handlers for logger in LOGGERS)


def test_second_handler_keeps_info_level_after_the_first_stopped() -> None:
    first, second = TurnMetricsHandler(ServerMetrics()), TurnMetricsHandler(ServerMetrics())
    first.start()
    second.start()
    first.stop()
    assert levels() == [logging.INFO] * 2
    second.stop()
    assert levels() == [logging.WARNING] * 2
