"""Wiring: the one place that knows both a port and its adapter, and that reads settings."""

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.adapters.archive.transcript import (
    Transcript,
    load_transcript,
    parse_transcript,
    read_transcript,
    read_turn,
)
from lamella.adapters.clocks.system import SystemClock
from lamella.adapters.providers.dialects import WireDialects
from lamella.adapters.providers.prices import SnapshotPrices
from lamella.adapters.providers.profile_file import load_profiles
from lamella.adapters.providers.profiles import BuiltInProfiles
from lamella.adapters.sources.opening import list_notes, open_sources
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.configuration import (
    Configuration,
    Origin,
    find_misspelt,
    load_configuration,
    look_around,
    mask,
    place_user_file,
)
from lamella.core.log.chronicle import Chronicle
from lamella.core.log.terms import Layout
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.engine.answer import Answer
from lamella.engine.copying import copy_store
from lamella.engine.dialogue import Dialogue
from lamella.engine.keeping import Keeper
from lamella.engine.office import PostOffice
from lamella.engine.replay import Scripted, replay
from lamella.engine.sending import SILENCE, Patience
from lamella.engine.stored import Configured, Desk
from lamella.engine.turn import TurnView
from lamella.engine.world import World
from lamella.errors import LamellaError, SettingError, UsageError
from lamella.meaning import find_faults, make_rules, make_terms
from lamella.ports import ChatProvider, Sources, Store, Summarizer
from lamella.settings import Settings

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress

__all__ = [
    "Configuration",
    "Origin",
    "Transcript",
    "copy_conversations",
    "find_misspelt",
    "list_keys",
    "list_notes",
    "load_archive",
    "load_configuration",
    "load_settings",
    "load_transcript",
    "make_rules",
    "mask",
    "open_desk",
    "open_keeper",
    "open_runner",
    "open_sources",
    "parse_transcript",
    "place_user_file",
    "read_answer",
    "read_transcript",
    "replay_transcript",
    "save_archive",
    "write_request",
]

# A shorter text is no key, and would be found in words.
_SHORTEST_KEY = 8
# Which weights were found to be right, so that a start does not read them through.
_WEIGHTS_RECORD = Path("~/.lamella/weights.json")
# Of a small window, the share that is kept for the answer.
_ANSWER_SHARE = 8


def load_settings(overrides: Mapping[str, object] | None = None) -> Settings:
    """Settings from files and the environment, with what the caller gives on top."""
    return load_configuration(overrides).settings


def open_runner(
    settings: Settings,
    *,
    conversation: str,
    vault: Path | None = None,
    ledger: bool = True,
    summarizer: Summarizer | None = None,
) -> Dialogue:
    """A runner for one conversation, over the adapters that ship with Lamella."""
    world = replace(open_world(vault, facts=settings.model_facts), summarizer=summarizer)
    rules = make_rules(settings, world)
    start = State(conversation=conversation, model=settings.model)
    return Dialogue(world, rules, start, terms=make_terms(settings), ledger=ledger)


def open_world(vault: Path | None, *, facts: str | None = None) -> World:
    """The adapters that ship with Lamella; ``facts`` is a file with facts about models of the user's own."""
    own = load_profiles(Path(facts).expanduser()) if facts else None
    return World(
        counter=OfflineCounter(),
        prices=SnapshotPrices(),
        profiles=own or BuiltInProfiles(),
        sources=open_sources(vault),
        dialects=WireDialects(own),
    )


def read_answer(answer: object) -> Answer:
    """What a model answered, from the object that a provider's SDK gave."""
    return Answer(reply=WireDialects().read(answer))


def open_desk(
    url: str,
    *,
    vault: Path | None = None,
    ledger: bool = True,
    summarizer: Summarizer | None = None,
    create: bool = True,
) -> Desk:
    """A desk over the store at a URL: everything that conversations which last work with.

    Unless ``create``, a store that is not there is an error.
    """
    around = look_around()
    world = replace(open_world(vault, facts=around.configure().settings.model_facts), summarizer=summarizer)

    def configure(given: Mapping[str, object]) -> Configured:
        found = around.configure(given)
        _check_meaning(found)
        return Configured(
            rules=make_rules(found.settings, world), terms=make_terms(found.settings), model=found.settings.model
        )

    return Desk(
        store=_open_store(url, create=create), clock=SystemClock(), world=world, configure=configure, ledger=ledger
    )


def open_office(
    provider: ChatProvider | None = None,
    *,
    progress: "Callable[[Progress], None] | None" = None,
    patience: Patience | None = None,
) -> PostOffice:
    """Where turns are sent from: to a provider that is given, or to those that models name.

    ``progress`` is told how far a model in this process is with reading a prompt in.
    """
    patience = patience or Patience()
    find = partial(open_provider, progress=progress, silence=patience.silence)
    return PostOffice(
        find, clock=SystemClock(), sleep=asyncio.sleep, jitter=random.random, given=provider, patience=patience
    )


def open_provider(
    model: str,
    *,
    named: bool = True,
    progress: "Callable[[Progress], None] | None" = None,
    silence: float = SILENCE,
) -> ChatProvider:
    """The provider that a model's name stands for, with keys from the environment; it bears so much ``silence``.

    ``named`` says that whoever runs this named it, not only a conversation that may have come from somebody else.
    """
    from lamella.adapters.providers.opening import Opening  # SDKs are for those who send
    from lamella.adapters.providers.opening import open_provider as find

    found = load_configuration()
    _check_server(model, found, named=named)
    facts = found.settings.model_facts
    book = load_profiles(Path(facts).expanduser()) if facts else None
    opening = Opening(patience=silence, progress=progress, record=_WEIGHTS_RECORD.expanduser())
    return find(model, keys=os.environ, models=book, opening=opening)


def fit_settings(model: str, *, begins: bool) -> dict[str, object]:
    """What a conversation gets along with a model, where nobody set it: a window that the model has.

    One that ``begins`` gets a layout whose prefix only grows, too: it is what a chat in one sitting is cheapest in.
    """
    from lamella.adapters.providers.local.engine import EngineOptions
    from lamella.adapters.providers.models import BuiltInModels

    settings = load_settings()
    facts = settings.model_facts
    book = load_profiles(Path(facts).expanduser()) if facts else BuiltInModels()
    known = EngineOptions().window if _is_here(model) else book.model(model).window
    window = min(known or settings.window, settings.window)
    fitting: dict[str, object] = {"layout": Layout.IN_PLACE.value} if begins else {}
    if window < settings.window or not begins:
        fitting |= {"window": window, "reserve": min(settings.reserve, window // _ANSWER_SHARE)}
    return {name: value for name, value in fitting.items() if name not in settings.model_fields_set}


def tell_unready(model: str) -> LamellaError | None:
    """What keeps a model from being asked, such as a key; weights in this process are looked at when they are used."""
    if _is_here(model):
        return None
    office = open_office()
    try:
        office.post(model, answer=1)
    except LamellaError as error:
        return error
    finally:
        asyncio.run(office.close())
    return None


def _is_here(model: str) -> bool:
    return model == "local" or model.lower().startswith("gguf:")


def find_bad_settings(found: Configuration) -> list[LamellaError]:
    """Whatever a conversation would refuse; each says where the value was found."""
    from lamella.adapters.stores.opening import locate_store

    facts = found.settings.model_facts
    checks: dict[str, Callable[[], object]] = {
        "store": lambda: locate_store(found.settings.store),
        "model_facts": lambda: load_profiles(Path(facts).expanduser()) if facts else None,
    }
    faults = list(find_faults(found.settings))
    for name, check in checks.items():
        try:
            check()
        except LamellaError as error:
            faults.append(((name,), error))
    return [_place(error, found.tell_places(names)) for names, error in faults]


def _check_meaning(found: Configuration) -> None:
    for names, error in find_faults(found.settings):
        raise _place(error, found.tell_places(names))


def _check_server(model: str, found: Configuration, *, named: bool) -> None:
    """A project's file or a conversation may come from somebody else: no key goes to a server that only they name."""
    if not model.lower().startswith("openai-compatible:") or not os.environ.get("LAMELLA_API_KEY"):
        return
    chosen = found.settings.model == model
    if chosen and found.origins["model"] is Origin.PROJECT:
        who = str(found.files[Origin.PROJECT])
    elif named or chosen:
        return
    else:
        who = "The conversation"
    raise SettingError(
        f"{who} names the server to ask, and LAMELLA_API_KEY would be sent to it.",
        hint="If you trust it, name the model yourself: set LAMELLA_MODEL to it.",
    )


def mask_keys(text: str) -> str:
    """A text without the keys of this environment: servers repeat them in what they answer."""
    from lamella.adapters.providers.opening import KEY_NAMES

    for name in KEY_NAMES:
        key = os.environ.get(name, "").strip()
        if len(key) >= _SHORTEST_KEY:
            text = text.replace(key, f"({name})")
    return text


def list_keys() -> dict[str, bool]:
    """The variables that keys are read from, and whether each is set."""
    from lamella.adapters.providers.opening import KEY_NAMES

    return {name: bool(os.environ.get(name)) for name in KEY_NAMES}


def open_keeper(url: str | None = None, *, create: bool = True) -> Keeper:
    """What can be done with whole conversations, at a URL or in the configured store.

    Unless ``create``, a store that is not there is an error.
    """
    return Keeper(_open_store(url or load_settings().store, create=create), SystemClock())


def copy_conversations(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Each conversation of a store, and what became of it in another: new, extended, same, older, diverged, erased."""
    theirs = _open_store(source, create=False)
    try:
        ours = _open_store(target)
        try:
            yield from copy_store(theirs, ours, SystemClock())
        finally:
            ours.close()
    finally:
        theirs.close()


def save_archive(chronicle: Chronicle, folder: Path, *, vault: Path | None = None) -> Path:
    """Write a conversation as markdown; its id decides the file.

    Only notes that the vault has just as they were are left to be read from it; without a vault every text rides.
    """
    from lamella.adapters.archive.markdown import save_archive as save

    return save(chronicle, folder, sources=open_sources(vault)() if vault is not None else Sources())


def load_archive(path: Path, *, vault: Path | None = None, keeper: Keeper | None = None) -> Chronicle:
    """Read a conversation from markdown; its notes from what a store already holds of it, else from a vault."""
    from lamella.adapters.archive.markdown import load_archive as load

    return load(
        path, open_sources(vault)() if vault is not None else None, held=keeper.read_contents if keeper else None
    )


def has_store(url: str) -> bool:
    """Whether there is a store to read from; of a server only asking it can tell."""
    from lamella.adapters.stores.opening import locate_store

    place = locate_store(url)
    return place is None or place.exists()


def _open_store(url: str, *, create: bool = True) -> Store:
    from lamella.adapters.stores.opening import open_store  # databases are for those who keep conversations

    return open_store(url, create=create)


def replay_transcript(transcript: Transcript, *, overrides: Mapping[str, object], beside: Path) -> Iterator[TurnView]:
    """Every turn of a transcript as it would be sent. Its vault is relative to ``beside``."""
    given = {name: value for name, value in overrides.items() if value is not None}
    found = load_configuration({**transcript.settings(), **given})
    _check_meaning(found)
    settings = found.settings
    vault = beside / os.fsdecode(transcript.vault.encode()) if transcript.vault is not None else None
    runner = open_runner(settings, conversation=transcript.conversation, vault=vault)
    return _numbered(replay(runner, _scripted(transcript, keep_model="model" in given)))


def write_request(turn: TurnView, provider: str, *, answer: int, any_model: bool) -> dict[str, Any]:
    """The body that a provider's SDK would send for a turn; unless ``any_model``, to a model of that provider."""
    facts = load_settings().model_facts
    dialects = WireDialects(load_profiles(Path(facts).expanduser()) if facts else None)
    model = turn.envelope.model
    if model is None:
        raise UsageError("The transcript names no model.", hint="Name one with --model.")
    if not any_model:
        dialects.check_maker(provider, model)
    return dialects.write(provider, turn.chat_request(model=model, answer=answer))


def _numbered(turns: Iterator[TurnView]) -> Iterator[TurnView]:
    """The same turns; an error says in which of them it happened."""
    number = 1
    try:
        for turn in turns:
            yield turn
            number = turn.number + 1
    except LamellaError as error:
        _place(error, f"In turn {number}")
        raise


def _place(error: LamellaError, place: str) -> LamellaError:
    """The same error; its message says where it happened, once."""
    if place and not error.message.startswith(f"{place}: "):
        error.message = f"{place}: {error.message}"
        error.args = (error.message,)
    return error


def _scripted(transcript: Transcript, *, keep_model: bool) -> Iterator[Scripted]:
    """The turns as asked; a model given from outside holds for all of them."""
    for number, turn in enumerate(transcript.turns, start=1):
        asked = read_turn(turn, number, system=transcript.system if number == 1 else None)
        asked = replace(asked, model=None) if keep_model else asked
        yield Scripted(asked=asked, reply=turn.reply, at=turn.at)
