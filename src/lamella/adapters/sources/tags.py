"""Tags of a note: those in its front matter and those in its text."""

import re
from collections.abc import Iterable

import yaml

from lamella.core.text.content import normalise
from lamella.core.text.fences import walk_lines

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_INLINE_TAG = re.compile(r"(?:^|(?<=\s))#([\w/-]*[^\W\d_][\w/-]*)")
_INLINE_CODE = re.compile(r"`[^`\n]*`")


def find_tags(text: str) -> frozenset[str]:
    """The note's tags in lower case, without the hash sign."""
    text = normalise(text)
    front = _FRONT_MATTER.match(text)
    tags = set(_front_tags(front.group(1))) if front else set()
    body = text[front.end() :] if front else text
    if "#" in body:
        for line, is_code in walk_lines(body):
            if not is_code and "#" in line:
                tags.update(_INLINE_TAG.findall(_INLINE_CODE.sub("", line)))
    return frozenset(tag.strip("/").lower() for tag in tags if tag.strip("/"))


def carries_tag(tags: Iterable[str], tag: str) -> bool:
    """Whether a note with these tags carries the tag or one below it: ``project/beta`` is one below ``project``."""
    wanted = tag.lstrip("#").strip("/").lower()
    return any(found == wanted or found.startswith(wanted + "/") for found in tags)


def _front_tags(block: str) -> list[str]:
    try:
        # Every value as the text it is: a date that does not exist is no reason to fail.
        front = yaml.load(block, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return []  # a note with broken front matter is still a note; its inline tags count
    if not isinstance(front, dict):
        return []
    found = front.get("tags", front.get("tag"))
    values = found if isinstance(found, list) else re.split(r"[,\s]+", found) if isinstance(found, str) else []
    return [value.lstrip("#") for value in values if isinstance(value, str) and _names_tag(value)]


def _names_tag(value: str) -> bool:
    """A number alone is no tag, as in text; and an empty list may be written out as null."""
    return value.lower() != "null" and any(character.isalpha() for character in value)
