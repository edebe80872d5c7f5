"""Slash commands on settings, rules and tools: ``/set`` (and ``--set`` on the command line), ``/rules`` and ``/tools``."""

import json
from collections.abc import Iterable, Mapping

from lamella.cli.chat.input import match_name_or_description, match_prefix_after_word
from lamella.cli.chat.session import ChatSession
from lamella.cli.config import format_setting_value, settings_to_json
from lamella.cli.library import format_rules
from lamella.cli.output import escape_to_short_line, print_text, warn_about_ignored_write_permissions
from lamella.conversation.rules import get_rule
from lamella.conversation.turn import TurnRequest
from lamella.conversation.validation import check_text
from lamella.errors import UsageError
from lamella.schemas.formatting import truncate_words
from lamella.settings.model import list_accepted_words
from lamella.wiring import SETTING_NAMES, SettingOrigin, check_name, describe_accepted_values, parse_setting_value

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
                f"Missing setting name: --set {escape_to_short_line(one)}",
                hint=f"{_SET_EXAMPLE_HINT}. {_SETTABLE_NAMES_HINT}",
            )
        if not equals:
            _check_setting_can_change_in_chat(name)
            raise UsageError(
                f"Missing value: --set {name}", hint=f"{describe_accepted_values(name)} {_SET_EXAMPLE_HINT}"
            )
        found[name] = _parse_value(name, text.strip())
    return found


def _parse_value(name: str, text: str) -> object:
    """Parse a setting's value by its type; ``none`` unsets a setting that may be unset."""
    _check_setting_can_change_in_chat(name)
    return parse_setting_value(name, text)


def _check_setting_can_change_in_chat(name: str) -> None:
    """Raise ``UsageError`` if the name is no setting of a conversation."""
    if name.replace("-", "_") == "max_tokens":
        raise UsageError(
            f"Unknown setting: {escape_to_short_line(name)}", hint="Use --max-tokens to limit the length of answers."
        )
    if name in _UNSETTABLE_HINTS:
        raise UsageError(f"{name} cannot be set for one conversation.", hint=_UNSETTABLE_HINTS[name])
    table, dot, part = name.partition(".")
    if dot and table in SETTABLE_NAMES:
        meant = f"{describe_accepted_values(table)} Write it as JSON: {{{json.dumps(part)}: …}}"
        raise UsageError(f"{escape_to_short_line(name)} cannot be set separately.", hint=escape_to_short_line(meant))
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
                f"Missing setting name: /set {escape_to_short_line(rest)}",
                hint=f"Example: /set linger 3. {_SETTABLE_NAMES_HINT}",
            )
    if not text.strip() and not equals:
        _print_settings(session, [name] if name else SETTABLE_NAMES)
        return
    value = _parse_value(name, text.strip())
    # A model that the user names needs no trust, so the pool must know that they named it.
    if name == "summarizer" and isinstance(value, str):
        session.opened_conversation.pool.trust_model(value)
    session.conversation.set(**{name: value})
    # Store the change now, so that it also applies if the next message is sent from another process.
    session.conversation.save_settings()
    warn_about_ignored_write_permissions({name: value}, session.opened_conversation.opener.services)
    print_text(f"{name} = {_setting_with_origin(session, name)[1]} from the next message on.")


def complete_setting_or_value(_session: ChatSession, prefix: str) -> dict[str, str]:
    """Return completions for ``/set``: the settings, and after a setting the values that it accepts."""
    name, space, value = prefix.partition(" ")
    if space:
        return match_prefix_after_word(
            name, dict.fromkeys(list_accepted_words(name) if name in SETTABLE_NAMES else (), ""), value
        )
    return match_name_or_description(dict.fromkeys(SETTABLE_NAMES, ""), prefix)


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
        parts = session.conversation.preview(TurnRequest(text="")).envelope.prompt.system.typed_parts()
        value: object = parts.get("base" if name == "system" else name) or None
        origin = SettingOrigin.CALLER if value else SettingOrigin.DEFAULT
    else:
        value = settings_to_json(resolved)[name]
    shown = truncate_words(escape_to_short_line(format_setting_value(value)), _MAX_VALUE_LENGTH)
    return "this chat" if origin is SettingOrigin.CALLER else origin.value, shown


_RULE_ACTION_DESCRIPTIONS = {
    "add": "add a rule",
    "confirm": "make a candidate a rule",
    "dismiss": "dismiss a candidate",
    "remove": "remove a rule",
}


def run_rules_command(session: ChatSession, rest: str) -> None:
    """Show the rules, or add or remove one."""
    word, _, text = rest.partition(" ")
    if word and word not in _RULE_ACTION_DESCRIPTIONS:
        raise UsageError(
            f"Unknown /rules action: {word}",
            hint="Use add, confirm, dismiss or remove; /rules alone lists rules and candidates.",
        )
    if word and not text.strip():
        raise UsageError("Missing rule.", hint="Example: /rules add Answer in one sentence.")
    if word in ("add", "confirm"):
        if word == "confirm":
            text = get_rule(text.strip(), session.conversation.rules()).text
        added = session.conversation.add_rule(text)
        print_text(f"Rule from the next message on: {escape_to_short_line(added.text)}")
    elif word in ("remove", "dismiss"):
        removed = session.conversation.remove_rule(text.strip())
        gone = "Rule removed from the next message on" if removed.origin == "user" else "Candidate dismissed"
        print_text(f"{gone}: {escape_to_short_line(removed.text)}")
    else:
        print_text("\n".join(format_rules(session.conversation.rules())))


def complete_rules_action(session: ChatSession, prefix: str) -> Mapping[str, str]:
    """Return completions for ``/rules``; after an action on a rule, the rules by id."""
    deed, space, name = prefix.partition(" ")
    if not space:
        return match_name_or_description(_RULE_ACTION_DESCRIPTIONS, prefix)
    return match_prefix_after_word(
        deed,
        {one.id: one.text for one in session.conversation.rules()} if deed in ("remove", "confirm", "dismiss") else {},
        name,
    )


_MAX_DESCRIPTION_LENGTH = 70


def complete_tools_action(_session: ChatSession, prefix: str) -> dict[str, str]:
    """Return completions for ``/tools``."""
    return match_name_or_description({"refresh": "load the tools of MCP servers again"}, prefix)


def show_tools(session: ChatSession, rest: str) -> None:
    """Print every tool; with ``refresh``, list the tools of MCP servers again with the next message."""
    if rest not in ("", "refresh"):
        raise UsageError(f"Unknown /tools action: {rest}", hint="Use refresh; /tools alone lists the tools.")
    opened = session.opened_conversation
    context, servers = opened.opener.runner_context, opened.opener.runner_context.mcp_servers
    if rest and servers is not None:
        servers.refresh()
        print_text("The next message that uses tools sends the new list.")
        return
    opened.confirm_mcp_servers()
    theirs = () if servers is None else servers.tools()
    for tool in (*context.make_tools(opened.conversation), *theirs):
        print_text(
            f"{tool.name}  {escape_to_short_line(truncate_words(tool.description.partition(chr(10))[0], _MAX_DESCRIPTION_LENGTH))}"
        )
