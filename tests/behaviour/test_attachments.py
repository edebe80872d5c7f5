"""L3, row by row of the freshness table: a new attachment compared with what the request already contains."""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png
from tests.unit.rendered import attached, forms, library, sent

import lamella
from lamella import ActiveNote, Image, Note, Selection, ToolResult, Unknown, Url
from lamella.core.prompt.layers.model import LayerId

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"sentence {n} " * 60 for n in range(12))
PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
BOTH = pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])


@BOTH
def test_reattached_unchanged_note_is_reference(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text=LONG)])
    assert attached(turn) == [("a.md", "reference")]
    assert "\n- a.md\n" in turn.messages[-1].text
    assert sent(turn).count("sentence 11") == LONG.count("sentence 11")


@pytest.mark.layout("library")
@PROMOTES
def test_reattached_note_is_full_if_only_preview_was_sent(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text=LONG)])
    assert forms(turn, LayerId.L2) == [("a.md", "full")]
    assert attached(turn) == [("a.md", "reference")]
    assert LONG in turn.messages[0].text
    assert "Part 5" not in turn.messages[-1].text


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@pytest.mark.parametrize("attachments", ["turn", "sticky"])
def test_fold_with_reattached_note_has_its_text_once_and_no_preview(
    layout: str, attachments: str, tmp_path: Path
) -> None:
    settings = {"layout": layout, "attachments": attachments, "carry_forward": "preview"}
    url = f"sqlite:///{tmp_path}/chats.db"
    note = Note(path="a.md", text=LONG)
    with lamella.open(url) as engine:
        chat = engine.chat("demo", **settings)
        chat.ask("one", attach=[note])
        chat.reply("r")
        chat.ask("two")
        chat.reply("r")
        turn = chat.ask("three", attach=[note], fold=True)
        chat.reply("r")
        later = chat.ask("four", attach=[note])
        for text in (sent(turn), sent(later)):
            assert text.count("sentence 11") == LONG.count("sentence 11")
            assert "<preview>" not in text
    with lamella.open(url) as engine:
        shown = list(engine.chat("demo", **settings).replay())
        assert [one.messages for one in shown[2:]] == [turn.messages, later.messages]


@BOTH
def test_small_change_is_sent_as_diff(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text=LONG.replace("## Part 5", "## Fifth part"))])
    assert attached(turn) == [("a.md", "update")]
    assert "-## Part 5\n+## Fifth part" in turn.messages[-1].text
    assert "<update>The copy above, changed by this diff, is the text now.</update>" in turn.messages[-1].text
    assert len(turn.messages[-1].text) < len(LONG) / 3


@BOTH
def test_large_change_is_sent_as_replacement_text(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text="old words")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="new words")])
    assert attached(turn) == [("a.md", "update")]
    assert "replaces the copy above" in turn.messages[-1].text
    assert "new words" in turn.messages[-1].text


@pytest.mark.layout("library")
@PROMOTES
def test_changed_note_is_sent_whole_if_only_preview_was_sent(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text=LONG)])
    chat.reply("r")
    changed = LONG.replace("## Part 5", "## Fifth part")
    turn = chat.ask("two", attach=[Note(path="a.md", text=changed)])
    assert attached(turn) == [("a.md", "update")]
    assert changed in turn.messages[-1].text


@BOTH
def test_first_attachment_is_full(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    assert attached(chat.ask("two", attach=[Note(path="b.md", text="B")])) == [("b.md", "full")]


@BOTH
def test_unattached_note_stays_in_library_and_not_in_l3(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two")
    assert attached(turn) == []
    assert library(turn) == ["a.md"]
    assert turn.messages[-1].text == "two"


def test_in_place_updated_note_can_be_referenced(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    for text in ("first", "second"):
        chat.ask("q", attach=[Note(path="a.md", text=text)])
        chat.reply("r")
    turn = chat.ask("three", attach=[Note(path="a.md", text="second")])
    assert attached(turn) == [("a.md", "reference")]
    assert forms(turn, LayerId.L2) == [("a.md", "update")]
    assert turn.envelope.layer(LayerId.L2).segments[0].place == "message:2"


def test_in_place_return_to_older_text_is_update(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    for text in ("first", "second"):
        chat.ask("q", attach=[Note(path="a.md", text=text)])
        chat.reply("r")
    turn = chat.ask("three", attach=[Note(path="a.md", text="first")])
    assert attached(turn) == [("a.md", "update")]
    assert "first" in turn.messages[-1].text


@pytest.mark.layout("library")
@PROMOTES
def test_library_shows_newest_text_at_first_position(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="old"), Note(path="b.md", text="B")])
    chat.reply("r")
    chat.ask("two", attach=[Note(path="a.md", text="new")])
    chat.reply("r")
    turn = chat.ask("three")
    assert forms(turn, LayerId.L2) == [("a.md", "full"), ("b.md", "full")]
    assert "old" not in turn.messages[0].text
    assert str(turn.prefix_change.prefix_change) == "artifact_updated(a.md)"


@BOTH
def test_reattached_selection_is_reference_by_own_id(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Selection(path="a.md", lines=(1, 2), text="chosen")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Selection(path="a.md", lines=(1, 2), text="chosen")])
    ((name, form),) = attached(turn)
    assert form == "reference"
    assert f"- {name}\n" in turn.messages[-1].text
    assert f"<id>{name}</id>" in sent(turn)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_same_note_attached_twice_in_a_turn_is_sent_once(converse: type[Watched], layout: str) -> None:
    turn = converse(layout=layout).ask("q", attach=[Note(path="a.md", text="A"), Note(path="./a.md", text="A")])
    assert attached(turn) == [("a.md", "full")]
    assert turn.envelope.warnings == ()


def test_last_of_two_texts_of_one_note_is_used_with_warning(converse: type[Watched]) -> None:
    turn = converse().ask("q", attach=[Note(path="a.md", text="one"), Note(path="a.md", text="two")])
    assert "two\n</content>" in turn.messages[-1].text
    assert turn.envelope.warnings == ("a.md is attached twice with different text; the last text is used.",)


@pytest.mark.parametrize("order", [0, 1])
def test_note_attached_also_as_the_active_note_is_the_active_note(converse: type[Watched], order: int) -> None:
    both = [Note(path="a.md", text="A"), ActiveNote(path="a.md", text="A")]
    turn = converse().ask("q", attach=both[::-1] if order else both)
    assert turn.messages[-1].text.startswith("<active_note>\n")
    assert attached(turn) == [("a.md", "full")]


@pytest.mark.layout("library")
@PROMOTES
def test_active_note_becomes_plain_note_in_library(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[ActiveNote(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", attach=[ActiveNote(path="b.md", text="B")])
    (segment,) = turn.envelope.layer(LayerId.L2).segments
    assert segment.kind == "note"
    assert "<active_note>" not in turn.messages[0].text
    assert "<note_context>\n<title>a</title>" in turn.messages[0].text


@pytest.mark.layout("library")
@PROMOTES
def test_unknown_block_is_kept_verbatim_and_referenced_by_hash(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    odd = "<weird source='x'>\n" + "body " * 2_000 + "</weird>"
    chat.ask("one", attach=[Unknown(text=odd)])
    chat.reply("r")
    turn = chat.ask("two", attach=[Unknown(text=odd)])
    ((name, form),) = attached(turn)
    assert name.startswith("unparsed:")
    assert form == "reference"
    assert odd in turn.messages[0].text


@pytest.mark.layout("library")
@PROMOTES
def test_page_that_differs_only_in_fragment_is_same_page(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Url(url="https://e.org/p?a=1&b=2#top", text="E")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Url(url="https://e.org/p?a=1&b=2#install", text="E")])
    assert attached(turn) == [("https://e.org/p?a=1&b=2", "reference")]


def test_tool_results_are_sent_in_their_turn_with_their_calls(converse: type[Watched]) -> None:
    results = [ToolResult(name="a", output="1"), ToolResult(name="b", arguments={"q": "x"}, output="2")]
    turn = converse().ask("q", results=results)
    assert [name.rsplit(":", 1)[0] for name, _ in attached(turn)] == ["tool:a", "tool:b"]
    assert turn.messages[-1].text.count("<tool_result>") == 2


def test_image_is_counted_in_l3_and_in_the_total(converse: type[Watched]) -> None:
    with_picture = converse(model="openai:gpt-5").ask("q", attach=[Image(data=png(512, 512))])
    without = converse(model="openai:gpt-5").ask("q")
    assert with_picture.tokens.total - without.tokens.total == 210
    assert with_picture.tokens.by_layer["L3_TURN"] == 210
