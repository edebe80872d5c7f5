"""A measure beside its bound, printed and remembered."""


class Verdicts:
    """Collects what was measured; ``good`` stays true while every bound holds."""

    def __init__(self) -> None:
        self.good = True
        self.measured: dict[str, float] = {}

    def at_most(self, what: str, value: float, bound: float) -> None:
        """Note a measure that may not exceed its bound."""
        self._note(what, value, holds=value <= bound, bound=f"at most {bound:.2f}")

    def at_least(self, what: str, value: float, bound: float) -> None:
        """Note a measure that may not fall below its bound."""
        self._note(what, value, holds=value >= bound, bound=f"at least {bound:.2f}")

    def _note(self, what: str, value: float, *, holds: bool, bound: str) -> None:
        self.good &= holds
        self.measured[what] = value
        print(f"  {what}: {value:.2f} ({bound}) {'ok' if holds else 'BROKEN'}", flush=True)
