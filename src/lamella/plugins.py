"""Plugins: parts of Lamella that other packages bring, found by entry points or registered by a program.

A package names its plugins under one entry point group per ``PluginGroup``, for example in its ``pyproject.toml``:

[project.entry-points."lamella.runners"]
shout = "my_package:run_shout"

A program without a package calls ``register``. A plugin that cannot be loaded, or that has not the form of its protocol,
is skipped with a ``PluginWarning`` that names it; ``list_plugins`` says why. What Lamella itself brings always wins, so
no plugin replaces a built-in part by taking its name.
"""

import warnings
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar, runtime_checkable

from lamella.attach import Tool
from lamella.core.log.call import CacheUsage
from lamella.core.log.receipts import ReplyInPrompt
from lamella.errors import BadInputError, NotAvailableError
from lamella.ports import ModelProvider, Store

__all__ = [
    "CompactionStep",
    "KindReader",
    "PluginGroup",
    "PluginInfo",
    "PluginWarning",
    "PriceBook",
    "ProviderOpener",
    "ReadText",
    "ReplyInPrompt",
    "RunnerPlugin",
    "SecretScannerPlugin",
    "StoreOpener",
    "TokenCounterPlugin",
    "list_plugins",
    "register",
    "unregister",
]


class PluginGroup(StrEnum):
    """What a plugin brings: the name of the entry point group."""

    PROVIDERS = "lamella.providers"
    STORES = "lamella.stores"
    TOKEN_COUNTERS = "lamella.token_counters"
    KINDS = "lamella.kinds"
    RUNNERS = "lamella.runners"
    TOOLS = "lamella.tools"
    COMPACTION_STEPS = "lamella.compaction_steps"
    PRICE_BOOKS = "lamella.price_books"
    SECRET_SCANNERS = "lamella.secret_scanners"


class PluginWarning(UserWarning):
    """A plugin is skipped: it cannot be loaded, has a wrong form, or raised an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """An installed or registered plugin; ``problem`` says why it is skipped, and is empty if it is used."""

    group: PluginGroup
    name: str
    package: str
    problem: str = ""


# The protocols, one for each group.


@runtime_checkable
class ProviderOpener(Protocol):
    """Opens the models that are named ``NAME:MODEL``, where NAME is the name of the plugin."""

    def __call__(self, model: str, /, *, timeout: float | None) -> ModelProvider: ...


@runtime_checkable
class StoreOpener(Protocol):
    """Opens the stores whose URL begins with ``NAME:``, where NAME is the name of the plugin."""

    def __call__(self, url: str, /, *, timeout: float) -> Store: ...


@runtime_checkable
class TokenCounterPlugin(Protocol):
    """Counts the tokens of models whose name begins with one of ``prefixes``."""

    @property
    def prefixes(self) -> Sequence[str]: ...

    def count(self, text: str, /) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText:
    """What a kind of attachment reads: the text as it is now, and the title that people see."""

    text: str
    title: str = ""


@runtime_checkable
class KindReader(Protocol):
    """Reads attachments that are named ``NAME:REST``, where NAME is the name of the plugin; gets the REST."""

    def __call__(self, name: str, /) -> ReadText: ...


@runtime_checkable
class RunnerPlugin(Protocol):
    """Answers a question in its own way, like the functions of ``lamella.runners``."""

    def __call__(self, run_request: Any, /) -> AsyncGenerator[Any, None]: ...  # noqa: ANN401  # a RunRequest, and TurnEvents


@runtime_checkable
class CompactionStep(Protocol):
    """Chooses replies that compaction reduces to their outlines first, best first; depends on its argument only."""

    def __call__(self, replies: Sequence[ReplyInPrompt], /) -> Sequence[str]: ...


@runtime_checkable
class PriceBook(Protocol):
    """Knows prices; asked before the bundled ones. None means that it does not know the model."""

    def price(self, model: str, usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal | None: ...


@runtime_checkable
class SecretScannerPlugin(Protocol):
    """Finds secrets: lines from 1 with what they are. A text without any of the ``anchors`` is not scanned."""

    @property
    def anchors(self) -> Sequence[str]: ...

    def scan(self, text: str, /) -> Sequence[tuple[int, str]]: ...


_PROTOCOLS: Mapping[PluginGroup, type[Any]] = {
    PluginGroup.PROVIDERS: ProviderOpener,
    PluginGroup.STORES: StoreOpener,
    PluginGroup.TOKEN_COUNTERS: TokenCounterPlugin,
    PluginGroup.KINDS: KindReader,
    PluginGroup.RUNNERS: RunnerPlugin,
    PluginGroup.TOOLS: Tool,
    PluginGroup.COMPACTION_STEPS: CompactionStep,
    PluginGroup.PRICE_BOOKS: PriceBook,
    PluginGroup.SECRET_SCANNERS: SecretScannerPlugin,
}
_REGISTERED_HERE = "this program"


# Plugins that a program registered, and those that were skipped, with the reason.
_registered: dict[tuple[PluginGroup, str], object] = {}
_problems: dict[tuple[PluginGroup, str], str] = {}


def register(group: PluginGroup | str, name: str, plugin: object) -> None:
    """Use a plugin in this process, without a package that brings it."""
    known = PluginGroup(group)
    problem = _check(known, name, plugin)
    if problem:
        raise BadInputError(f"The plugin {name!r} {problem}.", hint=f"See the protocols of {__name__}.")
    _registered[known, name] = plugin
    _problems.pop((known, name), None)


def unregister(group: PluginGroup | str, name: str) -> None:
    """Forget a plugin that was registered."""
    _registered.pop((PluginGroup(group), name), None)


def list_plugins() -> list[PluginInfo]:
    """Return every plugin that is installed or registered, those that are skipped included."""
    listed: list[PluginInfo] = []
    for group in PluginGroup:
        used = find_plugins(group)
        packages = {one.name: _package_of(one) for one in _installed(group)}
        packages.update({name: _REGISTERED_HERE for known, name in _registered if known is group})
        listed += [
            PluginInfo(
                group=group,
                name=name,
                package=package,
                problem=_problems.get((group, name), "" if name in used else "was not found again"),
            )
            for name, package in sorted(packages.items())
        ]
    return listed


def find_plugins(group: PluginGroup) -> Mapping[str, Any]:
    """Return the plugins of a group that can be used, by name. A broken one is skipped with a warning."""
    loaded = {name: plugin for name, plugin in _load_installed(group).items() if (group, name) not in _problems}
    registered = {name: plugin for (known, name), plugin in _registered.items() if known is group}
    return {**loaded, **{name: one for name, one in registered.items() if (group, name) not in _problems}}


def find_plugin(group: PluginGroup, name: str) -> Any:  # noqa: ANN401  # each group has a protocol of its own
    """Return one plugin by name, or None."""
    return find_plugins(group).get(name)


Result = TypeVar("Result")


def call_plugin(
    group: PluginGroup, name: str, call: Callable[[], Result], *, is_right: Callable[[Result], bool]
) -> Result | None:
    """Return what a plugin gives, or None if it fails or gives something wrong; it is then skipped from here on."""
    try:
        given = call()
        is_usable = is_right(given)
    except Exception as error:  # noqa: BLE001  # whatever a plugin raises, Lamella goes on without it
        skip_plugin(group, name, f"raised {type(error).__name__}: {error}")
        return None
    if not is_usable:
        skip_plugin(group, name, f"gave {given!r:.80}, which is not what its protocol says")
        return None
    return given


def skip_plugin(group: PluginGroup, name: str, problem: str) -> None:
    """Skip a plugin from here on, and warn about it once."""
    if (group, name) not in _problems:
        _problems[group, name] = problem
        warnings.warn(f"The plugin {name!r} of {group.value} is skipped: it {problem}.", PluginWarning, stacklevel=3)


def open_with_plugin(
    group: PluginGroup, name: str, call: Callable[[], Result], *, is_right: Callable[[object], bool]
) -> Result:
    """Return what a plugin opens; raises ``NotAvailableError`` that names it if it fails, since nothing can replace it."""
    try:
        opened = call()
    except BadInputError:
        raise
    except Exception as error:
        raise NotAvailableError(
            f"The plugin {name!r} of {group.value} failed: {type(error).__name__}: {error}",
            hint="Nothing was changed. Look at the package that brings the plugin.",
        ) from error
    if not is_right(opened):
        raise NotAvailableError(
            f"The plugin {name!r} of {group.value} opened {opened!r:.80}, which lacks methods of its protocol.",
            hint="Test the plugin with the suites in lamella.testing.",
        )
    return opened


@cache
def _installed(group: PluginGroup) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group.value))


@cache
def _load_installed(group: PluginGroup) -> Mapping[str, object]:
    return dict(_iter_loaded(group))


def _iter_loaded(group: PluginGroup) -> Iterator[tuple[str, object]]:
    for one in _installed(group):
        try:
            plugin = one.load()
        except Exception as error:  # noqa: BLE001  # an import may raise anything
            skip_plugin(group, one.name, f"cannot be loaded: {type(error).__name__}: {error}")
            continue
        problem = _check(group, one.name, plugin)
        if problem:
            skip_plugin(group, one.name, problem)
        else:
            yield one.name, plugin


def _check(group: PluginGroup, name: str, plugin: object) -> str:
    """Return what is wrong with a plugin, or an empty string."""
    if not name.isidentifier():
        return "has a name with other characters than letters, digits and _"
    protocol = _PROTOCOLS[group]
    return "" if isinstance(plugin, protocol) else f"is no {protocol.__name__}"


def _package_of(one: EntryPoint) -> str:
    return one.dist.name if one.dist is not None else ""
