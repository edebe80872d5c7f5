"""Pictures within the limits of a model: counted by its rule, and words for what it does not take."""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import GIF, claim_size, png
from tests.unit.rendered import attached, library

from lamella import ActiveNote, Image, Note, Turn

CLAUDE = "anthropic:claude-haiku-4-5"
LONG = claim_size(9_000, 10)


def pictures(turn: Turn) -> int:
    return sum(len(message.images) for message in turn.messages)


def test_oversized_image_becomes_text_line_with_warning(
    converse: type[Watched],
) -> None:
    chat = converse(model=CLAUDE, layout="in_place")
    turn = chat.ask("q", attach=[Image(data=LONG, title="strip"), Image(data=png(4, 4), title="dot")])
    why = "it is 9,000 pixels long, and the model takes 8,000"
    assert turn.envelope.warnings == (f"strip is sent as a line of words to {CLAUDE}: {why}.",)
    assert turn.messages[-1].text.startswith(f"[Picture: strip. It is not sent: {why}. You cannot see it")
    assert [image.width for image in turn.messages[-1].images] == [4]
    chat.reply("r")
    assert pictures(chat.ask("again")) == 1


@pytest.mark.moves_prefix(reason="another model begins an epoch")
def test_image_is_sent_when_reattached_to_model_that_accepts_it(converse: type[Watched]) -> None:
    chat = converse(model=CLAUDE, layout="in_place")
    assert pictures(chat.ask("q", attach=[Image(data=LONG)])) == 0
    chat.reply("r")
    turn = chat.ask("q", attach=[Image(data=LONG)], model="openai:gpt-5")
    assert (pictures(turn), turn.envelope.warnings) == (1, ())


def test_unsupported_image_type_warns(converse: type[Watched]) -> None:
    turn = converse(model="google:gemini-3").ask("q", attach=[Image(data=GIF)])
    assert pictures(turn) == 0
    assert "it is image/gif, and the model takes image/png, image/jpeg, image/webp" in turn.envelope.warnings[0]


def test_images_of_earlier_messages_count_toward_limit(converse: type[Watched]) -> None:
    chat = converse(model=CLAUDE, layout="in_place")
    for number in range(3):
        shades = range(40 * number, 40 * number + 40)
        turn = chat.ask("q", attach=[Image(data=png(2, 2, shade), title=str(shade)) for shade in shades])
        chat.reply("r")
    assert pictures(turn) == 100
    assert len(turn.envelope.warnings) == 20
    assert "the request has 100 pictures, and the model takes 100" in turn.envelope.warnings[0]


def test_many_images_must_be_small_including_earlier_ones(converse: type[Watched]) -> None:
    chat = converse(model=CLAUDE, layout="in_place")
    chat.ask("q", attach=[Image(data=png(2_001, 1))])
    chat.reply("r")
    turn = chat.ask("q", attach=[Image(data=png(2, 2, shade)) for shade in range(25)])
    assert pictures(turn) == 20
    assert "and one is 2,001 pixels long" in turn.envelope.warnings[0]


def test_image_already_sent_is_reference_and_counts_once(converse: type[Watched]) -> None:
    chat = converse(model=CLAUDE, layout="in_place")
    first = chat.ask("q", attach=[Image(data=png(1_000, 1_000), title="map")])
    assert first.tokens.by_layer["L3_TURN"] == 1_296
    chat.reply("r")
    again = chat.ask("q", attach=[Image(data=png(1_000, 1_000), title="map")])
    assert [form for _, form in attached(again)] == ["reference"]
    assert pictures(again) == 1
    assert again.tokens.total - first.tokens.total < 100


@pytest.mark.parametrize(
    "layout",
    [pytest.param("library", marks=pytest.mark.moves_prefix(reason="pictures are over with their turn")), "in_place"],
)
def test_image_tokens_count_where_image_is_sent_not_in_library(converse: type[Watched], layout: str) -> None:
    chat = converse(model=CLAUDE, layout=layout)
    for shade in range(3):
        turn = chat.ask("q", attach=[Image(data=png(1_000, 1_000, shade))])
        assert turn.tokens.total > 1_296 * pictures(turn)
        chat.reply("r")
    assert pictures(turn) == (1 if layout == "library" else 3)
    assert library(turn) == []


@pytest.mark.moves_prefix(reason="what does not fit is folded and compacted")
def test_window_full_of_images_makes_space_for_next(converse: type[Watched]) -> None:
    chat = converse(model=CLAUDE, layout="in_place", window=9_000, reserve=500)
    for shade in range(12):
        turn = chat.ask("q", attach=[Image(data=png(1_000, 1_000, shade))])
        assert turn.tokens.total <= turn.tokens.limit
        assert turn.messages[-1].images
        chat.reply("r")


def test_note_does_not_control_how_much_is_read(converse: type[Watched], tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(png(2, 2))
    many = " ".join(f"![[{number}.png]]" for number in range(300))
    (tmp_path / "n.md").write_text(f"![[x.png]] {many}", encoding="utf-8")
    turn = converse(model=CLAUDE, vault=tmp_path).ask("q", attach=[ActiveNote(path="n.md"), Note(path="n.md")])
    assert pictures(turn) == 1
    assert len(turn.envelope.warnings) == 11
    assert turn.envelope.warnings[-1] == "290 more images of n.md are not sent; at most 100 of a note are read."
