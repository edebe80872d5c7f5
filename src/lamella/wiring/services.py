"""Services: everything that follows from settings, built once from one reading of them."""

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamella.settings.configuration import Configuration, Surroundings, look_around
from lamella.settings.model import Settings

if TYPE_CHECKING:
    from lamella.adapters.providers.dialects import WireDialects
    from lamella.adapters.providers.facts.user_models import UserModels
    from lamella.adapters.sources.conversions import Conversions
    from lamella.ports import ModelBook, PriceBook, ProfileBook, SecretWatch, TokenCounter


class Services(Struct, frozen=True, kw_only=True, dict=True):
    """The settings as read, and the adapters that depend on nothing else. Each is made when it is first asked for.

    From it stores, providers, worlds and indexes are opened; whoever opens several hands the same services to all.
    ``load_models`` reads a file with facts about models, each once.
    """

    surroundings: Surroundings
    load_models: "Callable[[str], UserModels]"
    given: Mapping[str, object] = {}

    @cached_property
    def found(self) -> Configuration:
        """The settings, each with where it was found."""
        return self.surroundings.configure(self.given)

    @property
    def settings(self) -> Settings:
        return self.found.settings

    def under(self, given: Mapping[str, object]) -> "Services":
        """Services of a caller who gives other settings on top of the same reading."""
        return Services(surroundings=self.surroundings, load_models=self.load_models, given=given)

    @cached_property
    def own_models(self) -> "UserModels | None":
        """What the user's own file says about models."""
        facts = self.settings.model_facts
        return self.load_models(facts) if facts else None

    def fit_budget(self, found: Configuration, model: str | None) -> dict[str, Any]:
        """The window, reserve and shares that the user's own file wants with a model, where nobody set them."""
        if self.own_models is None or model is None:
            return {}
        from lamella.adapters.providers.facts.user_models import fit_reserve

        own = self.own_models.budget(model)
        if "window" in own and not found.is_set("window"):
            own = {"reserve": fit_reserve(own["window"], usual=found.settings.reserve), **own}
        return {name: value for name, value in own.items() if not found.is_set(name)}

    @cached_property
    def models(self) -> "ModelBook":
        """What is known about models."""
        from lamella.adapters.providers.facts.models import BuiltInModels

        return self.own_models or BuiltInModels()

    @cached_property
    def profiles(self) -> "ProfileBook":
        """What is known about their caches."""
        from lamella.adapters.providers.facts.models import BuiltInModels

        return self.own_models or BuiltInModels()

    @cached_property
    def counter(self) -> "TokenCounter":
        from lamella.adapters.providers.places import sees_pictures
        from lamella.adapters.tokens.counter import OfflineCounter

        return OfflineCounter(
            sees=lambda model: sees_pictures(model, self.models),
            pictures=lambda model: self.models.model(model).pictures,
        )

    @cached_property
    def prices(self) -> "PriceBook":
        from lamella.adapters.providers.facts.prices import SnapshotPrices

        return SnapshotPrices()

    @cached_property
    def conversions(self) -> "Conversions":
        """What reads pages, videos, PDFs and office files."""
        from lamella.wiring.reading import open_conversions

        return open_conversions(self)

    @cached_property
    def secrets(self) -> "SecretWatch":
        """What looks like a secret, and which models are asked here."""
        from lamella.adapters.providers.places import runs_here
        from lamella.adapters.providers.secrets.finder import SecretFinder
        from lamella.adapters.providers.secrets.formats import ANCHORS
        from lamella.ports import SecretWatch

        return SecretWatch(anchors=ANCHORS, find=SecretFinder().find, stays_here=runs_here)

    @cached_property
    def dialects(self) -> "WireDialects":
        """How requests are said to each provider, and answers read."""
        from lamella.adapters.providers.dialects import WireDialects

        return WireDialects(self.own_models)


def read_services(given: Mapping[str, object] | None = None) -> Services:
    """Services from files and the environment as they stand now, with what the caller gives on top."""
    return Services(surroundings=look_around(), load_models=cache(_load_models), given=given or {})


def _load_models(facts: str) -> "UserModels":
    from lamella.adapters.providers.facts.user_models import load_profiles  # only for those who have such a file

    return load_profiles(Path(facts).expanduser())


def load_configuration(given: Mapping[str, object] | None = None) -> Configuration:
    """All settings as they stand now, with where each was found."""
    return read_services(given).found


def load_settings(given: Mapping[str, object] | None = None) -> Settings:
    """All settings as they stand now."""
    return read_services(given).settings
