"""Fields of a note: its properties, and what its lines say as ``key:: value``; each as the value it looks like."""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import isnan

from lamella.adapters.sources.dataview.language.parsing import split_link
from lamella.adapters.sources.dataview.language.spans import parse_moment, parse_span
from lamella.adapters.sources.dataview.language.values import DEEPEST_VALUE, QueryLink, Value
from lamella.adapters.sources.markdown.model import PropertyValue

_LONGEST_LINE = 20_000
_LONGEST_KEY = 100
_LONGEST_VALUE = 5_000
_CLOSING = {"[": "]", "(": ")"}
_TICKS = re.compile(r"`+")
# Marks before a key on a line of its own: of a list, a quotation, a heading, of bold and slanted letters.
_LINE_KEY = re.compile(
    r"[\s!-/:-@\[-`{-~]{0,20}((?:[^\W_]|[^\x00-\x7f])(?:[\w\s/-]|[^\x00-\x7f]){0,99}?)[*_~`\s]{0,10}"
)
_LINK = re.compile(r"!?\[\[([^\[\]\n]*)\]\]")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "null": None}
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|!?\[\[[^\[\]\n]*\]\]|[^,"\[\]]*)\s*')


def find_bracketed(line: str) -> Iterator[tuple[str, str]]:
    """Fields that stand in brackets of a line, as ``[key:: value]`` or ``(key:: value)``."""
    at = line.find("::") if len(line) <= _LONGEST_LINE else -1
    ends = _match_brackets(line) if at >= 0 else {}
    begin = 0
    while at >= 0:
        opened = max(line.rfind(mark, max(begin, at - _LONGEST_KEY), at) for mark in _CLOSING)
        key = line[opened + 1 : at].strip()
        end = ends.get(opened, -1)
        if end >= 0 and key and not any(mark in key for mark in _CLOSING.values()):
            yield key, line[at + 2 : end].strip()[:_LONGEST_VALUE]
            begin = at = end + 1
        else:
            at += 2
        at = line.find("::", at)


def _match_brackets(line: str) -> dict[int, int]:
    """Where each bracket that opens is closed, by brackets of its own kind; those that stay open are left out."""
    ends: dict[int, int] = {}
    for opening, closing in _CLOSING.items():
        opened: list[int] = []
        for found in re.finditer(f"[{re.escape(opening + closing)}]", line):
            if found.group() == opening:
                opened.append(found.start())
            elif opened:
                ends[opened.pop()] = found.start()
    return ends


def find_fields(line: str) -> list[tuple[str, str]]:
    """The fields of a line: those in brackets, else the one that the whole line is."""
    if "::" not in line or len(line) > _LONGEST_LINE:
        return []
    line = hide_code(line)
    found = list(find_bracketed(line))
    if found:
        return found
    written, _, value = line.partition("::")
    key = _LINE_KEY.fullmatch(written) if len(written) <= _LONGEST_KEY else None
    return [(key.group(1).strip(), value.strip()[:_LONGEST_VALUE])] if key else []


def hide_code(line: str) -> str:
    """A line with blanks where it has code: what stands there is no field."""
    if "`" not in line:
        return line
    # Code ends with as many ticks as it begins with; where each number of them comes next is known from behind.
    runs = [ticks.span() for ticks in _TICKS.finditer(line)]
    following: list[int | None] = []
    seen: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        start, end = runs[place]
        following.append(seen.get(end - start))
        seen[end - start] = place
    following.reverse()
    parts, done, place = list[str](), 0, 0
    while place < len(runs):
        closing = following[place]
        if closing is not None:
            parts += [line[done : runs[place][0]], " " * (runs[closing][1] - runs[place][0])]
            done, place = runs[closing][1], closing
        place += 1
    return "".join((*parts, line[done:]))


def read_value(text: str) -> Value:
    """What an inline field says: a number, a date, a link, a list of such with commas between, else its words."""
    text = text.strip()
    if not text:
        return None
    is_one, value = _read_atom(text)
    if is_one or not any(mark in text for mark in ',"['):
        return value
    items = _split_items(text)
    atoms = [_read_atom(item) for item in items]
    return tuple(item for _, item in atoms) if items and all(is_atom for is_atom, _ in atoms) else text


def _split_items(text: str) -> list[str]:
    items: list[str] = []
    position = 0
    while position <= len(text):
        found = _ITEM.match(text, position)
        if found is None or text[found.end() : found.end() + 1] not in (",", ""):
            return []
        items.append(found.group(1).strip())
        position = found.end() + 1
    return items if all(items) else []


def _read_atom(text: str) -> tuple[bool, Value]:
    """A value, and whether the text is more than just words."""
    if text.lower() in _WORDS:
        return True, _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        return True, float(text) if "." in text else int(text)
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('\\"', ""):
        return True, text[1:-1].replace('\\"', '"')
    value = read_words(text)
    return value is not text, value


def read_words(text: str) -> Value:
    """A text that is a date, a span of time or a link as that, else the very same text."""
    link = _LINK.fullmatch(text.strip())
    if link:
        path, subpath, shown = split_link(link.group(1))
        return QueryLink(path=path, subpath=subpath, shown=shown)
    if text[:1].isdigit() or text[:1] == "-":
        moment = parse_moment(text)
        span = parse_span(text) if moment is None else None
        return moment or span or text
    return text


def read_property(value: PropertyValue, depth: int = 0) -> Value:
    """What a property says; dates and links are words in front matter."""
    if depth >= DEEPEST_VALUE:
        return None
    if isinstance(value, str):
        return read_words(value)
    if isinstance(value, list):
        return tuple(read_property(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return {key: read_property(item, depth + 1) for key, item in value.items()}
    # What is not a number has no order.
    return None if isinstance(value, float) and isnan(value) else value


def gather_fields(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Fields by name; of a name that is there several times, all values as one list."""
    found: dict[str, list[Value]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else _join(values) for name, values in found.items()}


def _join(values: Iterable[Value]) -> Value:
    return tuple(item for value in values for item in (value if isinstance(value, tuple) else (value,)))
