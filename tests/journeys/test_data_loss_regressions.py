"""Real losses of a real product, one by one, as conversations that show that they cannot happen here.

They have one root: context was rendered to text and the text was parsed back. Each test plays the conversation in
which something was lost, doubled, stale or mangled, and looks at what a model would be sent.
"""

from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png
from tests.unit.rendered import attached, forms, library, sent

from lamella import ActiveNote, BadInputError, Folder, Image, Note, Selection, ToolResult, Unknown, Url
from lamella.core.prompt.layers.model import LayerId
from lamella.core.text.content import escape_line

PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
BOTH = pytest.mark.parametrize("layout", [pytest.param("library", marks=PROMOTES), "in_place"])
LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"sentence {n} " * 60 for n in range(12))


@BOTH
def test_text_around_block_and_unknown_tags_are_kept(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    odd = "before <mystery kind='x'>inside</mystery> between\n<prior_context_note>a note</prior_context_note> after"
    chat.ask("one", attach=[Unknown(text=odd), Note(path="a.md", text=odd)])
    chat.reply("r")
    assert sent(chat.ask("two")).count(odd) == 2


@BOTH
def test_closing_tag_within_note_does_not_truncate_it(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    text = "first half </content>\n</note_context>\nsecond half </selected_text> end"
    chat.ask("one", attach=[Note(path="a.md", text=text)])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text=text)])
    assert attached(turn) == [("a.md", "reference")]
    assert "second half <\\/selected_text> end" in sent(turn)
    assert sent(turn).count("</note_context>") == 1


@BOTH
def test_note_without_text_is_an_attachment_like_any_other(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="empty.md", text=""), Note(path="blank.md", text=" \n")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="empty.md", text="")])
    assert library(turn) == ["empty.md", "blank.md"]
    assert attached(turn) == [("empty.md", "reference")]


def test_unknown_block_has_same_id_in_every_run(converse: type[Watched]) -> None:
    runs = [converse().ask("q", attach=[Unknown(text="<mystery/>")]) for _ in range(2)]
    assert attached(runs[0]) == attached(runs[1])
    assert attached(runs[0])[0][0].startswith("unparsed:")
    assert runs[0].envelope == runs[1].envelope


@pytest.mark.layout("library")
@PROMOTES
def test_empty_system_prompt_keeps_library(converse: type[Watched]) -> None:
    chat = converse(system="")
    chat.ask("one", attach=[Note(path="a.md", text="the text")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="the text")])
    assert attached(turn) == [("a.md", "reference")]
    assert turn.messages[0].role == "system"
    assert "the text" in turn.messages[0].text


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="the system prompt is emptied in the second turn")
def test_emptying_the_system_prompt_in_mid_conversation_keeps_the_library(converse: type[Watched]) -> None:
    chat = converse(system="Be kind.")
    chat.ask("one", attach=[Note(path="a.md", text="the text")])
    chat.reply("r")
    assert "the text" in chat.ask("two", system="").messages[0].text


@BOTH
def test_each_turn_is_one_user_message_described_by_envelope(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout, system="B.")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="A"), Note(path="b.md", text="B")])
    roles = [message.role for message in turn.messages]
    assert roles == ["system", "user", "assistant", "user"]
    shown, typed = (turn.envelope.layer(layer).text for layer in (LayerId.L3, LayerId.L5))
    assert turn.messages[-1].text == f"{shown}[User query]:\n{typed}"


@BOTH
def test_history_of_envelope_matches_sent_messages(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    for number in range(2):
        chat.ask(f"question {number}", attach=[Note(path=f"{number}.md", text="x")])
        chat.reply(f"answer {number}")
    turn = chat.ask("last")
    for segment in turn.envelope.layer(LayerId.L4).segments:
        index = int(str(segment.place).partition(":")[2])
        assert turn.messages[index].text.endswith(segment.text)
    assert [segment.text for segment in turn.envelope.layer(LayerId.L4).segments] == [
        "question 0",
        "answer 0",
        "question 1",
        "answer 1",
    ]


@BOTH
def test_selection_is_still_there_word_for_word_many_turns_later(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout, carry_forward="preview")
    chosen = "chosen words. " * 600
    chat.ask("one", attach=[Selection(path="a.md", lines=(1, 9), text=chosen), Note(path="a.md", text=LONG)])
    for number in range(4):
        chat.reply("r")
        turn = chat.ask(f"later {number}")
        assert sent(turn).count(chosen) == 1
        assert library(turn)[0].startswith("a.md#L1-L9:")


@BOTH
def test_selections_of_one_note_stay_separate(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    selections = [Selection(path="a.md", text=f"choice {n}") for n in range(3)]
    chat.ask("one", attach=selections)
    chat.reply("r")
    turn = chat.ask("two", attach=selections[1:2])
    assert len(set(library(turn))) == 3
    assert [sent(turn).count(f"choice {n}") for n in range(3)] == [1, 1, 1]
    assert [form for _, form in attached(turn)] == ["reference"]


@pytest.mark.layout("library")
@PROMOTES
def test_preview_says_how_to_get_full_text(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="docs/a.md", text=LONG)])
    chat.reply("r")
    assert "[This is a preview. Attach docs/a.md again for the whole text.]" in chat.ask("two").messages[0].text


@PROMOTES
def test_artifact_removed_from_request_is_sent_in_full_again(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="the text")])
    chat.reply("r")
    chat.ask("two", drop=["a.md"])
    chat.reply("r")
    turn = chat.ask("three", attach=[Note(path="a.md", text="the text")])
    assert attached(turn) == [("a.md", "full")]
    assert sent(turn).count("the text") == 1


@BOTH
def test_note_attached_again_is_referred_to_by_name(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text="the text")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path="a.md", text="the text")])
    assert attached(turn) == [("a.md", "reference")]
    assert "\n- a.md\n" in turn.messages[-1].text


@BOTH
def test_reattached_folder_references_known_notes_and_sends_new_one(
    converse: type[Watched], layout: str, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("a", "b"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"text of {name}", encoding="utf-8")
    chat = converse(layout=layout, vault=tmp_path)
    chat.ask("one", attach=[Folder(path="docs")])
    chat.reply("r")
    (tmp_path / "docs" / "c.md").write_text("text of c", encoding="utf-8")
    turn = chat.ask("two", attach=[Folder(path="docs")])
    assert attached(turn) == [("docs/a.md", "reference"), ("docs/b.md", "reference"), ("docs/c.md", "full")]


@BOTH
def test_edited_note_is_reread_when_reattached(converse: type[Watched], layout: str, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("as it was", encoding="utf-8")
    chat = converse(layout=layout, vault=tmp_path)
    chat.ask("one", attach=[Note(path="a.md")])
    chat.reply("r")
    file.write_text("as it is now", encoding="utf-8")
    turn = chat.ask("two", attach=[Note(path="a.md")])
    assert attached(turn) == [("a.md", "update")]
    assert "as it is now" in turn.messages[-1].text


@pytest.mark.layout("library")
@PROMOTES
def test_old_text_of_edited_note_leaves_library(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="stale words")])
    chat.reply("r")
    chat.ask("two", attach=[Note(path="a.md", text="fresh words")])
    chat.reply("r")
    turn = chat.ask("three")
    assert "stale words" not in sent(turn)
    assert sent(turn).count("fresh words") == 1


@pytest.mark.layout("library")
@PROMOTES
def test_long_note_attached_again_is_there_in_full_again(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    for form in ("full", "reference", "reference"):
        turn = chat.ask("q", attach=[Note(path="a.md", text=LONG)])
        chat.reply("r")
        assert attached(turn) == [("a.md", form)]
        assert sent(turn).count(LONG) == 1


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="a note with pictures leaves with its turn")
def test_images_of_active_note_are_sent_every_turn(converse: type[Watched], tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(png(8, 8))
    (tmp_path / "a.md").write_text("see ![[plan.png]]", encoding="utf-8")
    chat = converse(vault=tmp_path)
    for _ in range(3):
        turn = chat.ask("q", attach=[ActiveNote(path="a.md")])
        chat.reply("r")
        assert len(turn.messages[-1].images) == 1
        assert "a.md" in turn.messages[-1].text


def test_in_place_the_images_of_the_active_note_are_still_in_the_request(
    converse: type[Watched], tmp_path: Path
) -> None:
    (tmp_path / "plan.png").write_bytes(png(8, 8))
    (tmp_path / "a.md").write_text("see ![[plan.png]]", encoding="utf-8")
    chat = converse(vault=tmp_path, layout="in_place")
    for _ in range(3):
        turn = chat.ask("q", attach=[ActiveNote(path="a.md")])
        chat.reply("r")
        assert sum(len(message.images) for message in turn.messages) == 1


@pytest.mark.layout("library")
@PROMOTES
@pytest.mark.parametrize("length", [4_900, 4_990, 5_000])
def test_note_just_short_of_the_preview_size_does_not_vanish(converse: type[Watched], length: int) -> None:
    chat = converse(carry_forward="preview")
    text = ("x" * 99 + "\n") * (length // 100) + "y" * (length % 100)
    first = chat.ask("one", attach=[Note(path="a.md", text=text)])
    chat.reply("r")
    turn = chat.ask("two")
    assert forms(turn, LayerId.L2) == [("a.md", "full")]
    assert turn.envelope.layer(LayerId.L2).text == first.envelope.layer(LayerId.L3).text


@BOTH
@pytest.mark.parametrize(
    "name", ["Bob's & co.md", 'a "quoted" one.md', "<angle>.md", "&amp;.md", "a, b].md", "两🙂.md", "two\nlines.md"]
)
def test_name_with_special_characters_is_known_again(converse: type[Watched], layout: str, name: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path=name, text="the text")])
    chat.reply("r")
    turn = chat.ask("two", attach=[Note(path=name, text="the text")])
    assert library(turn) == [name]
    assert attached(turn) == [(name, "reference")]
    assert f"- {escape_line(name)}\n" in turn.messages[-1].text
    assert f"<path>{escape_line(name)}</path>" in sent(turn)
    assert sent(turn).count("the text\n</content>") == 1


@BOTH
def test_url_with_ampersands_is_not_sent_twice(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout, carry_forward="preview")
    page = Url(url="https://e.org/?a=1&b=2&amp;c=3", text="the page")
    chat.ask("one", attach=[page])
    chat.reply("r")
    turn = chat.ask("two", attach=[page])
    assert attached(turn) == [("https://e.org/?a=1&b=2&amp;c=3", "reference")]
    assert sent(turn).count("the page") == 1


@pytest.mark.layout("library")
@PROMOTES
def test_library_has_no_active_note_and_request_at_most_one(converse: type[Watched]) -> None:
    chat = converse()
    for name in ("a", "b", "c"):
        turn = chat.ask("q", attach=[ActiveNote(path=f"{name}.md", text="x")])
        chat.reply("r")
        assert sent(turn).count("<active_note>") == 1
        assert "<active_note>" in turn.messages[-1].text
    assert library(turn) == ["a.md", "b.md"]


@BOTH
def test_failed_or_unanswered_turn_removes_nothing_from_library(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.ask("never answered", attach=[Note(path="b.md", text="B")])
    with pytest.raises(BadInputError):
        chat.ask("failed", attach=[Note(path="", text="x")])
    assert library(chat.ask("three")) == ["a.md", "b.md"]


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="a note with pictures leaves with its turn")
def test_text_of_note_with_images_enters_prefix_without_images(converse: type[Watched]) -> None:
    chat = converse(system="B.")
    chat.ask("one", attach=[Note(path="a.md", text="![[plan.png]]"), Image(data=png(2, 2))])
    chat.reply("r")
    turn = chat.ask("two")
    assert library(turn) == ["a.md"]
    assert not any(message.images for message in turn.messages)


@BOTH
def test_quoted_tag_within_note_is_not_a_block(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    text = "Use <selected_text> and <prior_context source='x'> like this."
    chat.ask("one", attach=[Note(path="a.md", text=text)])
    chat.reply("r")
    turn = chat.ask("two")
    assert library(turn) == ["a.md"]
    assert sent(turn).count(text) == 1


@BOTH
def test_path_in_nested_block_is_not_id_of_outer_block(converse: type[Watched], layout: str) -> None:
    chat = converse(layout=layout)
    nested = "<embedded_note>\n<path>inner.md</path>\n<content>inner</content>\n</embedded_note>"
    chat.ask("one", attach=[Note(path="outer.md", text=nested), Unknown(text=nested)])
    chat.reply("r")
    names = library(chat.ask("two"))
    assert names[0] == "outer.md"
    assert names[1].startswith("unparsed:")


@pytest.mark.layout("library")
@PROMOTES
def test_preview_keeps_all_headings(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    text = "\n\n".join(f"## Section {n}\n\n" + "words of it " * 20 for n in range(40))
    chat.ask("one", attach=[Note(path="a.md", text=text)])
    chat.reply("r")
    turn = chat.ask("two")
    assert forms(turn, LayerId.L2) == [("a.md", "preview")]
    assert [f"## Section {n}\n" in turn.messages[0].text for n in range(40)] == [True] * 40
    assert "[The text of 20 more sections is left out.]" in turn.messages[0].text


@pytest.mark.layout("library")
@PROMOTES
def test_preview_keeps_the_title_and_the_path(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    chat.ask("one", attach=[Note(path="docs/a.md", title="A & B", text=LONG)])
    chat.reply("r")
    assert "<title>A & B</title>\n<path>docs/a.md</path>\n<preview>\n" in chat.ask("two").messages[0].text


@pytest.mark.layout("library")
@PROMOTES
def test_preview_continues_after_embedded_note(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    inner = "<embedded_note>\n<content>\ninner\n</content>\n</embedded_note>"
    text = f"# Before\n\n{inner}\n\n# After\n\nstill there\n\n# Filler\n\n" + "filler words " * 500
    chat.ask("one", attach=[Note(path="a.md", text=text)])
    chat.reply("r")
    turn = chat.ask("two")
    assert forms(turn, LayerId.L2) == [("a.md", "preview")]
    assert "# After\nstill there" in turn.messages[0].text
    assert turn.messages[0].text.count("</preview>") == 1


@pytest.mark.layout("library")
@PROMOTES
def test_comment_in_code_is_not_a_section(converse: type[Watched]) -> None:
    chat = converse(carry_forward="preview")
    code = "```sh\n" + "\n".join(f"# step {n}\nrun {n}" for n in range(60)) + "\n```"
    text = f"# Setup\n\n{code}\n\n# Use\n\nthe use of it\n\n# Filler\n\n" + "filler words " * 500
    chat.ask("one", attach=[Note(path="a.md", text=text)])
    chat.reply("r")
    preview = chat.ask("two").messages[0].text
    assert "# Use\nthe use of it" in preview
    assert "# step 59" not in preview
    assert "left out" not in preview


@pytest.mark.layout("library")
@PROMOTES
def test_preview_is_never_longer_than_text(converse: type[Watched]) -> None:
    texts = ["x" * 5_001, LONG, "\n".join(f"# {n} {'h' * 60}" for n in range(200)), "word " * 1_001]
    for text in texts:
        chat = converse(carry_forward="preview")
        first = chat.ask("one", attach=[Note(path="a.md", text=text)])
        chat.reply("r")
        turn = chat.ask("two")
        assert len(turn.envelope.layer(LayerId.L2).text) <= len(first.envelope.layer(LayerId.L3).text)


@pytest.mark.layout("library")
@PROMOTES
def test_same_note_has_the_same_preview_in_every_run_and_every_turn(converse: type[Watched]) -> None:
    previews = set()
    for _ in range(2):
        chat = converse(carry_forward="preview")
        chat.ask("one", attach=[Note(path="a.md", text=LONG)])
        for number in range(3):
            chat.reply("r")
            previews.add(chat.ask(f"q{number}").envelope.layer(LayerId.L2).hash)
    assert len(previews) == 1


@BOTH
def test_touching_a_file_moves_no_byte(converse: type[Watched], layout: str, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("the text", encoding="utf-8")
    chat = converse(layout=layout, vault=tmp_path)
    chat.ask("one", attach=[Note(path="a.md")])
    chat.reply("r")
    file.touch()
    assert attached(chat.ask("two", attach=[Note(path="a.md")])) == [("a.md", "reference")]


@PROMOTES
def test_tool_results_are_never_promoted_and_never_parsed_for_blocks(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", results=[ToolResult(name="search", output="<note_context><path>x.md</path></note_context>")])
    chat.reply("<note_context>\n<path>y.md</path>\n</note_context>")
    assert library(chat.ask("two")) == []
