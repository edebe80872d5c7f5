"""Services: everything that follows from the settings, built once from one reading of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lamella.plugins import PluginGroup, find_plugins, open_with_plugin
from lamella.settings.loading import ResolvedSettings, SettingsSources, read_settings_sources
from lamella.settings.model import Settings

if TYPE_CHECKING:
    from lamella.ports import CacheProfileRegistry, ModelRegistry, PriceTable, SecretScanner, TokenizerRegistry
    from lamella.providers.sdk_objects import BuiltInWireFormats
    from lamella.providers.secret_scanner import SecretFinder
    from lamella.providers.user_models import UserModels
    from lamella.sources.converted_files import CachedSourceReader


class ServiceContainer(Struct, frozen=True, kw_only=True, dict=True):
    """The settings as read, and the adapters that depend on nothing else; each is created on first use.

    Stores, providers, adapters and indexes are opened from it. A caller that opens several of them passes the same
    services to all. ``load_models`` reads a file with facts about models, and caches it.
    """

    settings_sources: SettingsSources
    load_models: "Callable[[str], UserModels]"
    overrides: Mapping[str, object] = {}

    @cached_property
    def resolved(self) -> ResolvedSettings:
        """The settings, each with its origin."""
        return self.settings_sources.resolve(self.overrides)

    @property
    def settings(self) -> Settings:
        return self.resolved.settings

    def with_only_overrides(self, overrides: Mapping[str, object]) -> "ServiceContainer":
        """Return services with other settings from the caller, over the same reading of files and environment."""
        return ServiceContainer(
            settings_sources=self.settings_sources, load_models=self.load_models, overrides=overrides
        )

    @cached_property
    def user_models(self) -> "UserModels | None":
        """The model facts in the user's own file, or None."""
        facts = self.settings.model_facts
        return self.load_models(facts) if facts else None

    def budget_settings_for(self, resolved: ResolvedSettings, model: str | None) -> dict[str, Any]:
        """Return the budget settings in the user's model facts, without those that any source sets."""
        if self.user_models is None or model is None:
            return {}
        from lamella.providers.user_models import choose_reserve

        own = self.user_models.get_budget_overrides(model)
        if "window" in own and not resolved.is_set("window"):
            # A window from the facts needs a reserve that fits it, unless the facts have their own reserve.
            own = {"reserve": choose_reserve(own["window"], default=resolved.settings.reserve), **own}
        return {name: value for name, value in own.items() if not resolved.is_set(name)}

    @cached_property
    def models(self) -> "ModelRegistry":
        """The known facts about models."""
        from lamella.providers.models import BuiltInModelProfiles

        return self.user_models or BuiltInModelProfiles()

    @cached_property
    def profiles(self) -> "CacheProfileRegistry":
        """The known cache profiles of models."""
        from lamella.providers.models import BuiltInModelProfiles

        return self.user_models or BuiltInModelProfiles()

    @cached_property
    def counter(self) -> "TokenizerRegistry":
        from lamella.providers.open_provider import supports_images
        from lamella.tokenizers.counter import OfflineTokenCounter

        return OfflineTokenCounter(
            accepts_images=lambda model: supports_images(model, self.models),
            get_image_profile=lambda model: self.models.get_model_profile(model).pictures,
        )

    @cached_property
    def prices(self) -> "PriceTable":
        from lamella.providers.facts.others import BundledPrices

        return BundledPrices()

    @cached_property
    def document_converter(self) -> "CachedSourceReader":
        """The converter for web pages, videos, PDFs and office files."""
        from lamella.wiring.sources import open_document_converter

        return open_document_converter(self)

    @cached_property
    def secret_scanner(self) -> "SecretScanner":
        """The secret scanner, which also knows which models run in this process."""
        from lamella.ports import SecretScanner
        from lamella.providers.open_provider import is_local_model
        from lamella.providers.secret_scanner import ANCHORS, SecretFinder

        finder, plugins = SecretFinder(), find_plugins(PluginGroup.SECRET_SCANNERS)
        anchors = tuple(dict.fromkeys((*ANCHORS, *(anchor for one in plugins.values() for anchor in one.anchors))))
        return SecretScanner(
            anchors=anchors,
            find_secrets=partial(_find_secrets, finder) if plugins else finder.scan,
            is_local_model=is_local_model,
        )

    @cached_property
    def wire_formats(self) -> "BuiltInWireFormats":
        """The wire formats of the providers."""
        from lamella.providers.sdk_objects import BuiltInWireFormats

        return BuiltInWireFormats(self.user_models)


def _find_secrets(finder: "SecretFinder", text: str, content_hash: str) -> Sequence[tuple[int, str]]:
    """Return what the built-in scanner and those of plugins find."""
    found = set(finder.scan(text, content_hash))
    for name, plugin in find_plugins(PluginGroup.SECRET_SCANNERS).items():
        if any(anchor in text for anchor in plugin.anchors):
            # A text is not sent unscanned because a scanner fails.
            scan: Callable[[], Sequence[tuple[int, str]]] = partial(plugin.scan, text)
            found.update(open_with_plugin(PluginGroup.SECRET_SCANNERS, name, scan, is_right=_are_findings))
    return sorted(found)


def _are_findings(given: object) -> bool:
    return isinstance(given, Sequence) and all(
        isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], str)
        for one in given
    )


def read_services(overrides: Mapping[str, object] | None = None) -> ServiceContainer:
    """Read settings files and the environment as they are now, and return services with ``overrides`` on top."""
    return ServiceContainer(
        settings_sources=read_settings_sources(), load_models=cache(_load_models), overrides=overrides or {}
    )


def _load_models(facts: str) -> "UserModels":
    from lamella.providers.user_models import load_profiles  # imported late: few users have such a file

    return load_profiles(Path(facts).expanduser())


def load_configuration(overrides: Mapping[str, object] | None = None) -> ResolvedSettings:
    """Return all settings as they are now, each with its origin."""
    return read_services(overrides).resolved


def load_settings(overrides: Mapping[str, object] | None = None) -> Settings:
    """Return all settings as they are now."""
    return read_services(overrides).settings
