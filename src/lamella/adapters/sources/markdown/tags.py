"""Tags: what counts as one, and when two are the same."""

import re
from collections.abc import Iterable, Iterator, Mapping
from unicodedata import normalize

from lamella.adapters.sources.markdown.model import PropertyValue

# All that is no blank and no punctuation but - / _ may stand in a tag, a picture made of several characters as well.
_SIGN = (
    r"[^\s!-,.:-@\[-^`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f"
    r"\u3001-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
# It begins a line or a word, or stands at the edge of an emphasis, a cell or a quotation.
_INLINE = re.compile(rf"#(?<![^\s*~=|>]#)({_SIGN}+)")
_COMMA = re.compile(r"\s*,\s*")
_BETWEEN = re.compile(r"[,\s]+")


def fold_tag(tag: str) -> str:
    """A tag as it is compared: in any case, any Unicode form, with or without its hash sign."""
    return normalize("NFC", normalize("NFC", tag.strip().lstrip("#").strip("/")).casefold())


def carries_tag(tags: Iterable[str], tag: str) -> bool:
    """Whether one of these folded tags is the tag or below it: ``project/beta`` is below ``project``."""
    wanted = fold_tag(tag)
    return any(found == wanted or found.startswith(wanted + "/") for found in tags)


def find_inline_tags(text: str, offset: int) -> Iterator[tuple[str, int]]:
    """What looks like a tag in a text from an offset on, and where; what stands in code looks like one, too."""
    for match in _INLINE.finditer(text, offset):
        tag = match.group(1).strip("/")
        if _is_tag(tag):
            yield tag, match.start()


def read_front_tags(properties: Mapping[str, PropertyValue]) -> list[str]:
    """The tags among properties: a list, or words with commas or blanks between them."""
    return [tag for word in _read_words(properties, "tags", "tag", between=_BETWEEN) if _is_tag(tag := _strip(word))]


def read_aliases(properties: Mapping[str, PropertyValue]) -> list[str]:
    """Other names of the note among its properties: a list, or words with commas between them."""
    return _read_words(properties, "aliases", "alias", between=_COMMA)


def _read_words(properties: Mapping[str, PropertyValue], *names: str, between: re.Pattern[str]) -> list[str]:
    """The texts of a property that is called one of these names: the items of a list, or parts of one text."""
    for name, value in properties.items():
        if name.lower() in names and value is not None:
            items = value if isinstance(value, list) else between.split(value) if isinstance(value, str) else []
            return [item.strip() for item in items if isinstance(item, str) and item.strip()]
    return []


def _strip(word: str) -> str:
    return word.lstrip("#").strip("/")


def _is_tag(word: str) -> bool:
    """Digits alone are a number, of an issue maybe."""
    return any(not character.isdigit() and character not in "/_-" for character in word)
