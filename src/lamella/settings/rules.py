"""Interpret settings: the values that conversations and turns need, and errors for values that make no sense.

``build_prompt_settings``, ``build_turn_settings``, ``build_turn_limits`` and ``build_compaction_config`` build those
values. ``iter_setting_errors`` yields every error that settings would cause. ``load_system_parts`` returns the parts
of the system prompt that settings define, as texts or read from a file.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from lamella.conversation.settings import SYSTEM_PART_SETTINGS
from lamella.conversation.turn_runner import TurnLimits
from lamella.conversation.validation import normalize_system_parts
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.budget import TokenBudget
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.compaction.rules import CompactionConfig, KindCompactionConfig, SummaryConfig
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.call import MAX_KEEP_ALIVES
from lamella.core.log.receipts import STEP_ORDER, CompactionStepName, ReplyInPrompt
from lamella.core.log.turn import SecretPolicy, TurnSettings
from lamella.core.text.content import normalize_line_ends
from lamella.core.text.word_lists import WordLists, merge_word_lists
from lamella.errors import BadInputError, LamellaError, SettingError
from lamella.files import MAX_SETTINGS_BYTES, read_regular_file
from lamella.plugins import PluginGroup, call_plugin, find_plugins
from lamella.runners.registry import RUNNERS
from lamella.settings.loading import ResolvedSettings, SettingOrigin
from lamella.settings.model import (
    MAX_TEMPERATURE,
    MIN_TOOL_OUTPUT,
    TURN_SETTING_CHOICES,
    CompactionChainSettings,
    CompactionSettings,
    MemoryScope,
    RecallHintMode,
    Settings,
    SummaryCheck,
    WritePermission,
    find_closest_match,
)
from lamella.settings.word_lists import load_word_lists

if TYPE_CHECKING:
    from lamella.conversation.adapters import Adapters

_Choice = TypeVar("_Choice", bound=StrEnum)

_WINDOW_SETTINGS = ("window", "reserve")
_SHARE_SETTINGS = ("warn", "target", "trigger", "hard")
_LIMIT_SETTINGS = ("turn_seconds", "turn_tokens", "max_cost")


def build_prompt_settings(settings: Settings, adapters: "Adapters") -> PromptSettings:
    """Build the prompt settings of a conversation; raises ``SettingError`` if settings contradict each other."""
    _check_model(settings)
    _check_history_turns(settings)
    _check_temperature(settings)
    _check_linger(settings)
    _check_keep_alive(settings)
    check_runner(settings.runner)
    _check_tool_output(settings)
    check_summarizer_name(settings.summarizer)
    return PromptSettings(
        tokenizer=adapters.counter.get_tokenizer(settings.model),
        plan_layout=choose_layout,
        compaction_config=build_compaction_config(
            settings.compaction, None, check_by_model=_checks_summaries_by_model(settings)
        ),
        runner_configs={
            runner: build_compaction_config(
                settings.compaction, runner, check_by_model=_checks_summaries_by_model(settings)
            )
            for runner in settings.compaction.runners
        },
        budget=TokenBudget(**{name: getattr(settings, name) for name in (*_WINDOW_SETTINGS, *_SHARE_SETTINGS)}),
        secrets=_parse_choice("secrets", settings.secrets, SecretPolicy),
    )


def build_turn_settings(settings: Settings) -> TurnSettings:
    """Build the turn settings: the settings that the bytes of a conversation's requests follow from."""
    not_settings = ("cues", "hidden_rules", "hidden_excerpts", "names_recall")
    values = {name: getattr(settings, name) for name in TurnSettings.__struct_fields__ if name not in not_settings}
    values |= {name: _parse_choice(name, values[name], choices) for name, choices in TURN_SETTING_CHOICES.items()}
    return TurnSettings(**values, hidden_rules=False, hidden_excerpts=False, names_recall=False)


def get_write_permission(settings: Settings, name: str = "note_writes") -> WritePermission:
    """Return whether models may write notes, or to the memory, as the setting ``name`` says."""
    return _parse_choice(name, getattr(settings, name), WritePermission)


def looser_write_rule_warnings(settings: Settings, overrides: Mapping[str, object]) -> list[str]:
    """Return a warning for each write permission that a conversation sets looser than the user's own settings.

    Such a value has no effect: a conversation may only make these permissions stricter.
    """
    warnings: list[str] = []
    for name in ("note_writes", "memory_writes"):
        own, requested = get_write_permission(settings, name), overrides.get(name)
        # The members of WritePermission go from the loosest to the strictest.
        if requested in list(WritePermission)[: list(WritePermission).index(own)]:
            warnings.append(
                f"{name} {requested} has no effect: your own settings say {own}, and a conversation may only be stricter. "
                f"Set it in your settings file, or as LAMELLA_{name.upper()}."
            )
    return warnings


def recall_hints_enabled(settings: Settings) -> bool:
    """Return whether excerpts of related messages that left the prompt are added to a question."""
    return _parse_choice("recall_hint", settings.recall_hint, RecallHintMode) is RecallHintMode.ON


def iter_setting_errors(settings: Settings) -> Iterator[tuple[tuple[str, ...], LamellaError]]:
    """Yield every error that these settings would cause, each with the names of the settings it concerns."""
    compaction = settings.compaction
    checks: dict[tuple[str, ...], Callable[[], object]] = {
        _WINDOW_SETTINGS: lambda: TokenBudget(window=settings.window, reserve=settings.reserve),
        **{
            (name,): partial(_parse_choice, name, getattr(settings, name), choices)
            for name, choices in TURN_SETTING_CHOICES.items()
        },
        ("model",): lambda: _check_model(settings),
        ("history_turns",): lambda: _check_history_turns(settings),
        ("temperature",): lambda: _check_temperature(settings),
        ("cache_storage",): lambda: _check_cache_storage(settings),
        ("keep_alive",): lambda: _check_keep_alive(settings),
        ("system",): lambda: normalize_system_parts(settings.system or ""),
        ("secrets",): lambda: _parse_choice("secrets", settings.secrets, SecretPolicy),
        ("recall_hint",): lambda: recall_hints_enabled(settings),
        **{(name,): partial(get_write_permission, settings, name) for name in ("note_writes", "memory_writes")},
        ("memory",): lambda: _parse_choice("memory", settings.memory, MemoryScope),
        ("linger",): lambda: _check_linger(settings),
        ("tool_output",): lambda: _check_tool_output(settings),
        _SHARE_SETTINGS: lambda: TokenBudget(**{name: getattr(settings, name) for name in _SHARE_SETTINGS}),
        ("summarizer",): lambda: check_summarizer_name(settings.summarizer),
        ("summary_check",): lambda: _checks_summaries_by_model(settings),
        ("runner",): lambda: check_runner(settings.runner),
        ("steps", *_LIMIT_SETTINGS): lambda: build_turn_limits(settings),
        ("compaction",): lambda: [
            build_compaction_config(compaction, runner) for runner in (None, *compaction.runners)
        ],
    }
    for names, check in checks.items():
        try:
            check()
        except LamellaError as error:
            yield names, error


def _check_model(settings: Settings) -> None:
    # An empty text is allowed: it is the usual way to unset a value, above all in the environment.
    if settings.model and not settings.model.strip():
        raise SettingError("model is blank.", hint="Name one, as in anthropic:NAME, or leave it out.")


def _check_history_turns(settings: Settings) -> None:
    if settings.history_turns is not None and settings.history_turns < 1:
        raise SettingError(f"Invalid history_turns: {settings.history_turns}", hint="Show at least 1 earlier turn.")


def _check_temperature(settings: Settings) -> None:
    if settings.temperature is not None and not 0 <= settings.temperature <= MAX_TEMPERATURE:
        raise SettingError(
            f"Invalid temperature: {settings.temperature}",
            hint=f"Choose a number from 0 to {MAX_TEMPERATURE}.",
        )


def _check_linger(settings: Settings) -> None:
    if settings.linger < 0:
        raise SettingError(f"Invalid linger: {settings.linger}", hint="Give a number of turns, or 0.")


def _check_tool_output(settings: Settings) -> None:
    if settings.tool_output < MIN_TOOL_OUTPUT:
        raise SettingError(
            f"Invalid tool_output: {settings.tool_output}",
            hint=f"Give a number of characters from {MIN_TOOL_OUTPUT:,}.",
        )


def _check_cache_storage(settings: Settings) -> None:
    if settings.cache_storage < 0:
        raise SettingError(
            f"Invalid cache_storage: {settings.cache_storage}",
            hint="Give the number of requests that you expect in an hour, or 0 to store nothing.",
        )


def _check_keep_alive(settings: Settings) -> None:
    if not 0 <= settings.keep_alive <= MAX_KEEP_ALIVES:
        raise SettingError(
            f"Invalid keep_alive: {settings.keep_alive}",
            hint=f"Give the number of keep-alives between two messages, at most {MAX_KEEP_ALIVES}, or 0 for none.",
        )


def build_turn_limits(settings: Settings) -> TurnLimits:
    """Build the limits of a turn; raises ``SettingError`` for limits that no turn could keep."""
    if settings.steps < 1:
        raise SettingError(f"Invalid steps: {settings.steps}", hint="Give a number of tool rounds, at least 1.")
    for name in _LIMIT_SETTINGS:
        value = getattr(settings, name)
        if value is not None and not 0 < value < inf:
            raise SettingError(f"Invalid {name}: {value}", hint="Give a number above 0, or none for no limit.")
    return TurnLimits(
        steps=settings.steps,
        turn_seconds=settings.turn_seconds,
        turn_tokens=settings.turn_tokens,
        # Through str: Decimal(0.1) would carry the binary error of the float.
        max_cost=None if settings.max_cost is None else Decimal(str(settings.max_cost)),
    )


def check_runner(name: str) -> str:
    """Return the name of a runner if it exists; raises ``SettingError`` otherwise."""
    if name not in RUNNERS:
        raise SettingError(f"There is no runner {name!r}.", hint=f"Choose one of: {', '.join(RUNNERS)}.")
    return name


def check_summarizer_name(name: str) -> str:
    """Return the summarizer's name if it is not blank: ``same``, ``off`` or the name of another model."""
    if not name.strip():
        raise SettingError("summarizer is blank.", hint="Choose same, off, or another model, as in anthropic:NAME.")
    return name


# Settings of a summary have short names; the config names what each of them limits.
_SUMMARY_FIELDS = {"reads": "max_input_tokens", "writes": "max_output_tokens", "exact": "max_exact_tokens"}


def _checks_summaries_by_model(settings: Settings) -> bool:
    return _parse_choice("summary_check", settings.summary_check, SummaryCheck) is SummaryCheck.MODEL


def build_compaction_config(
    settings: CompactionSettings, runner: str | None, *, check_by_model: bool = False
) -> CompactionConfig:
    """Build the compaction config of a runner; its own settings override those for all runners.

    ``runner`` is None for the config that applies to all runners. ``check_by_model`` is the setting ``summary_check``.
    """
    for name in sorted(settings.runners):
        check_runner(name)
    own = settings.runners.get(runner or "", CompactionChainSettings())
    steps = settings.steps if own.steps is None else own.steps
    words = settings.words if own.words is None else own.words
    cues = settings.cues if own.cues is None else own.cues
    lists = settings.word_lists if own.word_lists is None else own.word_lists
    extra = tuple(sorted({cue.strip().casefold() for cue in cues or () if cue.strip()}))
    words_of_languages = load_word_lists(*map(Path, lists or ()))
    every_kind = _build_kind_config(settings.every_kind, own.every_kind)
    kinds = {
        _parse_choice("kind", name, ArtifactKind): _build_kind_config(
            settings.every_kind, own.every_kind, settings.kinds.get(name), own.kinds.get(name)
        )
        for name in {**settings.kinds, **own.kinds}
    }
    summary = _merge_set_values(settings.summary, own.summary)
    return CompactionConfig(
        choose_replies=_choose_replies_with_plugins if find_plugins(PluginGroup.COMPACTION_STEPS) else None,
        steps=STEP_ORDER if steps is None else tuple(_parse_choice("step", name, CompactionStepName) for name in steps),
        extra_acknowledgements=frozenset(word.casefold() for word in words or ()),
        default_kind=every_kind,
        kinds=kinds,
        summary=SummaryConfig(
            **{_SUMMARY_FIELDS.get(name, name): value for name, value in summary.items()}, check_by_model=check_by_model
        ),
        protects_current_stage=bool(settings.keep_stage if own.keep_stage is None else own.keep_stage),
        words=merge_word_lists([words_of_languages, WordLists(directive_cues=extra)]) if extra else words_of_languages,
    )


def _choose_replies_with_plugins(replies: Sequence[ReplyInPrompt]) -> Sequence[str]:
    """Return the replies that plugins choose to shorten first."""
    chosen: list[str] = []
    known = {one.id for one in replies}
    for name, choose in find_plugins(PluginGroup.COMPACTION_STEPS).items():
        given = call_plugin(
            PluginGroup.COMPACTION_STEPS,
            name,
            partial(choose, replies),
            is_right=lambda ids: set(ids) <= known,
        )
        chosen += [one for one in given or () if one not in chosen]
    return chosen


def _build_kind_config(*configs: Struct | None) -> KindCompactionConfig:
    return KindCompactionConfig(**_merge_set_values(*configs))


def _merge_set_values(*structs: Struct | None) -> dict[str, Any]:
    """Merge the values that are set; a later struct overrides an earlier one."""
    values: dict[str, Any] = {}
    for model in structs:
        found = asdict(model) if model is not None else {}
        values.update({name: value for name, value in found.items() if value is not None})
    return values


def _parse_choice(name: str, value: str, choices: type[_Choice]) -> _Choice:
    try:
        return choices(value)
    except ValueError as error:
        similar = find_closest_match(value, list(choices))
        meant = f"Did you mean {similar}? " if similar else ""
        raise SettingError(
            f"There is no {name} {value!r}.", hint=f"{meant}Choose one of: {', '.join(choices)}."
        ) from error


# Parts of the system prompt.

_ORIGINS_BY_PRECEDENCE = tuple(SettingOrigin)
# If both come from the same source, the first one wins.
_INSTRUCTION_SETTINGS = ("instructions", "instructions_file")


def load_system_parts(resolved: ResolvedSettings, names: Collection[str] = SYSTEM_PART_SETTINGS) -> dict[str, str]:
    """Return the parts of the system prompt that these settings define.

    If both ``instructions`` and ``instructions_file`` are set, the one with the higher precedence wins.
    """
    settings = resolved.settings
    parts: dict[str, str] = {}
    if "system" in names and settings.system is not None:
        parts |= normalize_system_parts(settings.system)
    given = [name for name in _INSTRUCTION_SETTINGS if name in names and getattr(settings, name) is not None]
    if given:
        # max() returns the first of equals, so the order of _INSTRUCTIONS decides within one source.
        highest = max(given, key=lambda name: _ORIGINS_BY_PRECEDENCE.index(resolved.origins[name]))
        value = str(getattr(settings, highest))
        if highest == "instructions_file":
            _check_within_project(value, resolved)
            value = _read_instructions(value)
        parts["instructions"] = value
    return parts


def _check_within_project(path: str, resolved: ResolvedSettings) -> None:
    """Raise ``SettingError`` if a project file names instructions outside its own folder.

    The project file may come from another author. It must not send the user's files to a model.
    """
    if not path or resolved.origins["instructions_file"] is not SettingOrigin.PROJECT:
        return
    project = resolved.files[SettingOrigin.PROJECT]
    if not Path(path).resolve().is_relative_to(project.parent.resolve()):
        raise SettingError(
            f"The instructions that {project} names are outside its folder: {path}.",
            hint="Move them into the project, or name them in your own settings.",
        )


def _read_instructions(file_path: str) -> str:
    if not file_path:
        return ""
    path = Path(file_path)
    try:
        return normalize_line_ends(read_regular_file(path.expanduser(), limit=MAX_SETTINGS_BYTES).decode())
    except (OSError, UnicodeDecodeError, RuntimeError, BadInputError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None) or error
        raise SettingError(
            f"The instructions in {path} cannot be read: {why}.", hint="Check instructions_file, or unset it."
        ) from error
