"""A canvas as text: its cards in the order they are read in, which of them a group holds, and what leads where."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamella.errors import SourceUnreadableError


class _Card(NamedTuple):
    """A node of a canvas where it stands on it."""

    name: str
    what: str
    node: Mapping[str, object]
    place: tuple[float, float, float, float]


def render_canvas(source: str, name: str) -> str:
    """The text of a canvas, which is JSON; an error says where it is broken."""
    nodes, edges = _read_canvas(source, name)
    cards = sorted((_make_card(node) for node in nodes), key=lambda card: (card.place[1], card.place[0], card.name))
    groups = [card for card in cards if card.what == "group"]
    shown = [card for card in cards if card.what != "group"]
    numbers = {card.name: f"[{number}]" for number, card in enumerate(shown, start=1)}
    called = {**numbers, **{group.name: f'group "{_text(group, "label")}"' for group in groups}}
    parts = [f"Canvas: {_count(shown, 'card')}, {_count(groups, 'group')}, {_count(edges, 'connection')}."]
    parts += [f"{numbers[card.name]} {_describe(card)}" for card in shown]
    parts += [_tell_group(group, shown, numbers) for group in groups]
    lines = [line for edge in edges if (line := _tell_edge(edge, called))]
    return "\n\n".join((*parts, "\n".join(lines))).rstrip() + "\n"


def _read_canvas(source: str, name: str) -> tuple[Sequence[Mapping[str, object]], Sequence[Mapping[str, object]]]:
    try:
        # A canvas that nobody drew on is an empty file.
        found = json.loads(source) if source.strip() else {}
    except json.JSONDecodeError as error:
        raise _broken(name, f"line {error.lineno:,}, column {error.colno:,}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise _broken(name, "it is nested too deep, or has a number too long") from error
    if not isinstance(found, dict):
        raise _broken(name, "it is JSON, and no object with nodes and edges")
    return _objects(found.get("nodes")), _objects(found.get("edges"))


def _broken(name: str, why: str) -> SourceUnreadableError:
    return SourceUnreadableError(f"{name} is not a canvas: {why}.", hint="Open and save it in Obsidian, or detach it.")


def _objects(found: object) -> list[Mapping[str, object]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _make_card(node: Mapping[str, object]) -> _Card:
    x, y, width, height = (_number(node.get(side)) for side in ("x", "y", "width", "height"))
    return _Card(str(node.get("id", "")), str(node.get("type", "")), node, (x, y, width, height))


def _number(found: object) -> float:
    return float(found) if isinstance(found, int | float) and abs(found) < 1e15 else 0.0


def _text(card: _Card, field: str) -> str:
    found = card.node.get(field)
    return found.strip() if isinstance(found, str) else ""


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things):,} {word}{'' if len(things) == 1 else 's'}"


def _describe(card: _Card) -> str:
    match card.what:
        case "text":
            return f"text\n{_text(card, 'text')}"
        case "file":
            return f"file {_text(card, 'file')}{_text(card, 'subpath')}"
        case "link":
            return f"link {_text(card, 'url')}"
    return f"{card.what or 'card'} of a kind that is not known"


def _tell_group(group: _Card, cards: Sequence[_Card], numbers: Mapping[str, str]) -> str:
    held = " ".join(numbers[card.name] for card in cards if _holds(group, card))
    return f'Group "{_text(group, "label")}": {held or "empty"}'


def _holds(group: _Card, card: _Card) -> bool:
    """A card belongs to a group if its middle lies in it."""
    x, y, width, height = group.place
    across, down = card.place[0] + card.place[2] / 2, card.place[1] + card.place[3] / 2
    return x <= across <= x + width and y <= down <= y + height


def _tell_edge(edge: Mapping[str, object], called: Mapping[str, str]) -> str:
    one, other = called.get(str(edge.get("fromNode"))), called.get(str(edge.get("toNode")))
    if one is None or other is None:
        return ""
    ends = (edge.get("fromEnd") == "arrow", edge.get("toEnd", "arrow") == "arrow")
    arrow = {(False, True): "→", (True, False): "←", (True, True): "↔", (False, False): "—"}[ends]
    label = edge.get("label")
    words = f": {label.strip()}" if isinstance(label, str) and label.strip() else ""
    return f"{one} {arrow} {other}{words}"
