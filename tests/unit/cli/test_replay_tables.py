"""The replay for people knows every word that a replay may use."""

import pytest

from lamella import Conversation, Layer, Note
from lamella.cli import replay_tables as replay
from lamella.cli.replay_tables import render_layer_bar
from lamella.core.log.turn import ArtifactForm, MessageAuthor
from lamella.core.prompt.layers.model import PLACEHOLDER_KINDS, LayerId
from lamella.schemas.ledger import ReplayTotals


def test_every_form_has_symbol_and_every_layer_colour() -> None:
    assert set(replay._FORM_SYMBOLS) == set(ArtifactForm)
    assert all(mark in replay._LEGEND for mark in replay._FORM_SYMBOLS.values())
    assert set(replay._LAYER_COLOURS) == set(LayerId)


def test_message_and_placeholder_kinds_are_distinguished_from_artifacts() -> None:
    assert set(replay._MESSAGE_KINDS) == {MessageAuthor.USER, MessageAuthor.REPLY}
    assert set(replay._PLACEHOLDER_KINDS) == PLACEHOLDER_KINDS


def _turn_layer() -> Layer:
    notes = [Note(path=f"{name}.md", text=f"# {name}\n") for name in ("a", "b", "c", "d")]
    return Conversation().ask("Hello", attach=notes).envelope.layers[2]


@pytest.mark.parametrize(("cached", "filled"), [(0, 0), (1_000, 28)])
def test_cached_part_of_layer_bar_is_filled_and_limited(cached: int, filled: int) -> None:
    layer = _turn_layer()
    line = render_layer_bar(layer, cached, layer.tokens).plain
    assert (line.count("█"), line.count("░")) == (filled, 28 - filled)
    weights = [segment.tokens for segment in layer.segments]
    assert line.endswith(f"+a.md {weights[0]}, +b.md {weights[1]}, +c.md {weights[2]} and 1 more")


def test_reference_without_text_is_labelled_known() -> None:
    notes = [Note(path=f"{name}.md", text=f"# {name}\n") for name in ("a", "b")]
    chat = Conversation(layout="auto")
    chat.ask("Hello", attach=notes)
    chat.reply("Yes?")
    layer = chat.ask("And?", attach=notes).envelope.layers[2]
    assert render_layer_bar(layer, 0, 1).plain.endswith("0  →a.md known, →b.md known")
    chat.reply("Yes?")
    alone = chat.ask("And now?", attach=notes[:1]).envelope.layers[2]
    assert render_layer_bar(alone, 0, 1).plain.endswith("→a.md known")


@pytest.mark.parametrize(("requests", "shown"), [(1, "1 turn · 9 tokens"), (2, "1 turn · 2 requests · 9 tokens")])
def test_totals_name_the_requests_of_turns_with_tools(*, requests: int, shown: str) -> None:
    totals = ReplayTotals(turns=1, requests=requests, tokens=9)
    assert f"{shown} sent · " in replay._render_totals(totals).plain
