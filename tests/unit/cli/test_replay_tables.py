"""The replay for people knows every word that a replay may use."""

import pytest

from lamella import Conversation, Layer, Note
from lamella.cli import replay_tables as replay
from lamella.cli.replay_tables import render_layer_bar
from lamella.core.log.turn import ArtifactForm, MessageAuthor
from lamella.core.prompt.layers.model import PLACEHOLDER_KINDS, LayerId


def test_every_form_has_a_mark_and_every_layer_a_colour() -> None:
    assert set(replay._FORM_SYMBOLS) == set(ArtifactForm)
    assert all(mark in replay._LEGEND for mark in replay._FORM_SYMBOLS.values())
    assert set(replay._LAYER_COLOURS) == set(LayerId)


def test_what_was_said_and_what_stands_in_for_it_is_told_from_artifacts() -> None:
    assert set(replay._MESSAGE_KINDS) == {MessageAuthor.USER, MessageAuthor.REPLY}
    assert set(replay._PLACEHOLDER_KINDS) == PLACEHOLDER_KINDS


def _turn_layer() -> Layer:
    notes = [Note(path=f"{name}.md", text=f"# {name}\n") for name in ("a", "b", "c", "d")]
    return Conversation().ask("Hello", attach=notes).envelope.layers[2]


@pytest.mark.parametrize(("cached", "filled"), [(0, 0), (1_000, 28)])
def test_the_cached_part_of_a_layer_is_filled_and_never_more_than_all_of_it(cached: int, filled: int) -> None:
    layer = _turn_layer()
    line = render_layer_bar(layer, cached, layer.tokens).plain
    assert (line.count("█"), line.count("░")) == (filled, 28 - filled)
    weights = [segment.tokens for segment in layer.segments]
    assert line.endswith(f"+a.md {weights[0]}, +b.md {weights[1]}, +c.md {weights[2]} and 1 more")


def test_a_reference_that_nothing_had_to_be_sent_for_is_told_in_words() -> None:
    notes = [Note(path=f"{name}.md", text=f"# {name}\n") for name in ("a", "b")]
    chat = Conversation(layout="auto")
    chat.ask("Hello", attach=notes)
    chat.reply("Yes?")
    layer = chat.ask("And?", attach=notes).envelope.layers[2]
    assert render_layer_bar(layer, 0, 1).plain.endswith("0  →a.md known, →b.md known")
    chat.reply("Yes?")
    alone = chat.ask("And now?", attach=notes[:1]).envelope.layers[2]
    assert render_layer_bar(alone, 0, 1).plain.endswith("0  →a.md known")
