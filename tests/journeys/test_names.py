"""Names at the command line: what people call a conversation finds it, and what is printed can be pasted."""

import json
import os
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.journeys.running import spawn
from tests.shells import read_words

import lamella
from lamella.cli import main
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn import TurnRequest
from lamella.core.values import replace
from lamella.wiring import open_backend

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The exit code of a command in the store, and what it printed."""
    monkeypatch.setenv("LAMELLA_STORE", url)

    def running(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return running


def say(url: str, name: str, text: str = "About apples", title: str | None = None) -> str:
    """One turn; gives the key of its conversation."""
    with lamella.open(url) as engine:
        conversation = engine.chat(name)
        conversation.ask(text)
        conversation.reply("Yes.")
        if title is not None:
            conversation.rename(title)
        return conversation.id


def test_conversation_continues_by_title(run: Run, url: str, script: Callable[..., str]) -> None:
    say(url, "garden")
    run("chats", "rename", "garden", "Vault test")
    assert spawn("ask", "And pears?", "--chat", "Vault test", "--model", script("Pears too.")).out == "Pears too.\n"
    talked = spawn("chat", "Vault test", "--model", script("Plums too."), stdin=b"And plums?\n")
    assert talked.out == "Plums too.\n"
    assert talked.err.startswith("Conversation garden (2 turns)")
    assert talked.err.endswith("Saved. Continue with: lamella chat garden\n")
    listed = json.loads(run("chats", "list", "--json")[1])["chats"]
    assert [(row["name"], row["title"]) for row in listed] == [("garden", "Vault test")]
    assert "And pears?" in run("chats", "show", "Vault test")[1]


def test_every_command_accepts_name_key_title_and_prefix(run: Run, url: str) -> None:
    key = say(url, "garden", title="Vault test")
    say(url, "house")
    for words in ("garden", key, "Vault test", "gar", key[:6]):
        for command in (("chats", "show"), ("ledger",), ("store", "verify"), ("replay",)):
            code, out, err = run(*command, words)
            assert (code, err) == (0, ""), (command, words)
            assert out


def test_ambiguous_conversation_is_refused(run: Run, url: str) -> None:
    say(url, "garden", title="Plants")
    say(url, "gar age", title="Plants")
    code, _, err = run("chats", "show", "gar")
    assert (code, err.splitlines()[0]) == (2, "error: 2 conversations begin with 'gar': 'gar age', garden.")
    code, _, err = run("chats", "show", "Plants")
    assert (code, err.splitlines()[1]) == (2, "hint: Say which, by its name.")


def test_create_and_delete_need_exact_name(run: Run, url: str, script: Callable[..., str]) -> None:
    key = say(url, "notes-2")
    assert run("chats", "delete", "notes", "--yes")[0] == 2
    spawn("ask", "A new one?", "--chat", "notes", "--model", script("Yes."))
    listed = json.loads(run("chats", "list", "--json")[1])["chats"]
    assert {row["name"] for row in listed} == {"notes", "notes-2"}
    spawn("ask", "And on?", "--chat", key[:8], "--model", script("Yes."))
    assert "And on?" in run("chats", "show", "notes-2")[1]


def test_deleted_name_is_free_and_erasure_still_verified(run: Run, url: str) -> None:
    first = say(url, "garden", "A secret")
    code, out, _ = run("chats", "delete", "garden", "--yes")
    assert code == 0
    proof = out.partition("left: lamella ")[2].strip()
    assert shlex.split(proof) == ["store", "verify", "--erased", first]
    second = say(url, "garden", "Another one")
    assert second != first
    assert run(*shlex.split(proof))[:2] == (0, f"verified: nothing is left of the deleted data of {first}.\n")
    shown = run("chats", "show", "garden")[1]
    assert "Another one" in shown
    assert "A secret" not in shown
    assert run("chats", "list")[1].count("garden") == 1


def test_erasure_can_be_repeated_and_verified_by_name(run: Run, url: str) -> None:
    say(url, "garden")
    assert run("chats", "delete", "garden", "--yes")[0] == 0
    assert run("chats", "delete", "garden", "--yes")[0] == 0
    assert run("store", "verify", "--erased", "garden")[0] == 0


def test_copy_erases_no_other_conversation_of_the_same_name(run: Run, url: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    key = say(url, "garden")
    run("chats", "delete", "garden", "--yes")
    say(other, "garden", "Not that one")
    assert run("store", "copy", "--from", url, "--to", other)[:2] == (0, f"erased  {key}\n")
    assert "Not that one" in run("chats", "show", "garden", "--store", other)[1]


def test_archive_carries_key_and_name_and_both_conversations_of_a_name_stay(run: Run, url: str, tmp_path: Path) -> None:
    key = say(url, "garden", "From here", title="Beans")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    say(other, "garden", "From there")
    _, out, _ = run("chats", "export", "garden", "--to", str(tmp_path / "files"))
    front = Path(out.strip()).read_text(encoding="utf-8").split("---")[1]
    assert f"\nconversation: {key}\nname: garden\ntitle: Beans\n" in front.replace('"', "")
    assert run("chats", "import", out.strip(), "--store", other)[1] == "new  garden-2  Beans\n"
    assert run("chats", "import", out.strip(), "--store", other)[1] == "same  garden-2  Beans\n"
    assert "From there" in run("chats", "show", "garden", "--store", other)[1]
    assert "From here" in run("chats", "show", "garden-2", "--store", other)[1]


def _downgrade_to_schema_3(path: Path) -> None:
    """A store as it was before there were names; only keys that people chose can be in it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE checkpoints DROP COLUMN apart")
        connection.execute("DROP TABLE shelf")
        connection.execute("DROP INDEX conversations_by_name")
        connection.execute("ALTER TABLE conversations DROP COLUMN name")
        connection.execute("DELETE FROM schema_version WHERE version > 3")


def test_conversations_without_names_continue_by_id(run: Run, url: str, path: Path, script: Callable[..., str]) -> None:
    backend = replace(open_backend(url), make_key=str)
    for name in ("garden", "gone"):
        chat = Conversation.open(backend, name)
        chat.ask(TurnRequest(text="About apples"))
        chat.reply("Yes.")
    chat = Conversation.open(backend, "garden")
    chat.rename("Vault test")
    before = [chat.id, *(record.message.id for record in chat.turns())]
    backend.store.erase_conversation("gone", at="2026-11-17T00:00:00Z")
    backend.store.close()
    _downgrade_to_schema_3(path)
    ran = spawn("ask", "And pears?", "--chat", "Vault test", "--model", script("Too."))
    assert ran.out == "Too.\n", ran
    assert say(url, "gone", "Another one") != "gone"
    assert run("store", "verify")[:2] == (0, "verified: every hash and id is correct.\n")
    assert run("store", "verify", "--erased", "gone")[0] == 0
    with lamella.open(url) as engine:
        assert sorted((one.name, one.title) for one in engine.chats()) == [
            ("garden", "Vault test"),
            ("gone", "Another one"),
        ]
        turns = engine.chat("garden").turns()
        assert [engine.chat("garden").id, turns[0].message.id] == before
        assert [record.message.text for record in turns] == ["About apples", "And pears?"]


ODD = ["two words", "it's", "-dash", "$HOME;ls", "a`b`", "--yes"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("own", [False, True], ids=["the usual store", "a store that is named"])
def test_command_in_a_hint_can_be_pasted(run: Run, url: str, tmp_path: Path, name: str, *, own: bool) -> None:
    url = f"sqlite:///{tmp_path / 'my chats.db'}" if own else url
    say(url, name, title="Beans")
    store = ("--store", url) if own else ()
    for words in (("chats", "fork", "Beans", "nothing"), ("chats", "delete", "Beans", "--artifact", "x", "--yes")):
        code, _, err = run(*words, *store)
        assert code == 2
        code, out, err = run(*read_words(err.partition("hint: See its ")[2].split("`")[1]))
        assert (code, err) == (0, "")
        assert "About apples" in out


@pytest.mark.parametrize("name", ODD)
def test_printed_command_can_be_pasted(run: Run, url: str, name: str) -> None:
    for _ in range(3):
        say(url, name, "About apples " * 90)
    with lamella.open(url) as engine:
        message = engine.chat(name).turns()[0].message.id
    code, out, err = run("chats", "fork", "--into", "-b b", "--", name, message)
    assert (code, err) == (0, "")
    assert read_words(out.partition("Open it with: ")[2]) == ["chat", "--", "-b b"]
    code, out, err = run("compact", "--to", "0.0001", "--", name)
    assert (code, err) == (0, "")
    assert run(*read_words(out.partition("To undo: ")[2]))[0] == 0
    out = run("chats", "delete", "--yes", "--", name)[1]
    assert run(*read_words(out.partition("left: ")[2]))[0] == 0


def test_printed_continue_command_can_be_pasted(tmp_path: Path, url: str, script: Callable[..., str]) -> None:
    vault = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 notes")
    Path(vault).mkdir()
    talked = spawn("chat", "--model", script("Yes."), "--store", url, "--vault", vault, "--", "-dash", stdin=b"Why?\n")
    assert talked.exit == 0
    words = read_words(talked.err.partition("Continue with: ")[2])
    assert words == ["chat", "--store", url, "--vault", vault, "--", "-dash"]
    assert spawn(*words).err.startswith("Conversation -dash (1 turn)")


FALSE = {
    "title": "title = 'A stranger''s title'",
    "beginning": "created = '1999-01-01T00:00:00Z'",
    "last change": "updated = '2099-01-01T00:00:00Z'",
    "number of events": "version = 700",
    "title of bytes": "title = x'00ff'",
    "title that is no text": "title = CAST(x'ff' AS TEXT)",
    "number in words": "version = 'many'",
    "time of bytes": "updated = x'00'",
}


@pytest.mark.parametrize("what", FALSE)
def test_false_list_row_is_repaired_and_breaks_nothing_else(
    run: Run, url: str, path: Path, tmp_path: Path, what: str
) -> None:
    say(url, "garden", title="Beans")
    say(url, "house", "About the roof", title="Roof")
    true = run("chats", "list", "--json")[1]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE conversations SET {FALSE[what]} WHERE name = 'garden'")
    assert "house" in run("chats", "list")[1]
    assert run("chats", "show", "house")[0] == 0
    assert "About the roof" in run("chats", "search", "roof")[1]
    assert "Roof.md" in run("chats", "export", "--all", "--to", str(tmp_path / "files"))[1]
    code, out, err = run("store", "verify")
    assert code == 1
    assert err.startswith("garden  conversation: ")
    assert "lamella store verify --repair" in out
    code, out, _ = run("store", "verify", "--repair")
    assert (code, out) == (0, "repaired: 1 conversation.\nverified: every hash and id is correct.\n")
    assert run("chats", "list", "--json")[1] == true
    assert run("store", "verify")[:2] == (0, "verified: every hash and id is correct.\n")


def test_loss_not_recorded_in_events_is_not_repaired(run: Run, url: str, path: Path) -> None:
    say(url, "garden")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET body = '{}' WHERE seq = 1")
        connection.execute("UPDATE conversations SET version = 9")
    code, out, _ = run("store", "verify", "--repair")
    assert code == 1
    assert out.startswith("repaired: 0 conversations.\ndamaged: ")
    assert run("store", "verify", "--repair", "--erased", "garden")[0] == 2
