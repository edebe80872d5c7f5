"""What settings mean: the rules of a conversation, and what is wrong with values that mean nothing."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from lamella.core.artifacts.model import Kind
from lamella.core.budget.thresholds import Budget
from lamella.core.compaction.fitting import Rules
from lamella.core.compaction.rules import ChainRules, KindRules, SummaryRules
from lamella.core.log.call import MOST_KEPT
from lamella.core.log.receipt import STEP_ORDER, StepName
from lamella.core.log.terms import SecretRule, Terms
from lamella.core.planning.layouts import place
from lamella.core.text.said.wishes import CUES
from lamella.engine.checks import check_parts
from lamella.engine.sending.limits import TurnLimits
from lamella.errors import LamellaError, SettingError
from lamella.runners.registry import RUNNERS
from lamella.settings.model import ChainSettings, CompactionSettings, Settings
from lamella.settings.values import CHOICES, HOTTEST, LEAST_OUTPUT, HintRule, MemoryUse, WriteRule, find_near

if TYPE_CHECKING:
    from lamella.engine.dialogue.world import World

_Choice = TypeVar("_Choice", bound=StrEnum)

_ROOM = ("window", "reserve")
_SHARES = ("warn", "target", "trigger", "hard")
_MOST = ("turn_seconds", "turn_tokens", "max_cost")


def make_rules(settings: Settings, world: "World") -> Rules:
    """What settings mean for a conversation; raises if they contradict each other."""
    _check_model(settings)
    _check_history_turns(settings)
    _check_temperature(settings)
    _check_linger(settings)
    _check_keep_alive(settings)
    check_runner(settings.runner)
    _check_output(settings)
    check_summarizer_name(settings.summarizer)
    return Rules(
        measure=world.counter.measure(settings.model),
        place=place,
        chain=make_compaction(settings.compaction, None),
        chains={runner: make_compaction(settings.compaction, runner) for runner in settings.compaction.runners},
        budget=Budget(**{name: getattr(settings, name) for name in (*_ROOM, *_SHARES)}),
        secrets=_choose("secrets", settings.secrets, SecretRule),
    )


def make_terms(settings: Settings) -> Terms:
    """What the bytes of a conversation's requests follow from."""
    values = {name: getattr(settings, name) for name in Terms.__struct_fields__ if name != "cues"}
    values |= {name: _choose(name, values[name], choices) for name, choices in CHOICES.items()}
    return Terms(**values, cues=make_compaction(settings.compaction, settings.runner).own_cues)


def find_write_rule(settings: Settings, name: str = "note_writes") -> WriteRule:
    """Whether models may write notes, or to the memory, as the setting of that name says."""
    return _choose(name, getattr(settings, name), WriteRule)


def tell_laxer(settings: Settings, given: Mapping[str, object]) -> list[str]:
    """What is to be said of rules for writing that a conversation sets laxer than the user's own: they do nothing."""
    told: list[str] = []
    for name in ("note_writes", "memory_writes"):
        own, wish = find_write_rule(settings, name), given.get(name)
        if wish in list(WriteRule)[: list(WriteRule).index(own)]:
            told.append(
                f"{name} {wish} has no effect: your own settings say {own}, and a conversation may only be stricter. "
                f"Set it in your settings file, or as LAMELLA_{name.upper()}."
            )
    return told


def find_hint_rule(settings: Settings) -> bool:
    """Whether what left the prompt and speaks of the same goes with a question."""
    return _choose("recall_hint", settings.recall_hint, HintRule) is HintRule.ON


def find_faults(settings: Settings) -> Iterator[tuple[tuple[str, ...], LamellaError]]:
    """Whatever ``make_rules`` would refuse, each with the settings that it is about."""
    compaction = settings.compaction
    checks: dict[tuple[str, ...], Callable[[], object]] = {
        _ROOM: lambda: Budget(window=settings.window, reserve=settings.reserve),
        **{(name,): partial(_choose, name, getattr(settings, name), choices) for name, choices in CHOICES.items()},
        ("model",): lambda: _check_model(settings),
        ("history_turns",): lambda: _check_history_turns(settings),
        ("temperature",): lambda: _check_temperature(settings),
        ("cache_storage",): lambda: _check_storage(settings),
        ("keep_alive",): lambda: _check_keep_alive(settings),
        ("system",): lambda: check_parts(settings.system or ""),
        ("secrets",): lambda: _choose("secrets", settings.secrets, SecretRule),
        ("recall_hint",): lambda: find_hint_rule(settings),
        **{(name,): partial(find_write_rule, settings, name) for name in ("note_writes", "memory_writes")},
        ("memory",): lambda: _choose("memory", settings.memory, MemoryUse),
        ("linger",): lambda: _check_linger(settings),
        ("tool_output",): lambda: _check_output(settings),
        _SHARES: lambda: Budget(**{name: getattr(settings, name) for name in _SHARES}),
        ("summarizer",): lambda: check_summarizer_name(settings.summarizer),
        ("runner",): lambda: check_runner(settings.runner),
        ("steps", *_MOST): lambda: make_limits(settings),
        ("compaction",): lambda: [make_compaction(compaction, runner) for runner in (None, *compaction.runners)],
    }
    for names, check in checks.items():
        try:
            check()
        except LamellaError as error:
            yield names, error


def _check_model(settings: Settings) -> None:
    # No letters at all are how many say that there is none, in the environment above all.
    if settings.model and not settings.model.strip():
        raise SettingError("model is blank.", hint="Name one, as in anthropic:NAME, or leave it out.")


def _check_history_turns(settings: Settings) -> None:
    if settings.history_turns is not None and settings.history_turns < 1:
        raise SettingError(f"history_turns is {settings.history_turns}.", hint="Show at least 1 earlier turn.")


def _check_temperature(settings: Settings) -> None:
    if settings.temperature is not None and not 0 <= settings.temperature <= HOTTEST:
        raise SettingError(
            f"temperature is {settings.temperature}.", hint=f"Choose a number from 0, which is steady, to {HOTTEST}."
        )


def _check_linger(settings: Settings) -> None:
    if settings.linger < 0:
        raise SettingError(f"linger is {settings.linger}.", hint="Give how many turns, or 0 for none.")


def _check_output(settings: Settings) -> None:
    if settings.tool_output < LEAST_OUTPUT:
        raise SettingError(
            f"tool_output is {settings.tool_output}.", hint=f"Give a number of characters from {LEAST_OUTPUT:,}."
        )


def _check_storage(settings: Settings) -> None:
    if settings.cache_storage < 0:
        raise SettingError(
            f"cache_storage is {settings.cache_storage}.",
            hint="Say how many requests you expect in an hour, or 0 to store nothing.",
        )


def _check_keep_alive(settings: Settings) -> None:
    if not 0 <= settings.keep_alive <= MOST_KEPT:
        raise SettingError(
            f"keep_alive is {settings.keep_alive}.",
            hint=f"Choose how often the cache is kept while nobody asks, at most {MOST_KEPT} times, or 0 for never.",
        )


def make_limits(settings: Settings) -> TurnLimits:
    """How far a turn may go; raises for what no turn could keep within."""
    if settings.steps < 1:
        raise SettingError(f"steps is {settings.steps}.", hint="Give how many rounds of tools, at least 1.")
    for name in _MOST:
        value = getattr(settings, name)
        if value is not None and not 0 < value < inf:
            raise SettingError(f"{name} is {value}.", hint="Give a number above 0, or none for no limit.")
    return TurnLimits(
        steps=settings.steps,
        turn_seconds=settings.turn_seconds,
        turn_tokens=settings.turn_tokens,
        max_cost=None if settings.max_cost is None else Decimal(str(settings.max_cost)),
    )


def check_runner(name: str) -> str:
    """A way of answering that there is, by its name."""
    if name not in RUNNERS:
        raise SettingError(f"There is no runner {name!r}.", hint=f"Choose one of: {', '.join(RUNNERS)}.")
    return name


def check_summarizer_name(name: str) -> str:
    """Who writes summaries: the model of the conversation, nobody, or another model."""
    if not name.strip():
        raise SettingError("summarizer is blank.", hint="Choose same, off, or another model, as in anthropic:NAME.")
    return name


def make_compaction(settings: CompactionSettings, runner: str | None) -> ChainRules:
    """How the chain runs for a runner: its own settings where it has some, else those for all."""
    for name in sorted(settings.runners):
        check_runner(name)
    own = settings.runners.get(runner or "", ChainSettings())
    steps = settings.steps if own.steps is None else own.steps
    words = settings.words if own.words is None else own.words
    cues = settings.cues if own.cues is None else own.cues
    every_kind = _kind_rules(settings.every_kind, own.every_kind)
    kinds = {
        _choose("kind", name, Kind): _kind_rules(
            settings.every_kind, own.every_kind, settings.kinds.get(name), own.kinds.get(name)
        )
        for name in {**settings.kinds, **own.kinds}
    }
    return ChainRules(
        steps=STEP_ORDER if steps is None else tuple(_choose("step", name, StepName) for name in steps),
        words=frozenset(word.casefold() for word in words or ()),
        every_kind=every_kind,
        kinds=kinds,
        summary=SummaryRules(**_given(settings.summary, own.summary)),
        keep_stage=bool(settings.keep_stage if own.keep_stage is None else own.keep_stage),
        cues=CUES | frozenset(cue.strip() for cue in cues or () if cue.strip()),
    )


def _kind_rules(*nearer: Struct | None) -> KindRules:
    return KindRules(**_given(*nearer))


def _given(*nearer: Struct | None) -> dict[str, Any]:
    """What models set, the later over the earlier."""
    values: dict[str, Any] = {}
    for model in nearer:
        found = asdict(model) if model is not None else {}
        values.update({name: value for name, value in found.items() if value is not None})
    return values


def _choose(name: str, value: str, choices: type[_Choice]) -> _Choice:
    try:
        return choices(value)
    except ValueError as error:
        near = find_near(value, list(choices))
        meant = f"Did you mean {near}? " if near else ""
        raise SettingError(
            f"There is no {name} {value!r}.", hint=f"{meant}Choose one of: {', '.join(choices)}."
        ) from error
