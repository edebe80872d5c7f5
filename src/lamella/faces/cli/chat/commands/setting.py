"""Settings of a conversation as people type them: ``--set NAME=VALUE``, and ``/set`` while they talk."""

import json
from collections.abc import Iterable

from lamella.engine.checks import check_text
from lamella.engine.dialogue.ask import Ask
from lamella.errors import UsageError
from lamella.faces.cli.chat.input import choose_begun, choose_further
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.settings.config import list_values, tell_value
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell, warn_laxer
from lamella.settings.values import list_words
from lamella.views.words import cut_words
from lamella.wiring import NAMES, Origin, check_name, read_typed, tell_takes

# What is chosen where a chat is opened, and why it cannot be changed inside it.
_ELSEWHERE = {
    "model": "Name it with --model, or in a chat with /model.",
    "store": "Leave, and open another with --store.",
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
        "It is a setting of lamella.toml or of the environment.",
    ),
}
_HERE = tuple(name for name in NAMES if name not in _ELSEWHERE)
_GLANCE = 60
_EXAMPLE = "As in --set temperature=0.2."
_LISTED = f"Settings are: {', '.join(_HERE)}."


def read_given(system: str | None, words: Iterable[str] | None, *, runner: str | None = None) -> dict[str, object]:
    """Settings by name, from ``--system`` and ``--runner``, and from words such as ``temperature=0.2``."""
    found: dict[str, object] = {} if system is None else {"system": check_text(system, "the system prompt")}
    found |= {} if runner is None else {"runner": runner}
    for one in words or ():
        typed, equals, text = one.partition("=")
        name = typed.strip()
        if not name:
            raise UsageError(f"--set {show_line(one)} names no setting.", hint=f"{_EXAMPLE} {_LISTED}")
        if not equals:
            _check_settable(name)
            raise UsageError(f"--set {name} has no value.", hint=f"{tell_takes(name)} {_EXAMPLE}")
        found[name] = _read_value(name, text.strip())
    return found


def _read_value(name: str, text: str) -> object:
    """A setting's value, of its type; ``none`` takes back what was set, where there may be none."""
    _check_settable(name)
    return read_typed(name, text)


def _check_settable(name: str) -> None:
    """Refuses a name that no setting of a conversation has."""
    if name.replace("-", "_") == "max_tokens":
        raise UsageError(f"{show_line(name)} is no setting.", hint="Say how long an answer may be with --max-tokens.")
    if name in _ELSEWHERE:
        raise UsageError(f"{name} is not set inside a conversation.", hint=_ELSEWHERE[name])
    table, dot, part = name.partition(".")
    if dot and table in _HERE:
        meant = f"{tell_takes(table)} Write it as JSON: {{{json.dumps(part)}: …}}"
        raise UsageError(f"{show_line(name)} is no setting by itself.", hint=show_line(meant))
    check_name(name, among=_HERE)


def set_or_show(talk: TerminalChat, rest: str) -> None:
    """Without words every setting, with a name that one, with a name and a value it is set."""
    name, _, text = rest.partition(" ")
    named, equals, given = rest.partition("=")
    if equals and " " not in named.strip():
        # As it is written on the command line.
        name, text = named.strip(), given
        if not name:
            raise UsageError(f"/set {show_line(rest)} names no setting.", hint=f"As in /set linger 3. {_LISTED}")
    if not text.strip() and not equals:
        _show(talk, [name] if name else _HERE)
        return
    value = _read_value(name, text.strip())
    if name == "summarizer" and isinstance(value, str):
        talk.opened.pool.name(value)
    talk.stored.set({name: value})
    # It holds from the next message on, also where that is sent in another sitting.
    talk.stored.keep()
    warn_laxer({name: value}, talk.opened.opener.services)
    tell(f"{name} is {_tell_value(talk, name)[1]} from the next message on.")


def list_settings(_talk: TerminalChat, begun: str) -> dict[str, str]:
    """The settings that a conversation may have of its own; after one of them the words that it takes."""
    name, space, value = begun.partition(" ")
    if space:
        return choose_further(name, dict.fromkeys(list_words(name) if name in _HERE else (), ""), value)
    return choose_begun(dict.fromkeys(_HERE, ""), begun)


def _show(talk: TerminalChat, names: Iterable[str]) -> None:
    for name in names:
        check_name(name)
        where, told = _tell_value(talk, name)
        tell(f"{name:<20}{where:<14}{told}")


def _tell_value(talk: TerminalChat, name: str) -> tuple[str, str]:
    """Where a setting comes from, and its value on a line; the system prompt as the next message has it."""
    found = talk.configured()
    origin = found.origins[name]
    if name in ("system", "instructions"):
        parts = talk.stored.preview(Ask(text="")).envelope.prompt.system.as_typed()
        value: object = parts.get("base" if name == "system" else name) or None
        origin = Origin.CALLER if value else Origin.DEFAULT
    else:
        value = list_values(found)[name]
    told = cut_words(show_line(tell_value(value)), _GLANCE)
    return "this chat" if origin is Origin.CALLER else origin.value, told
