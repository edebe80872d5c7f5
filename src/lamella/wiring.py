"""Wiring: the one place that knows both a port and its adapter, and that reads settings."""

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

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
from lamella.adapters.sources.nowhere import Nowhere
from lamella.adapters.sources.vault import Vault, parse_image
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.configuration import Configuration, Origin, load_configuration, look_around, mask, place_user_file
from lamella.core.artifacts.model import Kind
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.rules import STEP_ORDER, Compaction, KindRules, StepName, SummaryRules
from lamella.core.history.chronicle import Chronicle
from lamella.core.history.resume import resume
from lamella.core.history.state import Rules
from lamella.core.layers.model import CarryForward, History, Layout
from lamella.core.ledger.answered import Answered
from lamella.core.values import replace
from lamella.errors import LamellaError, NotAvailableError, SettingError, UsageError
from lamella.ports import ChatProvider, SourceReader, Store, Summarizer
from lamella.runners.copying import copy_store
from lamella.runners.keeping import Keeper
from lamella.runners.office import PostOffice
from lamella.runners.replay import Scripted, replay
from lamella.runners.stored import Configured, Desk
from lamella.runners.turn import Turn
from lamella.runners.turns import TurnRunner
from lamella.runners.world import World
from lamella.settings import ChainSettings, CompactionSettings, Settings

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress

__all__ = [
    "Configuration",
    "Origin",
    "Transcript",
    "copy_conversations",
    "list_keys",
    "load_archive",
    "load_configuration",
    "load_settings",
    "load_transcript",
    "mask",
    "open_desk",
    "open_keeper",
    "open_runner",
    "parse_image",
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
_RUNNERS = ("chat",)
# Which weights were found to be right, so that a start does not read them through.
_WEIGHTS_RECORD = Path("~/.lamella/weights.json")
# Of a small window, the share that is kept for the answer.
_ANSWER_SHARE = 8
_Choice = TypeVar("_Choice", bound=StrEnum)

# Documented choices that this version does not offer, and what to use meanwhile.
_LATER = {
    ("layout", "auto"): "library or in_place",
}


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
) -> TurnRunner:
    """A runner for one conversation, over the adapters that ship with Lamella."""
    world = replace(open_world(vault, facts=settings.model_facts), summarizer=summarizer)
    rules = make_rules(settings, world)
    start = resume((), rules, conversation=conversation, model=settings.model)
    return TurnRunner(world, rules, start, ledger=ledger)


def open_world(vault: Path | None, *, facts: str | None = None) -> World:
    """The adapters that ship with Lamella; ``facts`` is a file with facts about models of the user's own."""
    own = load_profiles(Path(facts).expanduser()) if facts else None
    return World(
        counter=OfflineCounter(),
        prices=SnapshotPrices(),
        profiles=own or BuiltInProfiles(),
        sources=Vault(vault) if vault is not None else None,
        dialects=WireDialects(own),
    )


def read_answer(answer: object) -> Answered:
    """What a model answered, from the object that a provider's SDK gave."""
    return Answered(reply=WireDialects().read(answer))


def make_rules(settings: Settings, world: World, *, runner: str = "chat") -> Rules:
    """What settings mean for a conversation; raises if they contradict each other."""
    if settings.history_turns is not None and settings.history_turns < 1:
        raise SettingError(f"history_turns is {settings.history_turns}.", hint="Show at least 1 earlier turn.")
    return Rules(
        measure=world.counter.measure(settings.model),
        layout=_choose("layout", settings.layout, Layout),
        carry_forward=_choose("carry_forward", settings.carry_forward, CarryForward),
        history=_choose("history", settings.history, History),
        history_turns=settings.history_turns,
        compaction=make_compaction(settings.compaction, runner),
        image_notes=settings.image_notes,
        budget=Budget(
            window=settings.window,
            reserve=settings.reserve,
            warn=settings.warn,
            target=settings.target,
            trigger=settings.trigger,
            hard=settings.hard,
        ),
    )


def make_compaction(settings: CompactionSettings, runner: str) -> Compaction:
    """How the chain runs for a runner: its own settings where it has some, else those for all."""
    unknown = sorted(set(settings.runners) - set(_RUNNERS))
    if unknown:
        raise SettingError(f"There is no runner {unknown[0]!r}.", hint=f"Choose one of: {', '.join(_RUNNERS)}.")
    own = settings.runners.get(runner, ChainSettings())
    steps = settings.steps if own.steps is None else own.steps
    words = settings.words if own.words is None else own.words
    every_kind = _kind_rules(settings.every_kind, own.every_kind)
    kinds = {
        _choose("kind", name, Kind): _kind_rules(
            settings.every_kind, own.every_kind, settings.kinds.get(name), own.kinds.get(name)
        )
        for name in {**settings.kinds, **own.kinds}
    }
    return Compaction(
        steps=STEP_ORDER if steps is None else tuple(_choose("step", name, StepName) for name in steps),
        words=frozenset(word.casefold() for word in words or ()),
        every_kind=every_kind,
        kinds=kinds,
        summary=SummaryRules(**_given(settings.summary, own.summary)),
    )


def _kind_rules(*nearer: BaseModel | None) -> KindRules:
    return KindRules(**_given(*nearer))


def _given(*nearer: BaseModel | None) -> dict[str, Any]:
    """What models set, the later over the earlier."""
    values: dict[str, Any] = {}
    for model in nearer:
        values.update(model.model_dump(exclude_none=True) if model is not None else {})
    return values


def open_desk(
    url: str, *, vault: Path | None = None, ledger: bool = True, summarizer: Summarizer | None = None
) -> Desk:
    """A desk over the store at a URL: everything that conversations which last work with."""
    around = look_around()
    world = replace(open_world(vault, facts=around.configure().settings.model_facts), summarizer=summarizer)

    def configure(given: Mapping[str, object]) -> Configured:
        settings = around.configure(given).settings
        return Configured(rules=make_rules(settings, world), model=settings.model)

    return Desk(store=_open_store(url), clock=SystemClock(), world=world, configure=configure, ledger=ledger)


def open_office(
    provider: ChatProvider | None = None, *, progress: "Callable[[Progress], None] | None" = None
) -> PostOffice:
    """Where turns are sent from: to a provider that is given, or to those that models name.

    ``progress`` is told how far a model in this process is with reading a prompt in.
    """
    find = partial(open_provider, progress=progress)
    return PostOffice(find, clock=SystemClock(), sleep=asyncio.sleep, jitter=random.random, given=provider)


def open_provider(
    model: str, *, named: bool = True, progress: "Callable[[Progress], None] | None" = None
) -> ChatProvider:
    """The provider that a model's name stands for, with keys from the environment.

    ``named`` says that whoever runs this named it, not only a conversation that may have come from somebody else.
    """
    from lamella.adapters.providers.opening import Opening  # SDKs are for those who send
    from lamella.adapters.providers.opening import open_provider as find

    found = load_configuration()
    _check_server(model, found, named=named)
    facts = found.settings.model_facts
    book = load_profiles(Path(facts).expanduser()) if facts else None
    return find(
        model, keys=os.environ, models=book, opening=Opening(progress=progress, record=_WEIGHTS_RECORD.expanduser())
    )


def fit_settings(model: str, *, begins: bool) -> dict[str, object]:
    """What a conversation gets along with a model, where nobody set it: a window that the model has.

    One that ``begins`` gets a layout whose prefix only grows, too: it is what a chat in one sitting is cheapest in.
    """
    from lamella.adapters.providers.local.engine import EngineOptions
    from lamella.adapters.providers.models import BuiltInModels

    settings = load_settings()
    facts = settings.model_facts
    book = load_profiles(Path(facts).expanduser()) if facts else BuiltInModels()
    here = model == "local" or model.lower().startswith("gguf:")
    known = EngineOptions().window if here else book.model(model).window
    window = min(known or settings.window, settings.window)
    fitting: dict[str, object] = {"layout": Layout.IN_PLACE.value} if begins else {}
    if window < settings.window or not begins:
        fitting |= {"window": window, "reserve": min(settings.reserve, window // _ANSWER_SHARE)}
    return {name: value for name, value in fitting.items() if name not in settings.model_fields_set}


def open_sources(folder: Path) -> SourceReader:
    """The notes and files below a folder."""
    return Vault(folder)


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


def open_keeper(url: str | None = None) -> Keeper:
    """What can be done with whole conversations, at a URL or in the configured store."""
    return Keeper(_open_store(url or load_settings().store), SystemClock())


def copy_conversations(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Each conversation of a store, and what became of it in another: new, extended, same, older, diverged, erased."""
    theirs, ours = _open_store(source), _open_store(target)
    try:
        yield from copy_store(theirs, ours, SystemClock())
    finally:
        theirs.close()
        ours.close()


def save_archive(chronicle: Chronicle, folder: Path, *, vault: Path | None = None) -> Path:
    """Write a conversation as markdown; its id decides the file.

    Only notes that the vault has just as they were are left to be read from it; without a vault every text rides.
    """
    from lamella.adapters.archive.markdown import save_archive as save

    return save(chronicle, folder, sources=Vault(vault) if vault is not None else Nowhere())


def load_archive(path: Path, *, vault: Path | None = None, keeper: Keeper | None = None) -> Chronicle:
    """Read a conversation from markdown; its notes from what a store already holds of it, else from a vault."""
    from lamella.adapters.archive.markdown import load_archive as load

    return load(path, Vault(vault) if vault is not None else None, held=keeper.read_contents if keeper else None)


def _open_store(url: str) -> Store:
    from lamella.adapters.stores.opening import open_store  # databases are for those who keep conversations

    if not url.startswith("sqlite:///~"):
        return open_store(url)
    path = Path(url.removeprefix("sqlite:///")).expanduser()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_store(f"sqlite:///{path}")


def replay_transcript(transcript: Transcript, *, overrides: Mapping[str, object], beside: Path) -> Iterator[Turn]:
    """Every turn of a transcript as it would be sent. Its vault is relative to ``beside``."""
    given = {name: value for name, value in overrides.items() if value is not None}
    settings = load_settings({**transcript.settings(), **given})
    vault = beside / os.fsdecode(transcript.vault.encode()) if transcript.vault is not None else None
    runner = open_runner(settings, conversation=transcript.conversation, vault=vault)
    return _numbered(replay(runner, _scripted(transcript, keep_model="model" in given)))


def write_request(turn: Turn, provider: str, *, answer: int, any_model: bool) -> dict[str, Any]:
    """The body that a provider's SDK would send for a turn; unless ``any_model``, to a model of that provider."""
    facts = load_settings().model_facts
    dialects = WireDialects(load_profiles(Path(facts).expanduser()) if facts else None)
    model = turn.envelope.model
    if model is None:
        raise UsageError("The transcript names no model.", hint="Name one with --model.")
    if not any_model:
        dialects.check_maker(provider, model)
    return dialects.write(provider, turn.chat_request(model=model, answer=answer))


def _numbered(turns: Iterator[Turn]) -> Iterator[Turn]:
    """The same turns; an error says in which of them it happened."""
    number = 1
    try:
        for turn in turns:
            yield turn
            number = turn.number + 1
    except LamellaError as error:
        place = f"In turn {number}: "
        if not error.message.startswith(place):
            error.message = place + error.message
            error.args = (error.message,)
        raise


def _scripted(transcript: Transcript, *, keep_model: bool) -> Iterator[Scripted]:
    """The turns as asked; a model given from outside holds for all of them."""
    for number, turn in enumerate(transcript.turns, start=1):
        asked = read_turn(turn, number, system=transcript.system if number == 1 else None)
        asked = replace(asked, model=None) if keep_model else asked
        yield Scripted(asked=asked, reply=turn.reply, at=turn.at)


def _choose(name: str, value: str, choices: type[_Choice]) -> _Choice:
    if (name, value) in _LATER:
        raise NotAvailableError(
            f"{name} {value!r} is not available in this version.", hint=f"Use {_LATER[name, value]} for now."
        )
    try:
        return choices(value)
    except ValueError as error:
        raise SettingError(f"There is no {name} {value!r}.", hint=f"Choose one of: {', '.join(choices)}.") from error
