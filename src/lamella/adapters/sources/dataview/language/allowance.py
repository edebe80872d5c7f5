"""Allowance: how much work a query may make, counted in steps and not in seconds, so that it ends alike everywhere."""

# A query over 10,000 notes with twenty words in its condition takes a third of it, and all of it some seconds.
MOST_STEPS = 1_000_000
LETTERS_OF_A_STEP = 64


class QueryRefusal(Exception):  # noqa: N818 - it is an answer: the query stays as the text it is
    """Why a query is left as text."""


class Allowance:
    """Steps that are left to a query."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self._all = self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps off; a refusal where there are none left."""
        self._left -= steps
        if self._left < 0:
            raise QueryRefusal(f"it takes more than {self._all:,} steps")

    def read(self, letters: int) -> None:
        """Take off what looking at so many letters is worth."""
        self.spend(1 + letters // LETTERS_OF_A_STEP)
