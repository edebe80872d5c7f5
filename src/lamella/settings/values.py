"""Values: what each setting takes, in words, and what somebody may have meant who wrote another name or word."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec.structs import fields

from lamella.core.log.call import MOST_KEPT
from lamella.core.log.terms import SecretRule, Terms
from lamella.settings.model import PROFILES

# How alike two names are of which one is taken for the other misspelt: a letter or two apart.
NEAR = 0.78
# The most that any provider takes as a temperature; some take up to 1.
HOTTEST = 2
# Fewer characters of a result tell nothing, and the line that says how to read on has a hundred of its own.
LEAST_OUTPUT = 500
# Fewer letters than this are part of too many names to mean one.
_LEAST = 3


class MemoryUse(StrEnum):
    """Which conversations have the memory in their prompts: every one, those that people talk in, or none."""

    ON = "on"
    CHAT = "chat"
    OFF = "off"


class HintRule(StrEnum):
    """Whether what left the prompt and speaks of the same goes with a question."""

    OFF = "off"
    ON = "on"


# The settings that are one of a few words.
CHOICES: Mapping[str, type[StrEnum]] = {
    term.name: term.type for term in fields(Terms) if isinstance(term.type, type) and issubclass(term.type, StrEnum)
}


class WriteRule(StrEnum):
    """Whether models may write notes, or to the memory, from the laxest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    OFF = "off"


# Others of the kind, which no turn is written down with.
_WORDS: Mapping[str, type[StrEnum]] = {
    "memory": MemoryUse,
    "recall_hint": HintRule,
    "secrets": SecretRule,
    "note_writes": WriteRule,
    "memory_writes": WriteRule,
}
_SHARE = "a share of the window between 0 and 1, with warn < trigger < hard, and target < trigger"
_FOLDERS = ("index_folder", "conversions", "note_backups", "memory_folder", "workflow_folder")
# What a type alone does not say.
_TAKES: Mapping[str, str] = {
    "model": "the name of a model, such as local or anthropic:NAME",
    "profile": f"one of: {', '.join(PROFILES)}",
    "window": "a whole number of tokens, more than reserve",
    "reserve": "a whole number of tokens from 0, less than window",
    "history_turns": "a whole number of turns from 1",
    **dict.fromkeys(("warn", "target", "trigger", "hard"), _SHARE),
    "system": "a text, or a table of its parts",
    "instructions_file": "the path of a file",
    "temperature": f"a number from 0, which is steady, to {HOTTEST}",
    "linger": "a whole number of turns from 0",
    "keep_alive": f"a whole number of requests from 0 to {MOST_KEPT}",
    "cache_storage": "a whole number of requests that are expected in an hour, or 0",
    "store": "the URL of a store, such as sqlite:///chats.db",
    "model_facts": "the path of a file",
    "mcp": "a table of servers by name, each with a command or a url",
    "serve": "a table, as in docs/server.md: host, port, hosts, origins, rate and others",
    "runner": "the name of a runner, a way of answering",
    "steps": "a whole number of rounds from 1",
    "turn_seconds": "a number of seconds above 0",
    "turn_tokens": "a whole number of tokens from 1",
    "max_cost": "a number of US dollars above 0",
    "tool_output": f"a whole number of characters from {LEAST_OUTPUT:,}",
    "summarizer": "same, off, or the name of another model, such as anthropic:NAME",
    "log_preview": "true or false",
    "web_search": "the address of a search engine that answers as SearXNG does",
    **dict.fromkeys(_FOLDERS, "the path of a folder"),
    "private_addresses": "hosts and networks with commas between them, such as wiki.home, 10.1.0.0/16",
    "video_languages": "languages with commas between them, such as id, en",
}


def tell_values(name: str, usually: str) -> str:
    """What a setting takes; ``usually`` is what others of its type take."""
    words = ", ".join(list_words(name))
    return f"{name} takes {f'one of: {words}' if words else _TAKES.get(name, usually)}."


def list_words(name: str) -> tuple[str, ...]:
    """The words that a setting is one of; none where it is something else."""
    return tuple({**CHOICES, **_WORDS}.get(name, ()))


def find_near(word: str, known: Iterable[str]) -> str | None:
    """The name or word that was meant: one that is nearly written so, else the only one that has this as a part."""
    from difflib import get_close_matches  # only for those who misspelt something

    names = list(known)
    plain = word.strip().casefold().replace("-", "_")
    near = get_close_matches(plain, names, n=1, cutoff=NEAR)
    if near or len(plain) < _LEAST:
        return near[0] if near else None
    parts = [name for name in names if plain in name.split("_") or name.startswith(plain) or name in plain.split("_")]
    return parts[0] if len(parts) == 1 else None
