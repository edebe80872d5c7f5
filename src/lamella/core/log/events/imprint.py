"""Imprints: what a question's request was when it was first sent, by hashes and numbers, never by text."""

from msgspec import Struct


class Imprint(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The hashes of L1, L2, the system message and the whole, the version of what rendered them, and their measures.

    ``segments`` are those of each layer in order. Of the bytes ``attached`` to the turn, ``referred`` are stood for by
    a reference. Of ``context`` earlier messages and artifacts, ``compacted`` stand shortened or are left out.
    ``unparsed`` are blocks that nobody could read.
    """

    renderer: int
    system: str
    library: str
    prefix: str
    whole: str
    segments: tuple[int, ...] = ()
    attached: int = 0
    referred: int = 0
    context: int = 0
    compacted: int = 0
    unparsed: int = 0

    @property
    def hashes(self) -> tuple[str, str, str, str]:
        return self.system, self.library, self.prefix, self.whole

    @property
    def dedup_ratio(self) -> float:
        """The share of what was attached that is referred to instead of repeated."""
        return self.referred / self.attached if self.attached else 0.0

    @property
    def compacted_share(self) -> float:
        """The share of what is known and was said that no longer stands whole."""
        return self.compacted / self.context if self.context else 0.0
