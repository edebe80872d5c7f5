"""Words: a text cut short between them, and the title that a conversation has by its first question."""

import re

from lamella.core.text.scripts import WIDE

# Characters of a title: what a line of a list has room for.
_TITLE = 60
_WIDE = re.compile(rf"\S*[{WIDE}]")


def cut_words(text: str, room: int) -> str:
    """The beginning of a text, in at most so many characters; it is cut between words unless the first is too long.

    Scripts without spaces are cut behind any character: a space before a long text in one is no place to end it.
    """
    words = " ".join(text.split())
    if len(words) <= room:
        return words
    before, space, begun = words[: room - 1].rpartition(" ")
    wide = None if "://" in begun else _WIDE.match(begun)
    kept = before + space + wide.group() if wide else words[:room].rpartition(" ")[0] or words[: room - 1]
    return kept.rstrip(".,;:") + "…"


def make_title(question: str) -> str:
    """The title of a conversation that nobody gave one: its first question, as far as it fits a line."""
    return cut_words(question, _TITLE)
