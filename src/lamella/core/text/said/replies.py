"""The outline of a reply: what stays of it once its words are left out, and the turn that brings them back."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from lamella.core.text.exact import rank_exact, read_exact
from lamella.core.text.fences import walk_lines
from lamella.core.text.outline import find_headings
from lamella.core.text.said.talk import clip, first_sentence

_SENTENCE = 140
# Of each list, in characters. Together they keep an outline below a hundred tokens: measured with
# `python -m bench evidence`, longer ones make room for fewer, and lose more than they keep.
_HEADINGS, _DEFINITIONS, _EXACT = 120, 100, 120
# An outline that is hardly shorter than its reply is not worth a moved prefix.
_WORTH = 0.6
# Who reads more of a reply than this for exact words reads longer than everything else in a plan takes.
_READ = 12_000

# What a line of code defines, in the languages that people paste most; the name is what is kept.
_DEFINES = re.compile(
    r"\s*(?:export\s+)?(?:default\s+)?(?:public\s+|private\s+|protected\s+|static\s+|pub\s+|abstract\s+|async\s+)*"
    r"(?:def|class|function|fn|func|interface|struct|enum|trait|type|module|const|let|var|val"
    r"|create\s+(?:or\s+replace\s+)?(?:table|view|index|function))\s+"
    r"(?:if\s+not\s+exists\s+)?(?:\([^()\n]{0,80}\)\s*)?([A-Za-z_$][\w$.]{0,80})",
    re.IGNORECASE,
)


@lru_cache(maxsize=1 << 12)
def outline_reply(text: str, turn: int, gist: str | None = None) -> str | None:
    """What stands in place of a reply: its first sentence, headings, what its code defines, its exact words, its turn.

    None where that would not be much shorter. It depends on nothing else, so that every model reads the same. Whoever
    knows the ``gist`` need not have it found.
    """
    title = f"[Outline; recall turn {turn}.]"
    if len(text) * _WORTH < len(title):
        return None
    outline = f"{title}\n{find_gist(text) if gist is None else gist}"
    return outline if len(outline) <= len(text) * _WORTH else None


@lru_cache(maxsize=1 << 12)
def find_gist(text: str) -> str:
    """What an outline holds whatever the turn."""
    sentence = clip(first_sentence(text), _SENTENCE)
    headings = (words for _, _, words in find_headings(text)) if "#" in text else ()
    defined = _find_defined(text) if "```" in text or "~~~" in text else ()
    exact = [token for token in rank_exact(Counter(read_exact(text[:_READ]))) if token not in sentence]
    lines = [
        sentence,
        _join("Headings", headings, _HEADINGS) if headings else "",
        _join("Its code defines", defined, _DEFINITIONS) if defined else "",
        _join("Exact", exact, _EXACT) if exact else "",
    ]
    return "\n".join(line for line in lines if line)


@lru_cache(maxsize=1 << 12)
def stub_reply(turn: int) -> str:
    """The one line that is left of the reply of a turn."""
    return f"[Left out; recall turn {turn}.]"


def _find_defined(text: str) -> Iterator[str]:
    for line, is_code in walk_lines(text):
        found = _DEFINES.match(line) if is_code else None
        if found is not None:
            yield found[1]


def _join(title: str, items: Iterable[str], room: int) -> str:
    """As many of the items as have room, each once and on one line, and how many more there are."""
    every = list(dict.fromkeys(" ".join(item.split()) for item in items))
    shown: list[str] = []
    for item in every:
        if item and len(item) + 2 <= room:
            shown.append(item)
            room -= len(item) + 2
    more = len(every) - len(shown)
    if not shown:
        return ""
    return f"{title}: {'; '.join(shown)}{f'; and {more:,} more' if more else ''}"
