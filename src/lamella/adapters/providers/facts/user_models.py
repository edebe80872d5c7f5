"""Profiles of the user's own: a TOML file that adds models, or overrides what ships with Lamella about them."""

import tomllib
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from lamella.adapters.files.reading import MAX_SETTINGS_BYTES, read_plain
from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.registry import bare_model
from lamella.core.budget.thresholds import Budget
from lamella.core.ledger.cache import CacheProfile
from lamella.core.values import replace
from lamella.errors import SettingError
from lamella.ports import ModelBook
from lamella.profiles import Lifetime, LifetimeClock, ModelProfile, PictureRule, UsageFields, find_cache

_BUDGET_FIELDS = Budget.__struct_fields__
# Of a window, the most that is kept for the answer where nobody says how much.
_ANSWER_SHARE = 8
_NUMBERS = tuple(part for kind in (int, float, Decimal) for part in (kind, kind | None))
_CACHE_FIELDS = ("minimum", "granularity", "lifetime", "bills_writes", "invalidates")


def fit_reserve(window: int, *, usual: int = Budget().reserve) -> int:
    """How many tokens are kept for the answer: as usual, or a part of a window that is small."""
    return min(usual, window // _ANSWER_SHARE)


class _ProfilePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuses a switch where a number is meant: it would count as 1, and nothing fits a window of that."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in _NUMBERS:
            raise ValueError("Input should be a number.")
        return value


class LifetimeIn(_ProfilePart):
    """A lifetime that can be asked for."""

    name: str
    seconds: int = Field(gt=0)
    write: Decimal | None = Field(default=None, ge=0)


class UsageFieldsIn(_ProfilePart):
    """Where usage is reported."""

    input: str
    output: str
    includes_cached: bool
    read: str | None = None
    write: str | None = None


class PicturesIn(_ProfilePart):
    """How pictures are counted and which are taken, as far as it differs from what ships."""

    rule: PictureRule | None = None
    weight: float | None = Field(default=None, ge=0)
    unit: int | None = Field(default=None, gt=0)
    fit: int | None = Field(default=None, gt=0)
    short: int | None = Field(default=None, gt=0)
    budget: int | None = Field(default=None, gt=0)
    base: int | None = Field(default=None, ge=0)
    types: tuple[str, ...] | None = None
    count: int | None = Field(default=None, ge=0)
    size: int | None = Field(default=None, gt=0)
    edge: int | None = Field(default=None, gt=0)
    crowd: int | None = Field(default=None, gt=0)
    crowd_edge: int | None = Field(default=None, gt=0)
    payload: int | None = Field(default=None, gt=0)


class ModelIn(_ProfilePart):
    """One entry. What it leaves out is as it ships, for the model it matches or the one it is ``like``."""

    match: str = Field(min_length=1)
    as_of: date
    like: str | None = None
    provider: str | None = None
    minimum: int | None = Field(default=None, ge=0)
    granularity: int | None = Field(default=None, gt=0)
    lifetime: int | None = Field(default=None, gt=0)
    bills_writes: bool | None = None
    window: int | None = Field(default=None, gt=0)
    read: Decimal | None = Field(default=None, ge=0)
    lifetimes: tuple[LifetimeIn, ...] | None = None
    clock: LifetimeClock | None = None
    implicit: bool | None = None
    breakpoints: int | None = Field(default=None, ge=0)
    lookback: int | None = Field(default=None, gt=0)
    keyed: bool | None = None
    caches_replies: bool | None = None
    order: tuple[str, ...] | None = None
    invalidates: tuple[tuple[str, Literal["tools", "system", "messages"]], ...] | None = None
    usage: UsageFieldsIn | None = None
    diagnostics: bool | None = None
    cached_content: bool | None = None
    storage: Decimal | None = Field(default=None, ge=0)
    sees: bool | None = None
    calls_tools: bool | None = None
    pictures: PicturesIn | None = None
    reserve: int | None = Field(default=None, ge=0)
    warn: float | None = None
    target: float | None = None
    trigger: float | None = None
    hard: float | None = None

    @model_validator(mode="after")
    def _check_budget(self) -> Self:
        given = self.budget()
        window = given.get("window", Budget().window)
        try:
            Budget(**{"window": window, "reserve": fit_reserve(window), **given})
        except SettingError as error:
            raise ValueError(error.message) from error
        return self

    def budget(self) -> dict[str, Any]:
        """How the window is used with the model, as far as the entry says."""
        return {name: getattr(self, name) for name in _BUDGET_FIELDS if getattr(self, name) is not None}


class ModelsFileIn(_ProfilePart):
    """A whole file."""

    model: tuple[ModelIn, ...] = ()


class UserModels:
    """The user's entries, then what ships with Lamella. The first entry that a model's name begins with decides."""

    def __init__(self, entries: Sequence[ModelIn], *, shipped: ModelBook | None = None) -> None:
        self._entries = tuple(entries)
        self._shipped = shipped or BuiltInModels()

    def model(self, model: str | None) -> ModelProfile:
        """What is known of a model, written ``provider:model`` or ``model``."""
        entry = self._find(model)
        return (
            self._shipped.model(model) if entry is None else _override(self._shipped.model(entry.like or model), entry)
        )

    def budget(self, model: str) -> dict[str, Any]:
        """The window, reserve and shares that the user wants with a model, as far as an entry says."""
        entry = self._find(model)
        return {} if entry is None else entry.budget()

    def _find(self, model: str | None) -> ModelIn | None:
        name = (model or "").lower()
        bare = bare_model(name) if "#" in name else name.partition(":")[2] or name
        return next((entry for entry in self._entries if bare.startswith(entry.match.lower())), None)

    def profile(self, model: str | None) -> CacheProfile:
        """The part of it that the cache model and planners use."""
        return find_cache(self.model(model))


def load_profiles(path: Path) -> UserModels:
    """The profiles in a file."""
    try:
        text = read_plain(path, limit=MAX_SETTINGS_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        told = (error.strerror if isinstance(error, OSError) else None) or error
        raise SettingError(f"The profiles in {path} cannot be read: {told}.", hint="Check the path.") from error
    return parse_profiles(text, name=str(path))


def parse_profiles(text: str, *, name: str) -> UserModels:
    """Profiles from TOML; ``name`` is what errors call it."""
    try:
        found = ModelsFileIn.model_validate(tomllib.loads(text, parse_float=Decimal))
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        told = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise SettingError(
            f"{name}: {place}: {told}.", hint="See docs/providers.md for the fields of a profile."
        ) from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        # Numbers of thousands of digits are no syntax error to the reader of TOML, and lists a thousand deep are none.
        raise SettingError(f"{name} is not TOML: {error}.", hint="See docs/providers.md for its shape.") from error
    return UserModels(found.model)


def _override(shipped: ModelProfile, entry: ModelIn) -> ModelProfile:
    given = {field: getattr(entry, field) for field in entry.model_fields_set}
    cache = replace(
        shipped.cache, name=entry.match, **{field: given.pop(field) for field in _CACHE_FIELDS if field in given}
    )
    for field in ("match", "like"):
        given.pop(field, None)
    given["as_of"] = entry.as_of.isoformat()
    if entry.lifetimes is not None:
        given["lifetimes"] = tuple(
            Lifetime(name=one.name, seconds=one.seconds, write=one.write) for one in entry.lifetimes
        )
    if entry.pictures is not None:
        own = entry.pictures.model_dump(exclude_none=True)
        given["pictures"] = replace(shipped.pictures, name=f"{entry.match} as given", **own)
    if entry.usage is not None:
        given["usage"] = UsageFields(**entry.usage.model_dump())
    return replace(shipped, cache=cache, **given)
