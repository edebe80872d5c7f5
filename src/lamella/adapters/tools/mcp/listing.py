"""What a server says of its tools, as far as it can be told to a model: legal names, bounded words, sound schemas.

A server may be anybody's, and what it says may be anything. Whatever it writes stands in the description of its tool,
says which server it is from, and has no more letters than it may.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

# What providers take as the name of a tool.
LONGEST_NAME = 64
# More than these of one server say nothing to a model any more, and fill its window.
MOST_TOOLS = 100
LONGEST_DESCRIPTION = 1_000
LONGEST_SCHEMA = 20_000

_DEEPEST = 16
_LONGEST_WORDS = 300
_DIGITS = 6
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


class ListedTool(NamedTuple):
    """A tool by the name that a model calls it by, and the one that its server knows; it may ``changes`` something."""

    name: str
    own_name: str
    description: str
    parameters: Mapping[str, object]
    changes: bool = True


# A tool as its server tells it: name, description, schema, and whether it only reads.
Told = tuple[str, str, object, bool]


def check_tools(
    server: str, told: Iterable[Told], *, writes: bool = True
) -> tuple[Sequence[ListedTool], Sequence[str]]:
    """The tools of a server in the order of their names, and what is to be said of those that are left out.

    Unless it ``writes``, those that may change something are.
    """
    listed = sorted(told, key=lambda one: one[0])
    sorted_by_name = [one for one in listed if writes or one[3]]
    found: dict[str, ListedTool] = {}
    said: list[str] = []
    if len(sorted_by_name) < len(listed):
        left = len(listed) - len(sorted_by_name)
        said.append(
            f"{server}: {left:,} of {len(listed):,} tools may change something, and its writes are not allowed."
        )
    for own_name, description, schema, reads in sorted_by_name[:MOST_TOOLS]:
        wrong = find_wrong(schema)
        name = name_tool(server, own_name, taken=found)
        if wrong is not None or own_name in {one.own_name for one in found.values()}:
            said.append(
                f"{server}: the tool {clean_words(own_name, 60)!r} is left out: {wrong or 'it is there twice'}."
            )
            continue
        words = f"[{server}] {clean_words(description, LONGEST_DESCRIPTION)}".rstrip()
        found[name] = ListedTool(name, own_name, words, _clean_schema(schema), not reads)
    if len(sorted_by_name) > MOST_TOOLS:
        said.append(f"{server}: of {len(sorted_by_name):,} tools the first {MOST_TOOLS} by name are taken.")
    return tuple(found.values()), tuple(said)


def name_tool(server: str, own_name: str, *, taken: Iterable[str] = ()) -> str:
    """A name that providers take and that no other tool has; one that had to be changed ends in digits of its own."""
    plain = f"{server}__{_ILLEGAL.sub('_', own_name)}"
    if plain == f"{server}__{own_name}" and len(plain) <= LONGEST_NAME and plain not in taken:
        return plain
    digits = sha256(own_name.encode(errors="replace")).hexdigest()[:_DIGITS]
    return f"{plain[: LONGEST_NAME - _DIGITS - 1]}_{digits}"


def find_wrong(schema: object) -> str | None:
    """What keeps a schema from being told to a model; none where nothing does."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its parameters are no object"
    if not isinstance(schema.get("properties", {}), dict):
        return "its properties are no object"
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return "its schema is no JSON"
    if size > LONGEST_SCHEMA:
        return f"its schema has {size:,} characters, and {LONGEST_SCHEMA:,} are taken"
    deepest = _measure_depth(schema)
    return f"its schema is {deepest} levels deep, and {_DEEPEST} are taken" if deepest > _DEEPEST else None


def clean_words(text: str, longest: int) -> str:
    """Words of somebody else's: no letter that acts on a terminal, no half of a character, and no more than so many."""
    kept = "".join(one for one in text[: 4 * longest] if one.isprintable() or one in "\n\t").strip()
    return kept if len(kept) <= longest else f"{kept[: longest - 2].rstrip()} …"


def _measure_depth(value: object) -> int:
    waiting: list[tuple[object, int]] = [(value, 1)]
    deepest = 0
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(inner, depth + 1) for inner in _list_inner(one)]
    return deepest


def _list_inner(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _clean_schema(value: object) -> dict[str, object]:
    cleaned = _clean(value)
    assert isinstance(cleaned, dict), "it was looked at before"
    return cleaned


def _clean(value: object) -> object:
    if isinstance(value, dict):
        # A name is what an argument is called by: it stays as it is, or a call could not be made.
        return {str(name): _clean(one) for name, one in value.items() if str(name).isprintable()}
    if isinstance(value, list):
        return [_clean(one) for one in value]
    return clean_words(value, _LONGEST_WORDS) if isinstance(value, str) else value
