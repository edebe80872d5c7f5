"""Settings of one conversation: ``--set NAME=VALUE`` on the command line, and ``/set`` in a chat."""

import json
from collections.abc import Iterable

from lamella.cli.chat.input import match_prefix, match_prefix_after_word
from lamella.cli.chat.session import ChatSession
from lamella.cli.config import format_setting_value, settings_to_json
from lamella.cli.output import escape_line, print_text, warn_about_looser_writes
from lamella.conversation.turn import TurnRequest
from lamella.conversation.validation import check_text
from lamella.errors import UsageError
from lamella.schemas.formatting import truncate_words
from lamella.settings.model import list_accepted_words
from lamella.wiring import SETTING_NAMES, SettingOrigin, check_name, describe_setting_type, parse_setting_value

# Settings that cannot be changed inside a conversation, with a hint where to set them instead.
_UNSETTABLE_HINTS = {
    "model": "Use --model, or /model in a chat.",
    "store": "Leave the chat and open another with --store.",
    **dict.fromkeys(
        (
            "profile",
            "model_facts",
            "index_folder",
            "cache_storage",
            "log_preview",
            "mcp",
            "memory",
            "memory_folder",
            "workflow_folder",
            "note_backups",
            "web_search",
            "private_addresses",
            "page_bytes",
            "page_seconds",
            "video_languages",
            "document_seconds",
            "document_memory",
            "conversions",
            "conversions_bytes",
            "serve",
        ),
        "Set it in lamella.toml or in the environment.",
    ),
}
SETTABLE_NAMES = tuple(name for name in SETTING_NAMES if name not in _UNSETTABLE_HINTS)
_MAX_VALUE_LENGTH = 60
_SET_EXAMPLE_HINT = "Example: --set temperature=0.2"
_SETTABLE_NAMES_HINT = f"Settings: {', '.join(SETTABLE_NAMES)}."


def parse_setting_options(
    system: str | None, assignments: Iterable[str] | None, *, runner: str | None = None
) -> dict[str, object]:
    """Return settings by name from ``--system``, ``--runner`` and words such as ``temperature=0.2``."""
    found: dict[str, object] = {} if system is None else {"system": check_text(system, "the system prompt")}
    found |= {} if runner is None else {"runner": runner}
    for one in assignments or ():
        typed, equals, text = one.partition("=")
        name = typed.strip()
        if not name:
            raise UsageError(
                f"Missing setting name: --set {escape_line(one)}", hint=f"{_SET_EXAMPLE_HINT}. {_SETTABLE_NAMES_HINT}"
            )
        if not equals:
            _check_settable(name)
            raise UsageError(f"Missing value: --set {name}", hint=f"{describe_setting_type(name)} {_SET_EXAMPLE_HINT}")
        found[name] = _parse_value(name, text.strip())
    return found


def _parse_value(name: str, text: str) -> object:
    """Parse a setting's value by its type; ``none`` unsets a setting that may be unset."""
    _check_settable(name)
    return parse_setting_value(name, text)


def _check_settable(name: str) -> None:
    """Raise ``UsageError`` if the name is no setting of a conversation."""
    if name.replace("-", "_") == "max_tokens":
        raise UsageError(
            f"Unknown setting: {escape_line(name)}", hint="Use --max-tokens to limit the length of answers."
        )
    if name in _UNSETTABLE_HINTS:
        raise UsageError(f"{name} cannot be set for one conversation.", hint=_UNSETTABLE_HINTS[name])
    table, dot, part = name.partition(".")
    if dot and table in SETTABLE_NAMES:
        meant = f"{describe_setting_type(table)} Write it as JSON: {{{json.dumps(part)}: …}}"
        raise UsageError(f"{escape_line(name)} cannot be set separately.", hint=escape_line(meant))
    check_name(name, known=SETTABLE_NAMES)


def show_or_set_setting(session: ChatSession, rest: str) -> None:
    """Show all settings, show the named one, or set it to a value."""
    name, _, text = rest.partition(" ")
    named, equals, given = rest.partition("=")
    if equals and " " not in named.strip():
        # Accept NAME=VALUE as well, as on the command line.
        name, text = named.strip(), given
        if not name:
            raise UsageError(
                f"Missing setting name: /set {escape_line(rest)}",
                hint=f"Example: /set linger 3. {_SETTABLE_NAMES_HINT}",
            )
    if not text.strip() and not equals:
        _print_settings(session, [name] if name else SETTABLE_NAMES)
        return
    value = _parse_value(name, text.strip())
    # A model that the user names needs no trust, so the pool must know that they named it.
    if name == "summarizer" and isinstance(value, str):
        session.opened_conversation.pool.trust_model(value)
    session.conversation_log.set(**{name: value})
    # Store the change now, so that it also applies if the next message is sent from another process.
    session.conversation_log.save_settings()
    warn_about_looser_writes({name: value}, session.opened_conversation.opener.services)
    print_text(f"{name} = {_setting_with_origin(session, name)[1]} from the next message on.")


def complete_setting(_session: ChatSession, prefix: str) -> dict[str, str]:
    """Return completions for ``/set``: the settings, and after a setting the values that it accepts."""
    name, space, value = prefix.partition(" ")
    if space:
        return match_prefix_after_word(
            name, dict.fromkeys(list_accepted_words(name) if name in SETTABLE_NAMES else (), ""), value
        )
    return match_prefix(dict.fromkeys(SETTABLE_NAMES, ""), prefix)


def _print_settings(session: ChatSession, names: Iterable[str]) -> None:
    for name in names:
        check_name(name)
        where, value = _setting_with_origin(session, name)
        print_text(f"{name:<20}{where:<14}{value}")


def _setting_with_origin(session: ChatSession, name: str) -> tuple[str, str]:
    """Return a setting's origin and its value on one line; the system prompt is that of the next message."""
    resolved = session.resolved_settings()
    origin = resolved.origins[name]
    if name in ("system", "instructions"):
        parts = session.conversation_log.preview(TurnRequest(text="")).envelope.prompt.system.typed_parts()
        value: object = parts.get("base" if name == "system" else name) or None
        origin = SettingOrigin.CALLER if value else SettingOrigin.DEFAULT
    else:
        value = settings_to_json(resolved)[name]
    shown = truncate_words(escape_line(format_setting_value(value)), _MAX_VALUE_LENGTH)
    return "this chat" if origin is SettingOrigin.CALLER else origin.value, shown
