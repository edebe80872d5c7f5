"""Usage: what a provider says a request weighed, in one form for all. Unknown is none, which is not zero."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens by price class. ``plain`` is input that was neither read from a cache nor written to one.

    ``write`` went into the cache with the shorter lifetime, ``write_long`` with the longer one. ``reasoning`` is part
    of ``output``. Where the numbers of a provider contradict each other all are unknown, and ``fault`` says why.
    """

    plain: int | None = None
    read: int | None = None
    write: int | None = None
    write_long: int | None = None
    output: int | None = None
    reasoning: int | None = None
    fault: str | None = None

    @property
    def prompt(self) -> int | None:
        """All input tokens, however they were billed."""
        if self.plain is None:
            return None
        return self.plain + (self.read or 0) + (self.write or 0) + (self.write_long or 0)

    @property
    def hit_rate(self) -> float | None:
        """The share of the input that came from the cache; none where the provider does not say."""
        if self.read is None or not self.prompt:
            return None
        return self.read / self.prompt


UNKNOWN_USAGE = Usage()
