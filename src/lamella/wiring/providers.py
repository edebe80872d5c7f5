"""Providers: who answers for a model, what keeps it from being asked, and what window it has."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.engine.dialogue.answer import Answer
from lamella.errors import LamellaError
from lamella.settings.configuration import Configuration
from lamella.settings.model import DEFAULT_SYSTEM
from lamella.wiring.services import Services, read_services
from lamella.wiring.trust import check_model, remember_model

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress
    from lamella.adapters.providers.row import StorageWish
    from lamella.engine.sending.delivery import RetryPolicy
    from lamella.engine.sending.pool import ProviderPool
    from lamella.ports import ChatProvider, Shelf

# A shorter text is no key, and would be found in words.
_SHORTEST_KEY = 8
# Tokens of a request that asks for the price of a million.
_SOME = 50_000
# Which weights were found to be right, so that a start does not read them through.
_WEIGHTS_RECORD = Path("~/.lamella/weights.json")


# A model of 135 million parameters repeats itself before it has said so much (2026-11-17).
_DEMO_ANSWER = 256


def open_pool(
    provider: "ChatProvider | None" = None,
    *,
    services: Services | None = None,
    progress: "Callable[[Progress], None] | None" = None,
    patience: "RetryPolicy | None" = None,
    remember: bool = False,
    lasts: bool = True,
    pool: "type[ProviderPool] | None" = None,
    shelf: "Callable[[], Shelf] | None" = None,
) -> "ProviderPool":
    """Where turns are sent from: to a provider that is given, or to those that models name.

    ``progress`` is told how far a model in this process is with reading a prompt in. To ``remember`` makes what people
    name a place that is trusted once it has answered. One that ``lasts`` may have caches stored for several requests.
    ``pool`` is what kind of pool it is; by the ``shelf`` processes know of what others had stored.
    """
    import asyncio
    import random

    from lamella.adapters.clocks.system import SystemClock
    from lamella.adapters.providers.places import DEMO_MODEL, runs_here
    from lamella.engine.sending.delivery import RetryPolicy
    from lamella.engine.sending.pool import ProviderPool

    services, patience = services or read_services(), patience or RetryPolicy()
    find = partial(
        open_provider,
        services=services,
        progress=progress,
        silence=patience.silence,
        lasts=lasts,
        shelf=shelf,
    )
    return (pool or ProviderPool)(
        find,
        clock=SystemClock(),
        sleep=asyncio.sleep,
        jitter=random.random,
        given=provider,
        patience=patience,
        answered=partial(remember_model, services=services) if remember else None,
        check=partial(check_model, services=services),
        roams=runs_here,
        answers={DEMO_MODEL: _DEMO_ANSWER},
    )


def open_provider(
    model: str,
    *,
    named: bool = False,
    services: Services | None = None,
    progress: "Callable[[Progress], None] | None" = None,
    silence: float | None = None,
    lasts: bool = True,
    shelf: "Callable[[], Shelf] | None" = None,
) -> "ChatProvider":
    """The provider that a model's name stands for, with keys from the environment; it bears so much ``silence``.

    ``named`` says that whoever runs this named it, not only a conversation that may have come from somebody else.
    What is asked once and does not last stores nothing.
    """
    from lamella.adapters.providers.opener import open_provider as find
    from lamella.adapters.providers.row import ProviderOptions  # SDKs are for those who send
    from lamella.engine.sending.delivery import SILENCE

    services = services or read_services()
    check_model(model, named=named, services=services)
    options = ProviderOptions(
        patience=SILENCE if silence is None else silence,
        progress=progress,
        record=_WEIGHTS_RECORD.expanduser(),
        storage=_wish_storage(model, services, shelf=shelf) if lasts and services.settings.cache_storage else None,
    )
    return find(model, keys=os.environ, models=services.models, options=options)


def _wish_storage(
    model: str, services: Services, *, shelf: "Callable[[], Shelf] | None" = None
) -> "StorageWish | None":
    """What storing a cache is weighed by; none where nobody knows what the model's input costs."""
    from lamella.adapters.clocks.system import SystemClock
    from lamella.adapters.providers.row import StorageWish
    from lamella.core.log.call import CacheUse

    clock = SystemClock()
    # A request of a usual size: long ones have prices of their own.
    some = services.prices.price(model, CacheUse(read=0, write=0, uncached=_SOME), clock.now())
    if some is None:
        return None
    return StorageWish(
        requests=services.settings.cache_storage,
        price=some * 1_000_000 / _SOME,
        count=services.counter.measure(model).count,
        clock=clock,
        shelf=None if shelf is None else shelf(),
    )


def read_answer(answer: object) -> Answer:
    """What a model answered, from the object that a provider's SDK gave."""
    from lamella.adapters.providers.dialects import WireDialects

    return Answer(reply=WireDialects().read(answer))


def begin_settings(model: str, *, services: Services | None = None) -> dict[str, object]:
    """What a conversation that begins with a model gets, where nobody set it: a system prompt, and a window it has."""
    services = services or read_services()
    room = fit_window(model, services=services)
    own = services.fit_budget(services.found, model)
    smaller = _find_room(model, services.found, services)["window"] < services.settings.window
    fitting = {"system": DEFAULT_SYSTEM, **{name: value for name, value in room.items() if smaller or name in own}}
    return {name: value for name, value in fitting.items() if not services.found.is_set(name)}


def fit_window(model: str, *, services: Services | None = None) -> dict[str, object]:
    """How much of a window a conversation has with a model, and what of it is kept for answers, where nobody set it."""
    services = services or read_services()
    room, own = _find_room(model, services.found, services), services.fit_budget(services.found, model)
    # Shares are looked up whenever the conversation is opened: another model may have others.
    fitting: dict[str, object] = room | {name: own[name] for name in room if name in own}
    return {name: value for name, value in fitting.items() if not services.found.is_set(name)}


def configure_chat(given: Mapping[str, object], services: Services) -> Configuration:
    """The settings of a kept conversation that has these of its own, with a window that its model has."""
    found = services.surroundings.configure(given)
    room = fit_room(found, services)
    return services.surroundings.configure({**given, **room}) if room else found


def fit_room(found: Configuration, services: Services) -> dict[str, object]:
    """How the window is used with the model that settings name, as far as nobody set it.

    That is what the user's own facts about the model say; else as much of a window as the model has.
    """
    model = found.settings.model
    own = services.fit_budget(found, model)
    if model is None or found.is_set("window") or "window" in own:
        return own
    room = _find_room(model, found, services)
    fitting = room if room["window"] != found.settings.window else {}
    return {**{name: value for name, value in fitting.items() if not found.is_set(name)}, **own}


def _find_room(model: str, found: Configuration, services: Services) -> dict[str, int]:
    """As much of the window and of the reserve as a model has."""
    from lamella.adapters.providers.facts.user_models import fit_reserve
    from lamella.adapters.providers.places import find_window

    window = min(find_window(model, services.models) or found.settings.window, found.settings.window)
    return {"window": window, "reserve": fit_reserve(window, usual=found.settings.reserve)}


def tell_unready(model: str, *, named: bool = False, services: Services | None = None) -> LamellaError | None:
    """What keeps a model from being asked, such as a key; weights in this process are looked at when they are used.

    ``named`` says that whoever runs this named it.
    """
    import asyncio

    from lamella.adapters.providers.places import runs_here

    services = services or read_services()
    pool = open_pool(services=services)
    pool.name(model if named else None)
    try:
        if runs_here(model):
            check_model(model, named=named, services=services)
            return None
        pool.post(model, answer=1)
    except LamellaError as error:
        return error
    finally:
        asyncio.run(pool.close())
    return None


def mask_keys(text: str) -> str:
    """A text without the keys of this environment: servers repeat them in what they answer."""
    from lamella.adapters.providers.registry import KEY_NAMES

    for name in KEY_NAMES:
        key = os.environ.get(name, "").strip()
        if len(key) >= _SHORTEST_KEY:
            text = text.replace(key, f"({name})")
    return text


def list_keys() -> dict[str, bool]:
    """The variables that keys are read from, and whether each is set."""
    from lamella.adapters.providers.registry import KEY_NAMES

    return {name: bool(os.environ.get(name)) for name in KEY_NAMES}
