"""``lamella store``: migrating, measuring, verifying and copying, on files and on a server."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests import servers
from tests.unit.pictures import png

import lamella
from lamella import Image, Note
from lamella.cli import main
from lamella.core.text.content import hash_text
from lamella.stores.sql_schema import load_migrations

SCHEMA = len(load_migrations("sqlite"))
PNG = png(1, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit code of a command, and what it printed."""

    def running(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return running


def say(url: str, conversation: str = "demo", text: str = "apples") -> None:
    with lamella.open(url) as engine:
        chat = engine.chat(conversation)
        chat.ask(f"About {text}", attach=[Note(path="a.md", text=f"Note on {text}.")])
        chat.reply("Yes.")


def tamper(path: Path, sql: str, *values: object) -> None:
    """Change a store's file behind its back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(sql, values)


def test_migrate_prints_schema_version(run: Run, url: str) -> None:
    assert run("store", "migrate", "--store", url) == (0, f"Schema version: {SCHEMA}\n", "")
    say(url)
    assert run("store", "migrate", "--store", url) == (0, f"Schema version: {SCHEMA}\n", "")


def test_stats_count_stored_rows(run: Run, url: str) -> None:
    say(url, "one")
    say(url, "two")
    with lamella.open(url) as engine:
        engine.chat("three").ask("look", attach=[Image(data=PNG)])
        engine.erase("two")
    code, out, _ = run("store", "stats", "--store", url, "--json")
    assert code == 0
    assert json.loads(out) == {
        "lamella": 1,
        "schema": SCHEMA,
        "conversations": 2,
        "erased": 1,
        "events": 3,
        "contents": 2,
        "content_bytes": len("Note on apples.") + len(PNG),
    }
    plain = run("store", "stats", "--store", url)[1]
    assert [line.rsplit(maxsplit=1) for line in plain.splitlines()][:2] == [
        ["schema", f"{SCHEMA}"],
        ["conversations", "2"],
    ]
    assert "content bytes" in plain


def test_good_store_is_verified(run: Run, url: str) -> None:
    say(url)
    assert run("store", "verify", "--store", url) == (0, "verified: every hash and id is correct.\n", "")
    assert run("store", "verify", "demo", "--store", url)[0] == 0
    code, _, err = run("store", "verify", "nobody", "--store", url)
    assert (code, "no conversation 'nobody'" in err) == (2, True)


DAMAGES: dict[str, tuple[str, tuple[object, ...], str]] = {
    "a changed event": ("UPDATE events SET body = replace(body, 'apples', 'grapes') WHERE seq = 1", (), "event 1"),
    "a changed time": ("UPDATE events SET at = '2020-01-01T00:00:00Z' WHERE seq = 2", (), "event 2"),
    "a lost event": ("DELETE FROM events WHERE seq = 2", (), "event 2"),
    "a kind of event that there is not": ("UPDATE events SET kind = 'dance' WHERE seq = 2", (), "event 2"),
    "a body that is no JSON": ("UPDATE events SET body = '{' WHERE seq = 1", (), "event 1"),
    "a changed content": ("UPDATE contents SET data = ?", (b"Note on grapes.",), "content sha256:"),
    "a lost content": ("DELETE FROM contents", (), "content sha256:"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_exits_with_1(run: Run, url: str, path: Path, damage: str) -> None:
    say(url)
    sql, values, place = DAMAGES[damage]
    tamper(path, sql, *values)
    code, out, err = run("store", "verify", "--store", url)
    assert code == 1
    assert out.startswith("damaged: ")
    assert any(line.startswith(f"demo  {place}") for line in err.splitlines()), err
    assert err.splitlines()[-1].startswith("hint: Restore the database from a backup.")


def test_undamaged_conversations_can_be_copied_as_the_hint_says(run: Run, url: str, path: Path, tmp_path: Path) -> None:
    say(url)
    tamper(path, DAMAGES["a lost event"][0])
    say(url, "other", "pears")
    target = f"sqlite:///{tmp_path / 'saved.db'}"
    code, out, _ = run("store", "copy", "--from", url, "--to", target)
    assert (code, sorted(out.splitlines())) == (1, ["damaged  demo", "new  other"])
    assert run("store", "verify", "--store", target)[0] == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_conversation_can_still_be_erased(run: Run, url: str, path: Path, damage: str) -> None:
    say(url)
    say(url, "other", "pears")
    sql, values, _ = DAMAGES[damage]
    tamper(path, sql, *values)
    assert run("chats", "delete", "demo", "--yes", "--store", url)[0] == 0
    assert run("store", "verify", "--erased", "demo", "--store", url)[0] == 0


def test_unreadable_event_is_numbered_by_every_command(run: Run, url: str, path: Path) -> None:
    say(url)
    tamper(path, "UPDATE events SET kind = 'dance' WHERE seq = 2")
    for words in (("show", "demo"), ("search", "apples"), ("rename", "demo", "T")):
        code, _, err = run("chats", *words, "--store", url)
        assert (code, "Event 2" in err, "lamella store verify" in err) == (1, True, True)


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind to copy into."""
    return f"sqlite:///{tmp_path / 'target.db'}" if request.param == "sqlite" else servers.shared().make_store_url()


def test_copied_store_continues_like_original(run: Run, url: str, target: str) -> None:
    say(url, "one")
    say(url, "two", "pears")
    copy = ("store", "copy", "--from", url, "--to", target)
    code, out, err = run(*copy)
    assert (code, sorted(out.splitlines()), err) == (0, ["new  one", "new  two"], "")
    assert sorted(run(*copy)[1].splitlines()) == ["same  one", "same  two"]
    assert run("store", "verify", "--store", target)[0] == 0
    # And back, into a third store.
    back = url.replace("chats.db", "back.db")
    assert run("store", "copy", "--from", target, "--to", back)[0] == 0
    with lamella.open(url) as here, lamella.open(target) as there, lamella.open(back) as again:
        turns = [engine.chat("one").ask("Next?") for engine in (here, there, again)]
    assert turns[0].envelope == turns[1].envelope == turns[2].envelope
    assert {turn.prefix_change for turn in turns} == {turns[0].prefix_change}


def test_copy_extends_and_reports_divergence(run: Run, url: str, target: str) -> None:
    say(url, "one")
    say(url, "two")
    copy = ("store", "copy", "--from", url, "--to", target)
    run(*copy)
    say(url, "one", "more apples")
    say(url, "two", "pears")
    say(target, "two", "plums")
    say(target, "three")
    code, out, _ = run(*copy)
    assert (code, sorted(out.splitlines())) == (1, ["diverged  two", "extended  one"])
    with lamella.open(target) as engine:
        assert {listed.name: listed.event_count for listed in engine.chats()} == {"one": 4, "two": 4, "three": 2}


def test_copy_repeats_erasures_and_undoes_none(run: Run, url: str, target: str) -> None:
    say(url, "one")
    say(url, "two", "pears")
    copy = ("store", "copy", "--from", url, "--to", target)
    run(*copy)
    run("chats", "delete", "one", "--yes", "--store", url)
    run("chats", "delete", "two", "--yes", "--store", target)
    assert sorted(run(*copy)[1].splitlines()) == ["erased  one", "erased  two"]
    for name in ("one", "two"):
        assert run("store", "verify", "--erased", name, "--store", target)[0] == 0
    with lamella.open(url) as engine:
        assert [listed.name for listed in engine.chats()] == ["two"]


@pytest.mark.parametrize(
    "words",
    [
        ("copy", "--from", "nowhere", "--to", "sqlite:///x.db"),
        ("copy", "--from", "sqlite:///x.db"),
        ("stats", "--store", "mysql://host/db"),
        ("verify", "--store", "sqlite:"),
        ("dance",),
    ],
)
def test_wrong_word_is_refused_with_a_hint(
    run: Run, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("store", *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "\nhint: " in err


def test_foreign_file_is_refused_and_unchanged(run: Run, url: str, path: Path) -> None:
    path.write_bytes(b"Dear diary, this is no database at all." * 100)
    before = path.read_bytes()
    code, _, err = run("store", "stats", "--store", url)
    assert code == 1
    assert str(path) in err
    assert path.read_bytes() == before


def test_foreign_database_is_refused_and_unchanged(run: Run, url: str, path: Path) -> None:
    tamper(path, "CREATE TABLE recipes (name TEXT)")
    code, _, err = run("store", "migrate", "--store", url)
    assert (code, "recipes" in err) == (2, True)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]


def test_contents_that_two_conversations_share_are_stored_once(run: Run, url: str, path: Path) -> None:
    say(url, "one")
    say(url, "two")
    assert json.loads(run("store", "stats", "--store", url, "--json")[1])["contents"] == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT hash FROM contents").fetchall() == [(hash_text("Note on apples."),)]


def test_store_to_copy_from_must_be_there(run: Run, tmp_path: Path) -> None:
    code, _, err = run(
        "store", "copy", "--from", f"sqlite:///{tmp_path}/from.db", "--to", f"sqlite:///{tmp_path}/to.db"
    )
    assert code == 2
    assert err.startswith(f"error: Store not found: sqlite:///{tmp_path}/from.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["'zz'", "x'ff00'", "9e999", "char(0)", "CAST(x'ff41' AS TEXT)"])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("conversations", column) for column in ("id", "name")),
        *(("events", column) for column in ("conversation", "seq", "kind", "at", "body", "contents", "counts")),
        ("holdings", "hash"),
        ("contents", "data"),
    ],
)
def test_invalid_column_value_does_not_block_others(path: Path, run: Run, table: str, column: str, value: str) -> None:
    """SQLite keeps anything anywhere."""
    say(url := f"sqlite:///{path}")
    say(url, "other", "pears")
    with lamella.open(url) as engine:
        key, other = (engine.resolve_conversation(name).conversation for name in ("demo", "other"))
    rows = {
        "conversations": "id = ?1",
        "events": "conversation = ?1 AND seq = 1",
        "contents": f"hash = '{hash_text('Note on apples.')}' AND ?1 <> ''",
    }
    tamper(path, f"UPDATE {table} SET {column} = {value} WHERE {rows.get(table, 'conversation = ?1')}", key)
    # Anything that is a text can be a name, and what are no bytes are no counts.
    is_legal = (column, value) in {("name", value) for value in ("'zz'", "9e999", "CAST(x'ff41' AS TEXT)")}
    is_legal |= column == "counts" and value != "x'ff00'"
    code, out, _ = run("store", "verify", "--json", "--store", url)
    damages = json.loads(out)["damages"]
    assert bool(damages) is not is_legal
    assert (code, {damage["conversation"] for damage in damages} & {other}) == (int(bool(damages)), set())
    assert run("store", "verify", "--repair", "--store", url)[0] in {0, 1}
    assert "other" in run("chats", "list", "--store", url)[1]
    assert "other" in run("chats", "search", "pears", "--store", url)[1]
    copied = run("store", "copy", "--from", url, "--to", f"sqlite:///{path}.copy")
    assert "new  other" in copied[1]
