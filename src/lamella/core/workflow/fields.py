"""Fields of stages as people and models read them: on a line, within so many characters, sources with whole URLs."""

import re
from collections.abc import Iterator, Mapping, Sequence

from lamella.core.text.words import cut_words

REFERENCES, CITATIONS = "references", "citations"
# What points to sources; everything else that is written down is text of its stage.
SOURCES = (REFERENCES, CITATIONS)
# How many sources of each sort are shown.
SHOWN = 5
# How long a title or another text of a source may be. Its address is never cut.
_TOLD = 200


_BETWEEN = " · "
# Fewer characters of a field tell nothing.
_LEAST = 20
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


def cut_text(text: str, room: int) -> str:
    """The beginning of a text, cut between words; an address is whole or not there.

    One that the text begins with stays, however long it is, also in brackets: `[Doe](https://…)`.
    """
    first = text.partition(" ")[0]
    address = next((one for one in _ADDRESS.finditer(first) if one.start() < room < len(first)), None)
    if address is None:
        return cut_words(text, room)
    if address.start() > _LEAST:
        return first[: address.start()] + "…"
    return first + (" …" if len(text) > len(first) else "")


def tell_value(value: object) -> str:
    """A value on one line."""
    match value:
        case None:
            return ""
        case str():
            return " ".join(value.split())
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{name}: {tell_value(one)}" for name, one in value.items() if one is not None)
        case Sequence():
            return "; ".join(tell_value(one) for one in value if one is not None)
        case _:
            return str(value)


def tell_data(fields: Mapping[str, object], *, room: int, each: int | None = None) -> str:
    """What was written down for a stage, but for its sources, on one line of so many characters, each field of so many.

    It is never empty. Where not all of it fits, long fields give way to short ones: every field has its share.
    """
    told = {name: text for name, value in fields.items() if name not in SOURCES and (text := tell_value(value))}
    names = sum(len(name) + len(_BETWEEN) + len(": ") for name in told)
    wanted = {name: min(len(text), each or room) for name, text in told.items()}
    shares = _share(wanted, max(room - names, _LEAST * len(told)))
    parts = [f"{name}: {cut_text(text, shares[name])}" for name, text in told.items()]
    return cut_words(_BETWEEN.join(parts), room) or "(nothing was written down for this stage)"


def _share(wanted: Mapping[str, int], room: int) -> dict[str, int]:
    """How much of the room each gets: what it wants, or an equal part of what is left for those that want more."""
    shares: dict[str, int] = {}
    waiting = sorted(wanted, key=wanted.__getitem__)
    for number, name in enumerate(waiting):
        shares[name] = min(wanted[name], room // (len(waiting) - number))
        room -= shares[name]
    return shares


def list_sources(value: object) -> list[Mapping[str, object]]:
    """References or citations as they were written down; a text alone is what one says, or its address.

    One that says nothing is none.
    """
    given = [value] if isinstance(value, str | Mapping) else value
    if not isinstance(given, Sequence):
        return []
    told = [one if isinstance(one, Mapping) else _read_source(tell_value(one)) for one in given]
    return [one for one in told if any(map(tell_value, one.values()))]


def _read_source(text: str) -> dict[str, object]:
    return {"url": text} if _ADDRESS.fullmatch(text) else {"text": text}


def tell_source(source: Mapping[str, object]) -> str:
    """A source on a line: what it is, and where, with every address whole."""
    known = {name: tell_value(value) for name, value in source.items()}
    title, year = known.get("title", ""), known.get("year", "")
    said = [cut_text(known[name], _TOLD) for name in ("authors", "text") if known.get(name)]
    said += [f'"{cut_text(title, _TOLD)}"'] if title else []
    said += [f"({year})"] if year else []
    told = ", ".join(said)
    places = [place for place in _list_places(known) if place not in told]
    return ", ".join(part for part in (told, *dict.fromkeys(places)) if part) or "(nothing is known of it)"


def _list_places(known: Mapping[str, str]) -> Iterator[str]:
    """Where a source is, also where only its text says so and that is cut before."""
    if known.get("url"):
        yield known["url"]
    if known.get("doi"):
        yield f"doi:{known['doi'].removeprefix('doi:')}"
    yield from (match.group() for match in _ADDRESS.finditer(known.get("text", "")))


def render_sources(fields: Mapping[str, object]) -> list[str]:
    """The first sources of each sort, a line each, and how many more there are."""
    lines: list[str] = []
    for name in SOURCES:
        sources = list_sources(fields.get(name))
        if not sources:
            continue
        lines.append(f"{name} ({min(len(sources), SHOWN)} of {len(sources):,}):")
        lines += [f"  {number}. {tell_source(one)}" for number, one in enumerate(sources[:SHOWN], start=1)]
        lines += [f"  and {len(sources) - SHOWN:,} more"] if len(sources) > SHOWN else []
    return lines
