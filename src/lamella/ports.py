"""Ports: what Lamella needs from the world, as small protocols.

Adapters satisfy them by shape. Core never sees a port: it gets values, and plain callables such as ``count``.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from lamella.core.artifacts.model import Artifact, Image, Kind, Policy
from lamella.core.budget.counting import Measure
from lamella.core.ledger.cache import CacheProfile, CacheUse


class TokenCounter(Protocol):
    """Counts tokens offline, and says how sure it is."""

    def measure(self, model: str | None) -> Measure:
        """How this model counts: exactly where its vocabulary is known, else the best estimate with its error."""
        ...


class SourceReader(Protocol):
    """Reads notes and files from where people keep them. Paths are relative and never leave the root."""

    def read_file(self, path: str, kind: Kind, *, policy: Policy | None = None, via: str | None = None) -> Artifact:
        """One file as an artifact of the given kind."""
        ...

    def read_image(self, path: str) -> Image: ...

    def read_embedded(self, note: Artifact) -> tuple[Sequence[Image], Sequence[str]]:
        """The images a note embeds, and for each one that cannot be sent the reason."""
        ...

    def list_folder(self, path: str) -> Sequence[str]:
        """The paths of the notes in a folder and below it, sorted."""
        ...

    def list_tag(self, tag: str) -> Sequence[str]:
        """The paths of the notes that carry a tag, or one below it, sorted."""
        ...

    def has_folder(self, path: str) -> bool: ...

    def find_note(self, name: str) -> Sequence[str]:
        """The paths a link can mean: the exact path, else every note of that file name."""
        ...


class PriceBook(Protocol):
    """What tokens cost on a day."""

    def price(self, model: str, use: CacheUse, at: datetime | None) -> Decimal | None:
        """The input cost in US dollars, or none where the model has no known price."""
        ...


class ProfileBook(Protocol):
    """What each provider's prefix cache does."""

    def profile(self, model: str | None) -> CacheProfile: ...
