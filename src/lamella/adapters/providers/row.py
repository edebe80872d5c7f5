"""A provider's row: all that the rest of Lamella has to know of it. Each provider's folder has its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lamella.core.ledger.cache import CacheProfile
from lamella.ports import ChatProvider, Clock, ModelBook, Shelf
from lamella.profiles import ModelProfile, PictureProfile

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress
    from lamella.adapters.providers.wire.dialect import Dialect

PATIENCE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageWish:
    """What weighs whether a cache of its own pays: how many ``requests`` somebody expects in an hour, at which price.

    ``price`` is that of plain input, in dollars per million tokens; ``count`` counts a text. By the ``shelf`` other
    processes know of what one had stored.
    """

    requests: int
    price: Decimal
    count: Callable[[str], int]
    clock: Clock
    shelf: Shelf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """What providers take besides a key. ``patience`` is how many seconds of silence are borne.

    A model in this process tells ``progress`` how far it has read, and keeps in ``record`` which weights it checked.
    With ``storage`` caches that are paid by the hour may be made.
    """

    patience: float = PATIENCE
    progress: "Callable[[Progress], None] | None" = None
    record: Path | None = None
    storage: StorageWish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkPackage:
    """The package that speaks to a provider, the module it is imported by, and the extra that installs it."""

    package: str
    module: str
    extra: str


class OpenProvider(Protocol):
    """Makes a provider of a model's name. Nothing is sent; SDKs are imported in it, and nowhere before."""

    def __call__(self, model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """One provider.

    ``names`` may stand before a model's name and a colon; facts name the maker of a model by one of them. ``form`` is
    how people write a model of it, and says what follows the colon: a NAME, a place such as a PATH, a ``URL#NAME``, or
    nothing; without a form it is told nowhere. ``title`` is what errors call it. ``keys`` are the variables that may
    hold its key, the first that is set counts. Models that run ``here`` are in this process. A row that nothing
    ``open``s is asked through somebody else's API. ``dialect`` gives the wire format for those who bring their own
    client. ``models``, ``caches`` and ``pictures`` are facts by how models' names
    begin.
    """

    names: tuple[str, ...]
    form: str = ""
    title: str = ""
    keys: tuple[str, ...] = ()
    needs_key: bool = True
    here: bool = False
    package: SdkPackage | None = None
    open: OpenProvider | None = None
    dialect: "Callable[[], Dialect] | None" = None
    models: tuple[tuple[str, ModelProfile], ...] = field(default=(), repr=False)
    caches: tuple[tuple[str, CacheProfile], ...] = field(default=(), repr=False)
    pictures: tuple[tuple[str, PictureProfile], ...] = field(default=(), repr=False)

    @property
    def follows(self) -> str:
        """What follows the colon: a NAME, a ``URL#NAME``, a place of another kind, or nothing."""
        return self.form.partition(":")[2] if self.form else "NAME"

    def takes(self, rest: str) -> bool:
        """Whether a model can be written with this after the colon."""
        return bool(rest) == bool(self.follows) or self.follows.endswith("NAME")

    def strip(self, rest: str) -> str | None:
        """A model's own name in what follows the colon; none where that is a place, or empty."""
        if "#" in self.follows:
            return rest.partition("#")[2] or None
        return rest or None if self.follows in ("", "NAME") else None


def find_key(row: ProviderRow, keys: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable that holds a row's key, and the key."""
    return next(((name, keys[name]) for name in row.keys if keys.get(name)), None)
