"""Erasure: what is erased is gone, provably, and nothing else is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tests import servers
from tests.unit.pictures import png

import lamella
from lamella import ActiveNote, Conversation, Image, Note, Selection, ToolResult, Turn, Unknown, Url
from lamella.cli import main
from lamella.core.prompt.invariants import check_invariants
from lamella.core.text.content import hash_bytes, hash_text
from lamella.errors import ConversationErasedError

SECRET = "the zebra keeps its stripes in a drawer"
SHARED = "a page that two conversations share"
PNG = png(7, 9) + b" striped zebra"
LAYOUTS = pytest.mark.parametrize("layout", ["library", "in_place", "auto"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, url: str) -> str:
    """The address of a store in a file, and of one on a server."""
    return url if request.param == "sqlite" else servers.shared().make_store_url()


def run_lamella_command(*words: str) -> int:
    return main(list(words))


def fill(url: str, *, layout: str = "library", vault: Path | None = None) -> list[Turn]:
    """Two conversations. One holds the secret in every way there is; both hold the shared page."""
    with lamella.open(url, vault=vault) as engine:
        conversation = engine.chat("mine", layout=layout)
        turns = [
            conversation.ask(
                "First", attach=[Note(path="secret.md", text=SECRET), Url(url="https://example.org/", text=SHARED)]
            )
        ]
        conversation.reply("Understood.")
        turns.append(conversation.ask("Again", attach=[Note(path="secret.md", text=f"{SECRET}, and its hat")]))
        conversation.reply("Noted.")
        turns.append(conversation.ask("Last"))
        conversation.reply("Done.")
        other = engine.chat("theirs", layout=layout)
        other.ask("Theirs", attach=[Url(url="https://example.org/", text=SHARED)])
        other.reply("Yes.")
    return turns


def file_bytes(path: Path) -> bytes:
    """Everything on disk that belongs to a store in a file."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def rows_of(url: str) -> str:
    """Everything that a store's tables hold, as text."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            tables = ("conversations", "events", "contents", "holdings")
            return repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
    address, _, schema = url.rpartition("&schema=")
    with psycopg.connect(address) as server:
        names = [sql.Identifier(schema, table) for table in ("conversations", "events", "contents", "holdings")]
        return repr([server.execute(sql.SQL("SELECT * FROM {}").format(name)).fetchall() for name in names])


def said(chat: Conversation) -> list[str]:
    return [node.text for record in chat.turns() for node in (record.message, record.reply) if node]


def test_erased_conversation_leaves_tombstone_and_shared_content(either: str) -> None:
    fill(either)
    assert SECRET in rows_of(either)
    assert run_lamella_command("chats", "delete", "mine", "--yes", "--store", either) == 0
    left = rows_of(either)
    assert [word for word in (SECRET, "Understood.", "First", hash_text(SECRET)) if word in left] == []
    assert ("mine" in left, SHARED in left) == (True, True)
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", either) == 0
    assert run_lamella_command("store", "verify", "--store", either) == 0
    with lamella.open(either) as engine:
        assert [listed.name for listed in engine.chats()] == ["theirs"]
        assert SHARED in engine.chat("theirs").ask("Still?").messages[0].text
        assert engine.chat("mine").turns() == []


def test_erased_conversation_leaves_no_byte_in_file(url: str, path: Path) -> None:
    fill(url)
    with lamella.open(url) as engine:
        engine.chat("mine").rename("A title on zebras")
        conversation = engine.chat("mine")
        conversation.ask(
            "More", attach=[Image(data=PNG), Unknown(text=SECRET * 500), Selection(path="s.md", text=SECRET)]
        )
    before = file_bytes(path)
    assert all(word in before for word in (SECRET.encode(), PNG, b"A title on zebras", b"Understood."))
    with lamella.open(url) as engine:
        engine.erase("mine")
        now = file_bytes(path)
    for erased in (SECRET.encode(), b"zebra", PNG, b"Understood.", hash_text(SECRET).encode()):
        assert erased not in now
        assert erased not in file_bytes(path)
    assert SHARED.encode() in file_bytes(path)


def test_open_chat_cannot_continue_after_erasure(url: str) -> None:
    fill(url)
    with lamella.open(url) as engine:
        open_still = engine.chat("mine")
        engine.erase("mine")
        with pytest.raises(ConversationErasedError) as caught:
            open_still.ask("Are you there?")
        assert "name it had is free" in caught.value.hint
    assert SECRET not in rows_of(url)


@LAYOUTS
def test_erased_artifact_is_missing_and_conversation_continues(either: str, layout: str) -> None:
    sent = fill(either, layout=layout)
    assert run_lamella_command("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", either) == 0
    assert SECRET not in rows_of(either)
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", either) == 0
    assert run_lamella_command("store", "verify", "--store", either) == 0
    with lamella.open(either) as engine:
        conversation = engine.chat("mine")
        assert said(conversation) == ["First", "Understood.", "Again", "Noted.", "Last", "Done."]
        assert [record.message.id for record in conversation.turns()] == [turn.envelope.message_id for turn in sent]
        turn = conversation.ask("And now?")
        text = "\n".join(message.text for message in turn.messages)
        # Where prices decide, a page of three turns ago is known by its name.
        assert (SECRET in text, (SHARED if layout != "auto" else "- https://example.org/\n") in text) == (False, True)
        check_invariants(turn.envelope, before=None)
        conversation.reply("On we go.")
        assert conversation.regenerate().envelope == turn.envelope


def test_erased_artifact_leaves_no_byte_in_file(url: str, path: Path) -> None:
    fill(url)
    assert SECRET.encode() in file_bytes(path)
    assert run_lamella_command("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url) == 0
    now = file_bytes(path)
    assert (SECRET.encode() in now, b"zebra" in now) == (False, False)
    assert all(word in now for word in (SHARED.encode(), b"Understood.", b"secret.md"))


def test_repeated_turn_warns_about_erased_attachment(url: str) -> None:
    fill(url)
    run_lamella_command("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url)
    with lamella.open(url) as engine:
        conversation = engine.chat("mine")
        again = conversation.regenerate(conversation.turns()[0].message.id)
        assert again.envelope.warnings == ("secret.md was erased and is left out.",)
        assert SECRET not in again.messages[-1].text


def test_instructions_with_erased_note_are_erased(url: str, path: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "secret.md").write_text(SECRET)
    with lamella.open(url, vault=vault) as engine:
        conversation = engine.chat("mine")
        turn = conversation.ask("Hello", system={"base": "B.", "instructions": "Remember {[[secret]]}, always."})
        conversation.reply("Hi.")
    assert SECRET in turn.messages[0].text
    (vault / "secret.md").unlink()
    assert run_lamella_command("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url) == 0
    assert b"zebra" not in file_bytes(path)
    with lamella.open(url, vault=vault) as engine:
        next_turn = engine.chat("mine").ask("And now?")
    assert next_turn.messages[0].text == "B.\n\nRemember {[[secret]]}, always."


def test_image_is_erased_by_hash_everywhere(url: str, path: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "zoo.md").write_text("Look: ![[zebra.png]]")
    (vault / "zebra.png").write_bytes(PNG)
    with lamella.open(url, vault=vault) as engine:
        conversation = engine.chat("mine", layout="in_place")
        conversation.ask("Look", attach=[ActiveNote(path="zoo.md")])
        conversation.reply("I see.")
    assert PNG in file_bytes(path)
    assert run_lamella_command("chats", "delete", "mine", "--artifact", hash_bytes(PNG), "--yes", "--store", url) == 0
    assert PNG not in file_bytes(path)
    with lamella.open(url) as engine:
        again = engine.chat("mine").regenerate()
    assert (again.messages[-1].images, "Look: ![[zebra.png]]" in again.messages[-1].text) == ((), True)


def test_tool_result_can_be_erased_by_id(url: str, path: Path) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("mine")
        turn = conversation.ask("Search", results=[ToolResult(name="search", output=SECRET)])
        conversation.reply("Found.")
    name = next(segment.id for layer in turn.envelope.layers for segment in layer.segments if segment.kind == "tool")
    assert run_lamella_command("chats", "delete", "mine", "--artifact", name, "--yes", "--store", url) == 0
    assert b"zebra" not in file_bytes(path)


PLANTED: dict[str, tuple[str, tuple[object, ...]]] = {
    "an event": (
        "INSERT INTO events (conversation, seq, kind, at, body, contents, hash)"
        " SELECT id, 1, 'rename', 'now', '{}', '[]', 'x' FROM conversations WHERE name = 'mine'",
        (),
    ),
    "a content": (
        "INSERT INTO holdings (conversation, hash) SELECT id, hash FROM contents, conversations WHERE name = 'mine'",
        (),
    ),
    "a title": ("UPDATE conversations SET title = 'A title on zebras' WHERE name = 'mine'", ()),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_content_restored_after_erasure_is_found(url: str, path: Path, planted: str) -> None:
    fill(url)
    run_lamella_command("chats", "delete", "mine", "--yes", "--store", url)
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", url) == 0
    statement, values = PLANTED[planted]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", url) == 1


def test_artifact_restored_after_erasure_is_found(url: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(url)
    run_lamella_command("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url)
    with closing(sqlite3.connect(path)) as connection, connection:
        row = (hash_text(SECRET), SECRET.encode())
        connection.execute("INSERT INTO contents (hash, data) VALUES (?, ?)", row)
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", url) == 1
    assert f"content {hash_text(SECRET)}" in capsys.readouterr().err


def test_verify_erased_fails_for_conversation_never_erased(url: str) -> None:
    fill(url)
    for name in ("mine", "nobody"):
        assert run_lamella_command("store", "verify", "--erased", name, "--store", url) == 1


def test_erasure_in_one_conversation_leaves_the_same_note_in_another(url: str) -> None:
    with lamella.open(url) as engine:
        for name in ("mine", "theirs"):
            conversation = engine.chat(name)
            conversation.ask("Read", attach=[Note(path="secret.md", text=SECRET)])
            conversation.reply("Yes.")
    run_lamella_command("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url)
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", url) == 0
    with lamella.open(url) as engine:
        sent = {name: engine.chat(name).ask("And now?").messages[0].text for name in ("mine", "theirs")}
    assert (SECRET in sent["mine"], SECRET in sent["theirs"]) == (False, True)


def test_archive_written_after_erasure_omits_it(url: str, tmp_path: Path) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("mine")
        conversation.ask(
            "Read", attach=[Selection(path="s.md", text=SECRET), Url(url="https://example.org/", text=SHARED)]
        )
        conversation.reply("Yes.")
        name = next(s.id for s in conversation.ask("And?").envelope.layers[1].segments if s.id.startswith("s.md"))
    run_lamella_command("chats", "delete", "mine", "--artifact", name, "--yes", "--store", url)
    assert run_lamella_command("chats", "export", "mine", "--to", str(tmp_path / "out"), "--store", url) == 0
    (file,) = (tmp_path / "out").iterdir()
    text = file.read_text(encoding="utf-8")
    assert (SECRET in text, SHARED in text) == (False, True)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run_lamella_command("chats", "import", str(file), "--store", other) == 0
    assert run_lamella_command("store", "verify", "--erased", "mine", "--store", other) == 0
