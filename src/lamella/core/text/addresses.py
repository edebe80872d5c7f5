"""Addresses of the web, as people write them: where one ends in a sentence, and which video one shows."""

import re
from urllib.parse import parse_qs, urlsplit

_PAGE = ("http://", "https://")
_ENDS = ".,;:!?'\u2019\u201d\u00bb>*|"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_HOSTS = ("youtube.com", "youtube-nocookie.com")
_SHORT = "youtu.be"
_FOLDERS = ("shorts", "live", "embed", "v")
_VIDEO = re.compile(r"[A-Za-z0-9_-]{11}")


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
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.").removeprefix("m.").removeprefix("music.")
    except ValueError:
        return None
    steps = [step for step in parts.path.split("/") if step]
    found = ""
    if host == _SHORT and steps:
        found = steps[0]
    elif host in _HOSTS and len(steps) > 1 and steps[0] in _FOLDERS:
        found = steps[1]
    elif host in _HOSTS and steps == ["watch"]:
        found = next(iter(parse_qs(parts.query).get("v", [])), "")
    return found if _VIDEO.fullmatch(found) else None
