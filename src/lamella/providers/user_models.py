"""User-defined model profiles: a TOML file that adds models or overrides the profiles that ship with Lamella."""

import tomllib
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from lamella.core.budget import TokenBudget
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.values import replace
from lamella.errors import SettingError
from lamella.files import MAX_SETTINGS_BYTES, read_regular_file
from lamella.ports import ModelRegistry
from lamella.profiles import CacheLifetime, ImageTokenRule, LifetimeStart, ModelProfile, UsageFields, get_cache_profile
from lamella.providers.models import BuiltInModelProfiles
from lamella.providers.registry import strip_provider

_BUDGET_FIELDS = TokenBudget.__struct_fields__
# If the user sets no reserve, at most one eighth of the window is reserved for the answer.
_RESERVE_DIVISOR = 8
_NUMBER_TYPES = tuple(part for kind in (int, float, Decimal) for part in (kind, kind | None))
_CACHE_FIELDS = ("minimum", "granularity", "lifetime", "bills_writes", "invalidates")


def choose_reserve(window: int, *, default: int = TokenBudget().reserve) -> int:
    """Return how many tokens to reserve for the answer: ``default``, or less if the window is small."""
    return min(default, window // _RESERVE_DIVISOR)


class _ProfilePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_number(cls, value: object, info: ValidationInfo) -> object:
        """Reject a boolean in a number field.

        Python would treat ``true`` as 1, and nothing fits a window of one token.
        """
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in _NUMBER_TYPES:
            raise ValueError("Input should be a number.")
        return value


class LifetimeInput(_ProfilePart):
    """A cache lifetime that requests can ask for."""

    name: str
    seconds: int = Field(gt=0)
    write: Decimal | None = Field(default=None, ge=0)


class UsageFieldsInput(_ProfilePart):
    """The fields in which the provider reports token usage."""

    input: str
    output: str
    includes_cached: bool
    read: str | None = None
    write: str | None = None


class ImageRulesInput(_ProfilePart):
    """The rules for images. Omitted fields keep the values that ship with Lamella."""

    rule: ImageTokenRule | None = None
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


class ModelFactsEntry(_ProfilePart):
    """One entry of the file. Omitted fields come from the shipped profile of the matched model, or of ``like``."""

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
    lifetimes: tuple[LifetimeInput, ...] | None = None
    clock: LifetimeStart | None = None
    implicit: bool | None = None
    breakpoints: int | None = Field(default=None, ge=0)
    lookback: int | None = Field(default=None, gt=0)
    keyed: bool | None = None
    caches_replies: bool | None = None
    order: tuple[str, ...] | None = None
    invalidates: tuple[tuple[str, Literal["tools", "system", "messages"]], ...] | None = None
    usage: UsageFieldsInput | None = None
    diagnostics: bool | None = None
    cached_content: bool | None = None
    storage: Decimal | None = Field(default=None, ge=0)
    sees: bool | None = None
    calls_tools: bool | None = None
    pictures: ImageRulesInput | None = None
    reserve: int | None = Field(default=None, ge=0)
    warn: float | None = None
    target: float | None = None
    trigger: float | None = None
    hard: float | None = None

    @model_validator(mode="after")
    def _check_budget(self) -> Self:
        given = self.budget()
        # An entry may set only some of the budget fields. Defaults fill in the others, so that the entry is checked as
        # it will be used.
        window = given.get("window", TokenBudget().window)
        try:
            TokenBudget(**{"window": window, "reserve": choose_reserve(window), **given})
        except SettingError as error:
            raise ValueError(error.message) from error
        return self

    def budget(self) -> dict[str, Any]:
        """Return the token budget fields that the entry sets."""
        return {name: getattr(self, name) for name in _BUDGET_FIELDS if getattr(self, name) is not None}


class ModelFactsFile(_ProfilePart):
    """A whole profile file."""

    model: tuple[ModelFactsEntry, ...] = ()


class UserModels:
    """The user's profiles, with the shipped profiles as fallback.

    The first entry whose ``match`` is a prefix of the model's name wins.
    """

    def __init__(self, entries: Sequence[ModelFactsEntry], *, shipped: ModelRegistry | None = None) -> None:
        self._entries = tuple(entries)
        self._shipped = shipped or BuiltInModelProfiles()

    def get_model_profile(self, model: str | None) -> ModelProfile:
        """Return the profile of a model, written ``provider:model`` or ``model``."""
        entry = self._find_entry(model)
        return (
            self._shipped.get_model_profile(model)
            if entry is None
            else _override_profile(self._shipped.get_model_profile(entry.like or model), entry)
        )

    def get_budget_overrides(self, model: str) -> dict[str, Any]:
        """Return the window, reserve and threshold shares that the user sets for a model. Empty if there are none."""
        entry = self._find_entry(model)
        return {} if entry is None else entry.budget()

    def _find_entry(self, model: str | None) -> ModelFactsEntry | None:
        name = (model or "").lower()
        # A name with "#" contains a server address with colons of its own, so it cannot be split at the first colon.
        bare = strip_provider(name) if "#" in name else name.partition(":")[2] or name
        return next((entry for entry in self._entries if bare.startswith(entry.match.lower())), None)

    def get_cache_profile(self, model: str | None) -> CacheProfile:
        """Return the cache profile of a model, as the cache model and the layout planners use it."""
        return get_cache_profile(self.get_model_profile(model))


def load_profiles(path: Path) -> UserModels:
    """Return the profiles in a file. Raises ``SettingError`` if the file cannot be read or is invalid."""
    try:
        text = read_regular_file(path, limit=MAX_SETTINGS_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise SettingError(f"The profiles in {path} cannot be read: {reason}.", hint="Check the path.") from error
    return parse_profiles(text, name=str(path))


def parse_profiles(text: str, *, name: str) -> UserModels:
    """Return the profiles in a TOML text. Error messages refer to the text as ``name``."""
    try:
        found = ModelFactsFile.model_validate(tomllib.loads(text, parse_float=Decimal))
    except ValidationError as error:
        first = error.errors()[0]
        location = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        reason = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise SettingError(
            f"{name}: {location}: {reason}.", hint="See docs/reference/models.md for the fields of a profile."
        ) from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        # tomllib raises other errors than a syntax error for huge numbers and for deeply nested lists.
        hint = "See docs/reference/models.md for its format."
        raise SettingError(f"{name} is not TOML: {error}.", hint=hint) from error
    return UserModels(found.model)


def _override_profile(shipped: ModelProfile, entry: ModelFactsEntry) -> ModelProfile:
    """Return a shipped profile with the fields that the user's entry sets."""
    given = {field: getattr(entry, field) for field in entry.model_fields_set}
    cache = replace(
        shipped.cache, name=entry.match, **{field: given.pop(field) for field in _CACHE_FIELDS if field in given}
    )
    for field in ("match", "like"):
        given.pop(field, None)
    given["as_of"] = entry.as_of.isoformat()
    if entry.lifetimes is not None:
        given["lifetimes"] = tuple(
            CacheLifetime(name=one.name, seconds=one.seconds, write=one.write) for one in entry.lifetimes
        )
    if entry.pictures is not None:
        own = entry.pictures.model_dump(exclude_none=True)
        given["pictures"] = replace(shipped.pictures, name=f"{entry.match} as given", **own)
    if entry.usage is not None:
        given["usage"] = UsageFields(**entry.usage.model_dump())
    return replace(shipped, cache=cache, **given)
