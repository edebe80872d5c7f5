"""Addresses of the web, as people write them: where one ends in a sentence, and which video one shows."""

import re

_PAGE = ("http://", "https://")
_ENDS = ".,;:!?'\u2019\u201d\u00bb>*|"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_VIDEO = re.compile(
    r"https?://(?:(?:www|m|music)\.)?"
    r"(?:youtu\.be/|(?:youtube|youtube-nocookie)\.com/(?:(?:shorts|live|embed|v)/|watch/?\?(?:[^#\s]*&)?v=))"
    r"([A-Za-z0-9_-]{11})(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)


def is_page(name: str) -> bool:
    """Whether a name is the address of something on the web."""
    return any(name[: len(start)].lower() == start and len(name) > len(start) for start in _PAGE)


def trim_address(word: str) -> str:
    """An address in a sentence without what ends the sentence; a bracket that it opens itself is its own."""
    while word:
        last = word[-1]
        opener = _BRACKETS.get(last)
        if last not in _ENDS and (opener is None or word.count(opener) >= word.count(last)):
            return word
        word = word[:-1]
    return word


def find_video(url: str) -> str | None:
    """The id of the YouTube video that an address shows, however it is written; none if it shows none."""
    found = _VIDEO.match(url)
    return found[1] if found else None
