"""The library list: every artifact, its form in the next request, and the tokens that detaching it would save."""

from pathlib import Path

import pytest
from tests.unit.pictures import png

from lamella import Conversation, Folder, Image, Note
from lamella.conversation.library import LibraryItem, list_library

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"sentence {n} " * 60 for n in range(12))


def rows(chat: Conversation) -> dict[str, LibraryItem]:
    return {row.name: row for row in chat.library()}


def test_library_row_has_form_tokens_age_and_cache_state() -> None:
    chat = Conversation(layout="in_place", attachments="sticky", carry_forward="preview")
    chat.ask("One.", attach=[Note(path="a.md", text=LONG)])
    chat.reply("Yes.")
    chat.ask("Two.", attach=[Note(path="b.md", text="Beta.")])
    chat.reply("Yes.")
    found = rows(chat)
    assert [(name, row.kind, row.form, row.age_turns, row.in_working_set) for name, row in found.items()] == [
        ("a.md", "note", "full", 2, True),
        ("b.md", "note", "full", 1, True),
    ]
    assert all(row.cached and row.tokens > 0 for row in found.values())
    assert list_library.__doc__


def test_moved_library_is_not_cached() -> None:
    chat = Conversation(layout="library", attachments="sticky", system="Be terse. " * 20)
    chat.ask("One.", attach=[Note(path="a.md", text=LONG)])
    chat.reply("Yes.")
    assert rows(chat)["a.md"].cached is False
    assert Conversation(keep_ledger=False, layout="in_place").library() == ()


def test_cache_state_is_unknown_without_ledger() -> None:
    chat = Conversation(keep_ledger=False)
    chat.ask("One.", attach=[Note(path="a.md", text="A.")])
    chat.reply("Yes.")
    assert rows(chat)["a.md"].cached is None


def test_tokens_saved_by_detaching_match_next_request() -> None:
    """With previews a long note that is detached goes on as its outline; a short one stands where it stood."""
    chat = Conversation(layout="library", attachments="sticky", carry_forward="preview")
    chat.ask("One.", attach=[Note(path="long.md", text=LONG), Note(path="short.md", text="Short.")])
    chat.reply("Yes.")
    found = rows(chat)
    before = chat.preview("").tokens.total
    after = chat.preview("", detach=["long.md"]).tokens.total
    assert found["long.md"].tokens_saved == before - after > 0
    assert found["short.md"].tokens_saved == 0


def test_image_is_named_and_saved_by_detaching() -> None:
    chat = Conversation(layout="library", attachments="sticky", model="openai:gpt-5")
    chat.ask("See.", attach=[Image(data=png(64, 64), media_type="image/png", title="map")])
    chat.reply("Yes.")
    row = rows(chat)["map"]
    assert (row.kind, row.in_working_set, row.tokens_saved) == ("image", True, row.tokens)
    assert row.tokens > 0


def test_pending_attachment_is_listed_and_detached_one_leaves_set() -> None:
    chat = Conversation(layout="in_place", attachments="sticky")
    chat.ask("One.", attach=[Note(path="a.md", text="Alpha.")])
    chat.reply("Yes.")
    chat.attach(Note(path="b.md", text="Beta."))
    chat.detach("a.md")
    found = rows(chat)
    assert (found["b.md"].is_pending, found["b.md"].tokens_saved) == (True, found["b.md"].tokens)
    assert (found["a.md"].in_working_set, found["b.md"].in_working_set) == (False, True)
    chat.drop("a.md")
    assert list(rows(chat)) == ["b.md"]


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_folder_lists_omitted_notes(tmp_path: Path, layout: str) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(20):
        (tmp_path / "docs" / f"{number:02}.md").write_text(f"# {number}\n\n{'word ' * 400}", encoding="utf-8")
    chat = Conversation(vault=tmp_path, window=4_000, reserve=200, layout=layout, attachments="sticky")
    chat.ask("What?", attach=[Folder(path="docs")])
    chat.reply("Yes.")
    found = rows(chat)
    out = found["docs"].left_out
    assert len(out) + len(found) - 1 == 20
    assert out[-1] == "docs/19.md"
    assert {row.form for name, row in found.items() if name != "docs"} == {"full", "preview"}


def test_image_follows_library_and_has_age_of_its_message() -> None:
    chat = Conversation(layout="in_place", model="openai:gpt-5", system="Be brief.")
    chat.ask("One.", attach=[Note(path="a.md", text="Alpha.")])
    chat.reply("Yes.")
    chat.ask("See.", attach=[Image(data=png(64, 64), media_type="image/png", title="map")])
    assert [(name, row.age_turns) for name, row in rows(chat).items()] == [("a.md", 2), ("map", 1)]
    chat.reply("Yes.")
    chat.ask("And?")
    chat.reply("Yes.")
    assert [(name, row.age_turns) for name, row in rows(chat).items()] == [("a.md", 3), ("map", 2)]
