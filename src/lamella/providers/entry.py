"""Registry entries of providers, and checks before a request is sent.

``ProviderEntry`` has everything that the rest of Lamella needs to know about a provider. ``validate_key_and_address`` checks a
key and an address, and ``check_sdk_installed`` the SDK, without importing it. No error message contains the key.
"""

from asyncio import timeout
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.errors import AuthenticationError, SdkNotInstalledError, WrongEndpointError, install_hint
from lamella.ports import Clock, ModelProvider, ModelRegistry, SharedTable
from lamella.profiles import ImageProfile, ModelProfile

if TYPE_CHECKING:
    from lamella.providers.local import PromptProgress
    from lamella.providers.wire import WireFormat

DEFAULT_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStorageRequest:
    """The inputs for deciding whether a stored cache that is billed by the hour pays off.

    ``requests_per_hour`` is how many requests the user expects per hour. ``input_price`` is the price of uncached input
    in dollars per million tokens. ``count_tokens`` counts the tokens of a text. Through the shared table
    (``shared_table``) other processes learn which caches already exist.
    """

    requests_per_hour: int
    input_price: Decimal
    count_tokens: Callable[[str], int]
    clock: Clock
    shared_table: SharedTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """Options of a provider besides its key.

    ``timeout`` is how many seconds the provider may stay silent. A local model reports to ``on_progress`` how much of
    the prompt it has read, and notes in the file ``hash_record`` which weights it has verified. ``cache_storage``
    allows the provider to create caches that are billed by the hour.
    """

    timeout: float = DEFAULT_TIMEOUT
    on_progress: "Callable[[PromptProgress], None] | None" = None
    hash_record: Path | None = None
    cache_storage: CacheStorageRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkPackage:
    """The package that talks to a provider, the module to import it by, and the extra that installs it."""

    package: str
    module: str
    extra: str


class ProviderFactory(Protocol):
    """A function that creates a provider for a model name.

    It sends nothing. It is the only place where the provider's SDK is imported.
    """

    def __call__(self, model: str, *, key: str, models: ModelRegistry, options: ProviderOptions) -> ModelProvider: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """One provider in the registry.

    - ``names``: the prefixes that may precede a model's name and a colon. Model profiles name the maker by one of them.
    - ``model_syntax``: how users write a model of this provider. The part after the colon is a NAME, a location such as
      a PATH, a ``URL#NAME``, or empty. A provider without it is not listed anywhere.
    - ``display_name``: the provider's name in error messages.
    - ``key_variables``: the environment variables that may contain the API key. The first one that is set is used.
    - ``is_local``: whether the models run in this process.
    - ``create_provider``: creates a provider. None means that the models are reached through another provider's API.
    - ``load_wire_format``: returns the wire format, for callers that send with their own client.
    - ``model_profiles``, ``cache_profiles``, ``image_profiles``: profiles, each with the beginning of the model names
      that it applies to.
    """

    names: tuple[str, ...]
    model_syntax: str = ""
    display_name: str = ""
    key_variables: tuple[str, ...] = ()
    needs_key: bool = True
    is_local: bool = False
    package: SdkPackage | None = None
    create_provider: ProviderFactory | None = None
    load_wire_format: "Callable[[], WireFormat] | None" = None
    model_profiles: tuple[tuple[str, ModelProfile], ...] = field(default=(), repr=False)
    cache_profiles: tuple[tuple[str, CacheProfile], ...] = field(default=(), repr=False)
    image_profiles: tuple[tuple[str, ImageProfile], ...] = field(default=(), repr=False)

    @property
    def name_syntax(self) -> str:
        """The part of ``model_syntax`` after the colon: NAME, ``URL#NAME``, another kind of location, or empty."""
        return self.model_syntax.partition(":")[2] if self.model_syntax else "NAME"

    def accepts_model_name(self, rest: str) -> bool:
        """Return whether ``rest`` may follow the colon in a model name of this provider."""
        return bool(rest) == bool(self.name_syntax) or self.name_syntax.endswith("NAME")

    def find_model_name(self, rest: str) -> str | None:
        """Return the model's own name from the text after the colon. None if that text is empty or only a location."""
        if "#" in self.name_syntax:
            return rest.partition("#")[2] or None
        return rest or None if self.name_syntax in ("", "NAME") else None


def find_api_key(entry: ProviderEntry, keys: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first environment variable of the entry that is set, together with its key, or None."""
    return next(((name, keys[name]) for name in entry.key_variables if keys.get(name)), None)


# Checks of keys and addresses.


def validate_key_and_address(*, provider: str, key: str, address: str) -> None:
    """Raise an error for a key that no HTTP header can carry, or for an invalid address.

    Without this check each SDK would fail in its own way.
    """
    if not key or not all("!" <= character <= "~" for character in key):
        what = "is empty" if not key else "has characters that no key has, such as blanks or line breaks"
        raise AuthenticationError(
            f"The key for {provider} {what}.", hint="Set it to exactly what the provider gave you."
        )
    if not _is_url(address):
        raise WrongEndpointError(
            f"{address!a} is not an address for {provider}.",
            hint="Give one that begins with http:// or https:// and has neither blanks nor letters beyond ASCII.",
        )


def _is_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    # Lookalike or invisible letters would display one server's name and connect to another server.
    plain = all("!" <= character <= "~" for character in address)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and plain


# Checks of SDKs.


def check_sdk_installed(sdk: SdkPackage) -> None:
    """Raise an error with the installation command if the SDK's package is not installed."""
    try:
        found = find_spec(sdk.module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise SdkNotInstalledError(f"The package {sdk.package} is not installed.", hint=install_hint(sdk.extra))


# Drain the end of a response, so that its connection can be used for the next request.

# Servers end a finished response within milliseconds. After this many seconds a new connection is cheaper than waiting.
_DRAIN_SECONDS = 1.0


async def discard_remaining_chunks(chunks: AsyncIterator[object], *ignored_errors: type[Exception]) -> None:
    """Read and discard the bytes after an answer, for at most a second.

    They are not part of the answer, so a timeout or one of the ``ignored_errors`` is ignored.
    """
    with suppress(TimeoutError, *ignored_errors):
        async with timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass
