"""Turns: the line of the program's log for each turn, counted as it passes."""

import logging

from lamella.faces.server.watching.meters import ServerMeters

_TURNS = logging.getLogger("lamella.turns")


class TurnWatch(logging.Handler):
    """Takes the figures of turns out of their lines; what is written where is left to others."""

    def __init__(self, meters: ServerMeters) -> None:
        super().__init__(logging.INFO)
        self._meters = meters

    def emit(self, record: logging.LogRecord) -> None:
        turn = getattr(record, "turn", None)
        if isinstance(turn, dict):
            self._meters.note_turn(turn)

    def begin(self) -> None:
        """Listen from now on."""
        _TURNS.addHandler(self)
        if _TURNS.getEffectiveLevel() > logging.INFO:
            _TURNS.setLevel(logging.INFO)

    def end(self) -> None:
        _TURNS.removeHandler(self)
