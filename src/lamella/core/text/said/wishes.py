"""Standing wishes: sentences in which somebody says how to behave from now on, found by closed lists of cues.

What stands in a code fence, in a block quote or in quotation marks is somebody else's, or an example, and is none.
"""

import re
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache

from lamella.core.text.fences import walk_lines
from lamella.core.text.said.quotes import find_quotations

# English, then Indonesian. A cue is words in their order; each stands at the edges of words.
CUES: frozenset[str] = frozenset(
    {
        "always", "never", "from now on", "from here on", "going forward", "in future", "in the future", "henceforth",
        "whenever", "every time", "each time", "any time", "as a rule", "by default", "at all times",
        "without exception",
        "i prefer", "i'd prefer", "i would prefer", "i'd rather", "i would rather", "rather than", "instead of",
        "please remember", "remember that", "remember to", "keep in mind", "bear in mind", "make sure", "be sure to",
        "i want you to", "i'd like you to", "i would like you to", "please avoid", "avoid", "do not ever", "don't ever",
        "please don't", "please do not", "do not use", "don't use", "only use", "stick to", "no longer", "at most",
        "unless i", "until i say", "i like", "i don't like", "i do not like", "i hate", "my preference", "call me",
        # Indonesian
        "selalu", "jangan", "jangan pernah", "mulai sekarang", "mulai dari sekarang", "mulai hari ini", "seterusnya",
        "ke depannya", "setiap kali", "tiap kali", "setiap", "saya lebih suka", "aku lebih suka", "saya suka",
        "aku suka", "lebih baik", "daripada", "tolong ingat", "ingat bahwa", "ingatlah", "pastikan", "hindari",
        "saya mau kamu", "saya ingin kamu", "saya ingin anda", "panggil saya", "panggil aku", "kecuali saya",
    }
)  # fmt: skip

_LONGEST = 400
# The apostrophe of print, which cues are not written with.
_CURVED = "\u2019"
_MARKUP = re.compile(r"[ \t]*(?:(?:[#*+-]+|\d{1,3}[.)])[ \t]+)*")
_QUOTED = re.compile(r" {0,3}>")
# The second full stop of an abbreviation such as e.g. ends no sentence.
_ENDS = re.compile(r"(?<=[.!?…])(?<!\b\w\.\w\.)[\"'\u201d\u2019)*_]*\s+|(?<=[。\uff01\uff1f])")


def find_wishes(text: str, *, cues: Set[str] = CUES) -> tuple[str, ...]:
    """The standing wishes of what a user typed, verbatim, in their order, each once."""
    pattern = _compile(frozenset(cues))
    if not pattern.search(text.replace(_CURVED, "'")):
        return ()
    return tuple(dict.fromkeys(one for one in _sentences(text) if _is_wish(one, pattern)))


def find_all_wishes(texts: Mapping[str, str], *, cues: Set[str] = CUES) -> dict[str, tuple[str, ...]]:
    """Of texts by name those that hold standing wishes. Most talk holds none, and is looked through once, as one."""
    if not texts or not _compile(frozenset(cues)).search("\n".join(texts.values()).replace(_CURVED, "'")):
        return {}
    found = {name: find_wishes(text, cues=cues) for name, text in texts.items()}
    return {name: wishes for name, wishes in found.items() if wishes}


@lru_cache(maxsize=8)
def _compile(cues: frozenset[str]) -> re.Pattern[str]:
    listed = "|".join(re.escape(cue) for cue in sorted(cues, key=lambda cue: (-len(cue), cue)))
    return re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE)


def _sentences(text: str) -> Iterator[str]:
    """The sentences outside code and block quotes, without marks of lists and headings."""
    for line, is_code in walk_lines(text):
        if is_code or _QUOTED.match(line):
            continue
        for sentence in _ENDS.split(_MARKUP.sub("", line, count=1)):
            if sentence and sentence.strip():
                yield sentence.strip()


def _is_wish(sentence: str, pattern: re.Pattern[str]) -> bool:
    if len(sentence) > _LONGEST or sentence.rstrip("\"'\u201d\u2019)*_ ").endswith(("?", "\uff1f")):
        return False
    own = sentence
    for quotation in find_quotations(sentence):
        own = own.replace(quotation.text, " ")
    return pattern.search(own.replace(_CURVED, "'")) is not None
