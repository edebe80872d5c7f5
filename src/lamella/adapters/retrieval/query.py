"""Questions: what of them are words to look for, and what says where to look."""

import re
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from lamella.adapters.retrieval.days import DaySpan, find_days
from lamella.adapters.sources.inventory import fold_name
from lamella.adapters.sources.markdown.tags import find_inline_tags, fold_tag
from lamella.core.search.query import PHRASE

# What nobody types is cut: a question is no text to be compared with others.
MOST_CHARS = 4_000
_LINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")
_FOLDER = re.compile(r'(?<!\S)(?:path|folder):(?:"([^"]+)"|(\S+))', re.IGNORECASE)
_LINK_PARTS = re.compile(r"[#|]")


class Question(NamedTuple):
    """What is looked for: words, any of which will do, and phrases, each of which must stand.

    Where: in the notes that links name, which come first; with one of the tags; below one of the folders; of some days.
    """

    words: str
    phrases: tuple[str, ...]
    links: tuple[str, ...]
    tags: tuple[str, ...]
    folders: tuple[str, ...]
    days: DaySpan | None

    @property
    def is_narrow(self) -> bool:
        """Whether it says where to look."""
        return bool(self.tags or self.folders or self.days)


def read_question(text: str, *, today: date | None) -> Question:
    """A question in its parts; without a day nothing in it speaks of time."""
    text = text[:MOST_CHARS]
    links, text = _take(_LINK, text, lambda match: _LINK_PARTS.split(match[1])[0].strip())
    folders, text = _take(_FOLDER, text, lambda match: (match[1] or match[2]).strip("/"))
    phrases, text = _take(PHRASE, text, lambda match: match[1] or match[2])
    tags = [tag for tag, _ in find_inline_tags(text, 0)]
    for tag in tags:
        text = text.replace(f"#{tag}", " ", 1)
    days, words = (None, text) if today is None else find_days(text, today=today)
    return Question(
        words=words.strip(),
        phrases=phrases,
        links=tuple(fold_name(link.strip("/")) for link in links if link),
        tags=tuple(dict.fromkeys(map(fold_tag, tags))),
        folders=folders,
        days=days,
    )


def _take(pattern: re.Pattern[str], text: str, read: Callable[[re.Match[str]], str]) -> tuple[tuple[str, ...], str]:
    """What a pattern finds, each once, and the text without it."""
    found = tuple(dict.fromkeys(map(read, pattern.finditer(text))))
    return found, pattern.sub(" ", text)
