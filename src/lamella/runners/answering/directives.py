"""Directives: words in a typed message that say which tool is to be used, such as ``@vault``."""

import re
from collections.abc import Iterator, Mapping, Sequence

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.text.fences import INLINE_CODE, walk_lines
from lamella.runners.answering.plans import PlannedCall, find_main_argument

# The tool that each of them is for, by the name that it has here.
TOOLS: Mapping[str, str] = {
    "vault": "search_notes",
    "web": "web_search",
    "websearch": "web_search",
    "memory": "remember",
}
# How there would be one.
_TO_HAVE: Mapping[str, str] = {
    "search_notes": "Name a vault.",
    "web_search": "Set web_search to the address of a search engine.",
    "remember": "Set memory to chat or on.",
}
# What a message says whose answer is to be written. It stays in the message, for the model to read.
_DIRECTIVE = re.compile(rf"(?<![\w@/.`])@({'|'.join(TOOLS)})(?![\w/.`-])", re.IGNORECASE)
_COMPOSES = re.compile(r"(?<![\w@/.`])@(composer)(?![\w/.`-])", re.IGNORECASE)
_CODE = re.compile(INLINE_CODE)


def find_forced(typed: str) -> tuple[str, ...]:
    """The directives of a message, each once, as they are known here; what stands in code is none."""
    return tuple(dict.fromkeys(_find(_DIRECTIVE, typed)))


def composes(typed: str) -> bool:
    """Whether a message says that what is answered to it is to be written; what stands in code says nothing."""
    return any(_find(_COMPOSES, typed))


def _find(directive: re.Pattern[str], typed: str) -> Iterator[str]:
    for line, is_code in walk_lines(typed):
        if "@" in line and not is_code:
            yield from (match[1].lower() for match in directive.finditer(_CODE.sub("", line)))


def force_calls(typed: str, told: Sequence[ToolDefinition]) -> tuple[list[PlannedCall], list[str]]:
    """The calls that a message forces, with its words, and what is to be said of directives whose tool is not there."""
    by_name = {tool.name: tool for tool in told}
    words = " ".join(_DIRECTIVE.sub(" ", typed).split())
    calls: dict[str, PlannedCall] = {}
    said: list[str] = []
    for directive in find_forced(typed):
        tool = by_name.get(TOOLS[directive])
        if tool is None:
            said.append(f"@{directive} does nothing: there is no {TOOLS[directive]} here. {_TO_HAVE[TOOLS[directive]]}")
        elif not words:
            said.append(f"@{directive} does nothing: there are no words with it.")
        else:
            calls.setdefault(tool.name, (tool.name, {find_main_argument(tool): words}))
    return list(calls.values()), said
