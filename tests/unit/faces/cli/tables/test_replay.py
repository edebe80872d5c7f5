"""The replay for people knows every word that a replay may use."""

import pytest

from lamella import Conversation, Layer, Note
from lamella.core.log.ids import Voice
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.model import STAND_INS, LayerId
from lamella.faces.cli.tables import replay
from lamella.faces.cli.tables.replay import draw_layer


def test_every_form_has_a_mark_and_every_layer_a_colour() -> None:
    assert set(replay._MARKS) == set(Form)
    assert all(mark in replay._LEGEND for mark in replay._MARKS.values())
    assert set(replay._COLOURS) == set(LayerId)


def test_what_was_said_and_what_stands_in_for_it_is_told_from_artifacts() -> None:
    assert set(replay._SAID) == {Voice.USER, Voice.REPLY}
    assert set(replay._STAND_INS) == STAND_INS


def _turn_layer() -> Layer:
    notes = [Note(path=f"{name}.md", text=f"# {name}\n") for name in ("a", "b", "c", "d")]
    return Conversation().ask("Hello", attach=notes).envelope.layers[2]


@pytest.mark.parametrize(("cached", "filled"), [(0, 0), (1_000, 28)])
def test_the_cached_part_of_a_layer_is_filled_and_never_more_than_all_of_it(cached: int, filled: int) -> None:
    layer = _turn_layer()
    line = draw_layer(layer, cached, layer.tokens).plain
    assert (line.count("█"), line.count("░")) == (filled, 28 - filled)
    weights = [segment.tokens for segment in layer.segments]
    assert line.endswith(f"+a.md {weights[0]}, +b.md {weights[1]}, +c.md {weights[2]} and 1 more")


def test_a_reference_that_nothing_had_to_be_sent_for_is_told_in_words() -> None:
    notes = [Note(path=f"{name}.md", text=f"# {name}\n") for name in ("a", "b")]
    chat = Conversation(layout="auto")
    chat.ask("Hello", attach=notes)
    chat.reply("Yes?")
    layer = chat.ask("And?", attach=notes).envelope.layers[2]
    assert draw_layer(layer, 0, 1).plain.endswith("0  →a.md known, →b.md known")
    chat.reply("Yes?")
    alone = chat.ask("And now?", attach=notes[:1]).envelope.layers[2]
    assert draw_layer(alone, 0, 1).plain.endswith("0  →a.md known")
