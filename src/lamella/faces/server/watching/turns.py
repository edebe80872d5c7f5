"""Turns: the lines of the program's log for turns, and for calls on the way to them, counted as they pass."""

import logging

from lamella.faces.server.watching.meters import ServerMeters

_LOGGERS = (logging.getLogger("lamella.turns"), logging.getLogger("lamella.calls"))


class TurnWatch(logging.Handler):
    """Takes figures out of these lines; what is written where is left to others."""

    def __init__(self, meters: ServerMeters) -> None:
        super().__init__(logging.INFO)
        self._meters = meters

    def emit(self, record: logging.LogRecord) -> None:
        turn = getattr(record, "turn", None)
        if isinstance(turn, dict):
            self._meters.note_turn(turn)
        call = getattr(record, "call", None)
        if isinstance(call, dict):
            self._meters.note_call(call)

    def begin(self) -> None:
        """Listen from now on."""
        for logger in _LOGGERS:
            logger.addHandler(self)
            if logger.getEffectiveLevel() > logging.INFO:
                logger.setLevel(logging.INFO)

    def end(self) -> None:
        for logger in _LOGGERS:
            logger.removeHandler(self)
