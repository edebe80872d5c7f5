"""Front matter: the properties that stand above a note, read as plain values within bounds."""

import json
import re
from collections.abc import Iterator, Mapping

import yaml

from lamella.adapters.sources.markdown.model import PropertyValue

# A real note has some hundred characters of it; what is far beyond is data in the wrong place.
_LONGEST = 100_000
_MOST_VALUES = 10_000
_MOST_REPEATED = 1_000
_DEEPEST = 30
_OPENS = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSES = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# To YAML a link without quotation marks is a list in a list, and a template's {{title}} a mapping that names a value.
_ONE_WORD = re.compile(r"\[\[[^\[\]\n]+\]\]|\{\{[^{}\n]*\}\}")
# Words stay words: of what YAML guesses only these are taken. So a date is its ISO text, NO is a country, and 12:30 no
# number of seconds. Digits that fit no machine's number, and those behind a zero, are a name for something.
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.\d{1,30}|\d{1,30}(?:\.\d{0,30}|(?=[eE])))(?:[eE][-+]?\d{1,2})?", re.ASCII)


def split_front(text: str) -> tuple[int, int, int]:
    """Where the front matter of a text begins and ends, and where its body begins; three times nothing without any."""
    opening = _OPENS.match(text)
    closing = _CLOSES.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return 0, 0, 0
    return opening.end(), closing.start(), closing.end()


def read_front(block: str) -> tuple[Mapping[str, PropertyValue], str]:
    """The properties of a block of front matter; where it cannot be read, none, and why."""
    if not block:
        return {}, ""
    if len(block) > _LONGEST:
        return {}, f"The front matter has {len(block):,} characters; {_LONGEST:,} are read."
    try:
        found = _Values(block).read()
    except yaml.YAMLError as error:
        return {}, f"The front matter is not YAML{_tell_place(error)}."
    except _Bound as bound:
        return {}, str(bound)
    if found is None:
        return {}, ""
    return (found, "") if isinstance(found, dict) else ({}, "The front matter has no properties.")


class _Bound(Exception):  # noqa: N818 - it never leaves this file
    """Front matter that is YAML, and means more than anybody writes."""


class _Values:
    """A block on its way to values.

    They are made of the parser's events: its own tree is built by calls within calls, and brackets in brackets, some
    ten thousand of them, end the process there. What an anchor repeats counts each time, and too much of it is nothing.
    """

    def __init__(self, block: str) -> None:
        self._block = block
        self._left = _MOST_VALUES
        self._repeats_left = _MOST_REPEATED
        self._anchors: dict[str, PropertyValue] = {}
        self._events: Iterator[yaml.Event] = iter(())

    def read(self) -> PropertyValue:
        self._events = iter(yaml.parse(self._block, Loader=yaml.CSafeLoader))
        for event in self._events:
            if isinstance(event, yaml.NodeEvent):
                return self._value(event, 0)
        return None

    def _value(self, event: yaml.Event, depth: int) -> PropertyValue:
        self._left -= 1
        if self._left < 0:
            raise _Bound(f"The front matter has more than {_MOST_VALUES:,} values.")
        if depth > _DEEPEST:
            raise _Bound(f"The front matter is nested more than {_DEEPEST} deep.")
        match event:
            case yaml.AliasEvent():
                return self._copy(self._anchors.get(event.anchor or ""), depth)
            case yaml.ScalarEvent():
                value = event.value if event.style else _guess(event.value)
            case _:
                value = self._collect(event, depth)
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _collect(self, begin: yaml.Event, depth: int) -> PropertyValue:
        """A list or a mapping, up to where it ends."""
        items: list[PropertyValue] = []
        last = begin
        for event in self._events:
            if isinstance(event, yaml.CollectionEndEvent):
                last = event
                break
            items.append(self._value(event, depth + 1))
        source = self._block[_index(begin.start_mark) : _index(last.end_mark)]
        if _ONE_WORD.fullmatch(source):
            return source
        if isinstance(begin, yaml.MappingStartEvent):
            return {_name(key): value for key, value in zip(items[::2], items[1::2], strict=True)}
        return items

    def _copy(self, value: PropertyValue, depth: int) -> PropertyValue:
        self._repeats_left -= 1
        if self._repeats_left < 0 or depth > _DEEPEST:
            return None
        if isinstance(value, list):
            return [self._copy(item, depth + 1) for item in value[: self._repeats_left]]
        if isinstance(value, dict):
            return {key: self._copy(item, depth + 1) for key, item in value.items()}
        return value


def _name(key: PropertyValue) -> str:
    """What a property is called; ``null`` and ``true`` are words there."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)


def _index(mark: object) -> int:
    return int(getattr(mark, "index", 0))


def _guess(text: str) -> PropertyValue:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _tell_place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 2})"
