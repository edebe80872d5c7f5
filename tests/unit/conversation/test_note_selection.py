"""Choosing from a folder: what fits in full, then outlines, those first that the question asks for; all else listed."""

from pathlib import Path

import pytest
from tests.unit.rendered import attached, sent

from lamella import Conversation, Folder, Note, Tag
from lamella.conversation.note_selection import group_by_folder_or_tag, parse_folder_or_tag_origin, rank_by_words
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.text.outline import shorten_list

NOTES = 30


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number in range(NOTES):
        body = f"#all It tells of subject{number}. {'Words follow here. ' * 120}"
        text = f"# Note {number}\n\n{body}\n\n## End\n\n{'x ' * 200}"
        (tmp_path / "docs" / f"n{number:02}.md").write_text(text, encoding="utf-8")
    return tmp_path


def talk(vault: Path, attachments: str = "turn") -> Conversation:
    return Conversation(vault=vault, window=8_000, reserve=500, layout="in_place", attachments=attachments)


def test_matching_notes_are_full_and_others_outlined_or_listed(vault: Path) -> None:
    turn = talk(vault).ask("What of subject17?", attach=[Folder(path="docs")])
    shown = dict(attached(turn))
    assert shown["docs/n17.md"] == "full"
    assert list(shown.values()).count("preview") > 2
    assert shown["docs"] == "full"
    assert len(shown) < NOTES
    assert turn.tokens.total <= 0.7 * 7_500 + 500
    (told, *_) = turn.envelope.warnings
    assert told.startswith("Not all notes of docs fit: ")
    listed = next(piece for piece in turn.messages[-1].pieces if piece.startswith("<folder_context>"))
    assert "are left out; each can be attached by its path:" in listed
    assert "subject17" in sent(turn)


def test_whole_vault_and_trailing_slash_are_folders(vault: Path) -> None:
    assert dict(attached(talk(vault).ask("What of subject9?", attach=[Folder(path=".")])))["."] == "full"
    assert dict(attached(talk(vault).ask("What of subject9?", attach=[Folder(path="docs/")])))["docs"] == "full"


def test_folder_that_fits_is_sent_whole_without_list(vault: Path) -> None:
    turn = Conversation(vault=vault, layout="in_place").ask("What?", attach=[Folder(path="docs")])
    assert [form for _, form in attached(turn)] == ["full"] * NOTES
    assert turn.envelope.warnings == ()


def test_reattached_folder_keeps_its_selection(vault: Path) -> None:
    chat = talk(vault)
    first = chat.ask("What of subject17?", attach=[Folder(path="docs")])
    whole = {name for name, form in attached(first) if form == "full"}
    chat.reply("Yes.")
    again = chat.ask("And subject3?", attach=[Folder(path="docs")])
    assert {name for name, form in attached(again) if form == "reference"} == whole
    assert again.prefix_change.cause == "none"


def test_why_explains_selected_outline(vault: Path) -> None:
    chat = talk(vault)
    turn = chat.ask("What of subject17?", attach=[Folder(path="docs")])
    outlined = next(name for name, form in attached(turn) if form == "preview")
    chat.reply("Yes.")
    assert chat.why(outlined).why == "Not everything from docs fits, so only its outline was attached."


def test_tag_is_chosen_from_like_a_folder(vault: Path) -> None:
    shown = dict(attached(talk(vault).ask("What of subject5?", attach=[Tag(tag="#all")])))
    assert (shown["docs/n05.md"], shown["#all"]) == ("full", "full")


def test_omitted_note_can_be_attached_by_path(vault: Path) -> None:
    chat = talk(vault, attachments="sticky")
    first = chat.ask("What of subject17?", attach=[Folder(path="docs")])
    out = next(f"docs/n{n:02}.md" for n in range(NOTES) if f"docs/n{n:02}.md" not in dict(attached(first)))
    chat.reply("Yes.")
    assert (out, "full") in attached(chat.ask("And this?", attach=[Note(path=out)]))


def test_list_of_omitted_notes_has_at_most_300_tokens(vault: Path) -> None:
    count = talk(vault)._prompt_builder()._prompt_settings.tokenizer.count
    for name in ("docs/a-note-{}.md", "ノート/日本語の題名-{}.md", "🌊/{}é-naïve-ß.md", "x7Qz-{}-9f3e1c.md"):
        text = "\n".join(("Of the 9,999 notes, some are left out:", *(f"- {name.format(n)}" for n in range(9_999))))
        shown = shorten_list(text)
        assert count(shown) <= 300
        assert shown.endswith(" more")


def test_via_is_parsed_into_kind_and_name() -> None:
    assert parse_folder_or_tag_origin("folder:docs/x") == (ArtifactKind.FOLDER, "docs/x")
    assert parse_folder_or_tag_origin("tag:#a") == parse_folder_or_tag_origin("template:#a") == (ArtifactKind.TAG, "#a")
    assert parse_folder_or_tag_origin("template:docs") == (ArtifactKind.FOLDER, "docs")
    assert parse_folder_or_tag_origin("template") is None
    alone = make_artifact(ArtifactKind.NOTE, text="x", source=ArtifactSource(path="a.md"))
    assert group_by_folder_or_tag([alone]) == {}
    assert rank_by_words("b", [("a.md", "a"), ("b.md", "b")]) == ["b.md", "a.md"]


def test_outlined_note_is_not_listed_as_omitted(vault: Path) -> None:
    chat = talk(vault, "sticky")
    first = chat.ask("What of subject17?", attach=[Folder(path="docs")])
    chat.reply("Much.")
    outlined = {name for name, form in attached(first) if form == "preview"}
    chat.ask(f"And of {' '.join(f'subject{number}' for number in range(20, NOTES))}?")
    chat.reply("Little.")
    (listed,) = [one for one in chat.refresh("docs").attach if one.id == "docs"]
    assert outlined
    assert not [name for name in outlined if f"- {name}" in listed.text.split("\n")]


def test_folder_sent_in_full_gives_no_fit_warning(tmp_path: Path) -> None:
    for number in range(2):
        text = f"# Note {number}\n\n{'Words follow here. ' * 18}"
        (tmp_path / f"n{number}.md").write_text(text, encoding="utf-8")
    chat = Conversation(vault=tmp_path, window=8_000, reserve=500, layout="in_place", system="word " * 6_200)
    chat.ask("Hello?")
    chat.reply("Yes.")
    turn = chat.ask("What?", attach=[Folder(path=".")])
    assert [form for name, form in attached(turn) if name.endswith(".md")] == ["full", "full"]
    assert "." in dict(attached(turn)), "the folder was chosen from"
    assert not [line for line in turn.envelope.warnings if line.startswith("Not all notes")]
