"""Memory files: private, whole, not lost by two who write at once, and clear about what is wrong with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamella.errors import (
    InvalidOperationError,
    LamellaError,
    SourceTooLargeError,
    SourceUnreadableError,
    StoreUnavailableError,
)
from lamella.memory import FACTS_FILE, MAX_MEMORY_BYTES, RECENT_FILE, MemoryFileStore
from lamella.ports import FactKind


@pytest.fixture
def book(tmp_path: Path) -> MemoryFileStore:
    return MemoryFileStore(tmp_path / "memory")


def texts(book: MemoryFileStore) -> list[str]:
    return [fact.text for fact in book.read()]


def test_reading_makes_no_folder_and_the_first_fact_does(book: MemoryFileStore) -> None:
    assert (list(book.read()), book.folder.exists()) == ([], False)
    fact, is_new = book.add("My garden is in Graz.")
    assert (is_new, texts(book), len(fact.id)) == (True, ["My garden is in Graz."], 8)
    assert (book.folder / FACTS_FILE).read_text(encoding="utf-8") == "# Saved facts\n\n- My garden is in Graz.\n"
    assert book.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in book.folder.iterdir()} == {0o600}


def test_fact_that_is_there_is_not_written_twice(book: MemoryFileStore) -> None:
    first, _ = book.add("Likes  tea")
    assert book.add("likes TEA") == (first, False)
    assert book.add("likes tea", kind=FactKind.NOTED) == (first, False)
    assert texts(book) == ["Likes tea"]


@pytest.mark.parametrize("which", ["2", "two", "TWO", "tw"])
def test_fact_is_found_by_number_id_or_words(book: MemoryFileStore, which: str) -> None:
    for text in ("one", "two", "three"):
        book.add(text)
    assert book.remove(which).text == "two"
    assert texts(book) == ["one", "three"]
    assert book.remove(book.read()[1].id).text == "three"


@pytest.mark.parametrize(("which", "told"), [("9", "No fact"), ("", "No fact"), ("e", "2 facts have these words")])
def test_ambiguous_fact_is_not_removed(book: MemoryFileStore, which: str, told: str) -> None:
    for text in ("one", "three"):
        book.add(text)
    with pytest.raises(InvalidOperationError, match=told):
        book.remove(which)
    assert texts(book) == ["one", "three"]


def test_edited_fact_keeps_position_and_becomes_users(book: MemoryFileStore) -> None:
    book.add("Owns a boat", kind=FactKind.NOTED)
    book.add("two")
    changed = book.edit("1", "Owns a canoe")
    assert (changed.kind, texts(book)) == (FactKind.SAVED, ["Owns a canoe", "two"])


def test_conversation_has_one_line_and_can_be_forgotten(book: MemoryFileStore) -> None:
    book.add("Beans", kind=FactKind.RECENT, conversation_key="k1")
    book.add("Tides", kind=FactKind.RECENT, conversation_key="k2")
    book.add("Beans and peas", kind=FactKind.RECENT, conversation_key="k1")
    assert texts(book) == ["Tides", "Beans and peas"]
    assert (book.forget_conversation("k1"), book.forget_conversation("k1"), texts(book)) == (True, False, ["Tides"])


@pytest.mark.parametrize("text", ["", " \n", "---", "x" * 501])
def test_invalid_fact_is_refused(book: MemoryFileStore, text: str) -> None:
    with pytest.raises(InvalidOperationError):
        book.add(text)
    assert texts(book) == []


def test_value_that_is_not_text_is_refused(book: MemoryFileStore) -> None:
    with pytest.raises(InvalidOperationError, match="not a text"):
        book.add(7)  # type: ignore[arg-type]


def test_full_file_accepts_no_more_and_is_readable(book: MemoryFileStore) -> None:
    book.add("one")
    path = book.folder / FACTS_FILE
    path.write_text("- one\n" + "<!-- much -->\n" * (MAX_MEMORY_BYTES // 14 - 1), encoding="utf-8")
    with pytest.raises(InvalidOperationError, match="would have"):
        book.add("two " * 100)
    assert texts(book) == ["one"]


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"- caf\xe9", SourceUnreadableError), (b"x" * (MAX_MEMORY_BYTES + 1), SourceTooLargeError)],
)
def test_invalid_file_content_is_reported(book: MemoryFileStore, data: bytes, error: type[LamellaError]) -> None:
    book.add("one")
    (book.folder / FACTS_FILE).write_bytes(data)
    with pytest.raises(error, match=r"facts\.md"):
        book.read()
    with pytest.raises(error):
        book.add("two")
    assert (book.folder / FACTS_FILE).read_bytes() == data


def test_crlf_and_bom_are_accepted(book: MemoryFileStore) -> None:
    book.add("one")
    (book.folder / FACTS_FILE).write_bytes(b"\xef\xbb\xbf- one\r\n- two\r\n")
    assert texts(book) == ["one", "two"]


def test_link_is_not_followed(book: MemoryFileStore, tmp_path: Path) -> None:
    book.add("one")
    (tmp_path / "secret").write_text("- key", encoding="utf-8")
    (book.folder / RECENT_FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(SourceUnreadableError, match="is a link"):
        book.read()


def test_folder_at_file_path_is_reported(book: MemoryFileStore) -> None:
    (book.folder / FACTS_FILE).mkdir(parents=True)
    with pytest.raises(SourceUnreadableError, match=r"facts\.md"):
        book.read()


def test_uncreatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreUnavailableError, match="cannot be written"):
        MemoryFileStore(tmp_path / "file" / "memory").add("one")


def test_concurrent_processes_lose_no_facts(book: MemoryFileStore) -> None:
    program = (
        "import sys; from pathlib import Path; from lamella.memory import MemoryFileStore\n"
        "book = MemoryFileStore(Path(sys.argv[1]))\n"
        "for number in range(10): book.add(f'{sys.argv[2]} {number}')"
    )
    command = [sys.executable, "-c", program, str(book.folder)]
    running = [subprocess.Popen([*command, name], env=os.environ) for name in ("left", "right")]
    assert [process.wait(60) for process in running] == [0, 0]
    assert sorted(texts(book)) == sorted(f"{name} {number}" for name in ("left", "right") for number in range(10))


def test_unclosed_comment_hides_no_fact(tmp_path: Path) -> None:
    (tmp_path / "facts.md").write_text("<!-- note to self\n", encoding="utf-8")
    with pytest.raises(LamellaError, match="a comment that does not end"):
        MemoryFileStore(tmp_path).add("Likes tea")
    assert (tmp_path / "facts.md").read_text(encoding="utf-8") == "<!-- note to self\n"
