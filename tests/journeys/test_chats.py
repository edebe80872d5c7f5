"""``lamella chats``: every command as a person at a terminal meets it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.journeys.running import Ran, spawn

import lamella
from lamella import Note, Selection, ToolResult
from lamella.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Printed]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command on the test's own store."""

    def running(*words: str) -> Printed:
        capsys.readouterr()
        code = main([*words, "--store", url])
        return Printed(code=code, out=(captured := capsys.readouterr()).out, err=captured.err)

    return running


def say(url: str, conversation: str = "demo", *, title: str = "") -> list[str]:
    """Two turns, the first with attachments; the ids of the messages."""
    with lamella.open(url) as engine:
        chat = engine.chat(conversation)
        note = Note(path="spec.md", text="# Spec")
        chat.ask("Summarize this", attach=[note], results=[ToolResult(name="search", output="found")])
        chat.reply("A summary.")
        chat.ask("And in German?")
        chat.reply("Eine Zusammenfassung.")
        if title:
            chat.rename(title)
        return [node.id for record in chat.turns() for node in (record.message, record.reply) if node]


def test_empty_list_says_how_to_start(run: Run, url: str) -> None:
    run("store", "migrate")
    printed = run("chats", "list")
    assert (printed.code, printed.err) == (0, "")
    begin, bring = (f"`lamella {words} --store {url}`" for words in ("chat", "chats import"))
    assert printed.out == f"No conversations yet. Start one with {begin}, or import some with {bring}.\n"
    assert json.loads(run("chats", "list", "--json").out) == {"lamella": 1, "chats": []}


def test_list_shows_ids_titles_and_sizes_the_last_changed_first(run: Run, url: str) -> None:
    say(url, "first", title="One [bold]title[/bold]")
    say(url, "second")
    heading, *rows = run("chats", "list").out.splitlines()
    assert heading.split() == ["name", "title", "changed", "events"]
    assert [row.split()[0] for row in rows] == ["second", "first"]
    assert "One [bold]title[/bold]" in rows[1]
    listed = json.loads(run("chats", "list", "--json").out)["chats"]
    assert [(one["name"], one["title"], one["events"]) for one in listed] == [
        ("second", "Summarize this", 4),
        ("first", "One [bold]title[/bold]", 5),
    ]
    assert all(one["created"] <= one["updated"] and one["updated"].endswith("Z") for one in listed)


def test_list_shows_local_time_and_utc_on_request(url: str, home: dict[str, str]) -> None:
    with lamella.open(url) as engine:
        engine.chat("demo").ask("When?", at=datetime(2026, 3, 1, 20, 34, 56, tzinfo=UTC))
    tokyo = {**home, "TZ": "Asia/Tokyo"}
    listed = spawn("chats", "list", "--store", url, environment=tokyo).out
    assert "  2026-03-02 05:34:56  " in listed
    listed = spawn("chats", "list", "--utc", "--store", url, environment=tokyo).out
    assert "  changed (UTC)  " in listed
    assert "  2026-03-01 20:34:56  " in listed
    row = json.loads(spawn("chats", "list", "--json", "--store", url, environment=tokyo).out)["chats"][0]
    assert row["updated"] == "2026-03-01T20:34:56Z"


def test_show_prints_ids_and_attachments(run: Run, url: str) -> None:
    first, second, third, fourth = say(url)
    lines = run("chats", "show", "demo").out.splitlines()
    assert lines[0] == f"{first}  user: Summarize this"
    assert [line.split("+ ")[1].partition(":")[0] for line in lines[1:3]] == ["tool", "spec.md"]
    assert lines[3:] == [
        f"{second}  reply: A summary.",
        f"{third}  user: And in German?",
        f"{fourth}  reply: Eine Zusammenfassung.",
    ]


def test_text_that_would_move_the_cursor_is_shown_escaped(run: Run, url: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo")
        conversation.ask("two\nlines \x1b[2J and \x07")
        conversation.rename("\x1b]0;title\x07")
    assert "two\nlines \\x1b[2J and \\x07" in run("chats", "show", "demo").out
    for command in (("list",), ("search", "lines")):
        assert "\x1b" not in run("chats", *command).out


def test_fork_continues_from_message_and_show_lists_old_branch(run: Run, url: str) -> None:
    names = say(url)
    printed = run("chats", "fork", "demo", "--at", names[1])
    assert (printed.code, printed.out) == (0, f"demo continues from {names[1]}.\n")
    shown = run("chats", "show", "demo").out.splitlines()
    assert shown[-1] == f"other branches: {names[3]}"
    assert not any("German" in line for line in shown)
    other = run("chats", "show", "demo", "--branch", names[3]).out
    assert "And in German?" in other
    assert other.splitlines()[-1] == f"other branches: {names[1]}"


def test_searching_looks_at_every_message_of_every_branch(run: Run, url: str) -> None:
    names = say(url)
    run("chats", "fork", "demo", "--at", names[1])
    printed = run("chats", "search", "GERMAN")
    assert (printed.code, printed.out) == (0, f"demo  {names[2]}  user: And in German?\n")
    missing = run("chats", "search", "cherries")
    assert (missing.code, missing.out, missing.err) == (
        1,
        "",
        "No message contains these words. Attachments are not searched.\n",
    )


def test_renaming_shows_in_the_list(run: Run, url: str) -> None:
    say(url)
    assert run("chats", "rename", "demo", "Specs & more").out == "Title of demo: Specs & more\n"
    assert json.loads(run("chats", "list", "--json").out)["chats"][0]["title"] == "Specs & more"


@pytest.mark.parametrize(
    "words",
    [
        ("show", "nobody"),
        ("fork", "nobody", "--at", "x"),
        ("rename", "nobody", "T"),
        ("export", "nobody"),
        ("delete", "nobody", "--yes"),
        ("delete", "nobody", "--artifact", "a.md", "--yes"),
    ],
)
def test_missing_conversation_is_named_with_hint(run: Run, url: str, words: tuple[str, ...]) -> None:
    say(url)
    printed = run("chats", *words)
    assert (printed.code, printed.out) == (2, "")
    assert printed.err == (
        "error: There is no conversation 'nobody'.\n"
        f"hint: `lamella chats list --store {url}` lists the conversations.\n"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fork", "demo", "--at", "nobody"), 'The conversation demo has no such message: "nobody".'),
        (("show", "demo", "--branch", "nobody"), "Message not found in demo: nobody"),
        (("delete", "demo", "--artifact", "other.md", "--yes"), "demo never had an artifact 'other.md'."),
        (("export",), "Give either conversations or --all."),
        (("export", "demo", "--all"), "Give either conversations or --all."),
        (("fork", "demo"), "Missing message to continue from."),
        (("search", " "), "Missing search words."),
        (("dance",), "No such command 'dance'."),
    ],
)
def test_invalid_argument_is_reported_and_changes_nothing(
    run: Run, url: str, words: tuple[str, ...], told: str
) -> None:
    say(url)
    printed = run("chats", *words)
    error, hint = printed.err.splitlines()[:2]
    assert (printed.code, error) == (2, f"error: {told}")
    assert hint.startswith("hint: ")
    assert json.loads(run("chats", "list", "--json").out)["chats"][0]["events"] == 4


def test_error_is_json_with_json_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    assert main(["chats", "list", "--json", "--store", f"sqlite:///{tmp_path / 'folder'}"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["code"] == "store_unavailable"
    assert captured.err.startswith("error: ")


READING = [
    ("chats", "list"),
    ("chats", "list", "--json"),
    ("chats", "show", "demo"),
    ("chats", "search", "words"),
    ("chats", "export", "--all"),
    ("chats", "fork", "demo", "--at", "x"),
    ("chats", "rename", "demo", "T"),
    ("chats", "delete", "demo", "--yes"),
    ("store", "verify"),
    ("store", "stats"),
    ("ledger", "demo"),
    ("recall", "demo", "words"),
    ("compact", "demo", "--plan"),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_missing_store_is_error_for_reading_commands(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    printed = run(*words)
    error, hint = printed.err.splitlines()
    assert (printed.code, error) == (2, f"error: Store not found: sqlite:///{tmp_path}/chats.db")
    assert hint.startswith("hint: Check the address, or create the store: ")
    assert list(tmp_path.iterdir()) == []


def test_list_without_store_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["chats", "list"]) == 0
    assert capsys.readouterr().out.startswith("No conversations yet.")
    monkeypatch.setenv("LAMELLA_STORE", f"sqlite:///{tmp_path}/mistyped.db")
    assert main(["chats", "list"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_delete_asks_for_confirmation_and_accepts_no(run: Run, url: str) -> None:
    say(url)

    def answering(answer: bytes) -> Ran:
        return spawn("chats", "delete", "demo", "--store", url, stdin=answer)

    no = answering(b"n\n")
    assert no.exit == 2
    assert "Delete demo permanently? [y/N]" in no.out
    assert "error: Nothing was deleted." in no.err
    silent = answering(b"")
    assert (silent.exit, "hint: Add --yes to delete without confirmation." in silent.err) == (2, True)
    assert len(json.loads(run("chats", "list", "--json").out)["chats"]) == 1
    yes = answering(b"y\n")
    assert yes.exit == 0
    assert "Deleted demo. To check that nothing is left: lamella store verify --erased " in yes.out
    assert json.loads(run("chats", "list", "--json").out)["chats"] == []


def test_erased_conversation_is_missing_for_every_command(run: Run, url: str) -> None:
    say(url)
    assert run("chats", "delete", "demo", "--yes").code == 0
    for words in (("show", "demo"), ("rename", "demo", "T"), ("export", "demo")):
        printed = run("chats", *words)
        assert (printed.code, "demo was erased at" in printed.err) == (1, True)
    assert run("chats", "search", "summary").code == 1
    assert run("chats", "delete", "demo", "--yes").code == 0, "an erasure can be repeated"


def test_erasing_artifact_reports_what_was_removed(run: Run, url: str) -> None:
    say(url)
    with lamella.open(url) as engine:
        engine.chat("demo").ask("again", attach=[Note(path="spec.md", text="# Spec, second edition")])
    printed = run("chats", "delete", "demo", "--artifact", "spec.md", "--yes")
    assert printed.code == 0
    assert printed.out.startswith(
        "Deleted spec.md: 2 contents. To check that nothing is left: lamella store verify --erased"
    )
    assert run("store", "verify", "--erased", "demo").code == 0


def test_conversations_are_exported_as_markdown_and_imported(run: Run, url: str, tmp_path: Path) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat("demo", layout="in_place")
        conversation.ask("What is this?", attach=[Selection(path="spec.md", text="selected --> text")])
        conversation.reply("**user**: a quote\n---\n")
        conversation.rename("Specs")
    printed = run("chats", "export", "demo", "--to", str(tmp_path / "out"))
    assert printed.code == 0
    (file,) = (tmp_path / "out").iterdir()
    assert printed.out == f"{file}\n"
    assert "What is this?" in file.read_text(encoding="utf-8")
    run("chats", "rename", "demo", "Other title")
    assert run("chats", "export", "--all", "--to", str(tmp_path / "out")).out == f"{file}\n"
    assert len(list((tmp_path / "out").iterdir())) == 1

    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert main(["chats", "import", str(file), "--store", other]) == 0
    assert main(["chats", "import", str(file), "--store", other]) == 0
    with lamella.open(url) as here, lamella.open(other) as there:
        one, two = here.chat("demo").ask("Next?"), there.chat("demo").ask("Next?")
    assert (one.envelope, one.prefix_change) == (two.envelope, two.prefix_change)


def test_import_reports_outcome_of_each_file(run: Run, url: str, tmp_path: Path) -> None:
    say(url, title="Specs")
    run("chats", "export", "demo", "--to", str(tmp_path))
    (file,) = tmp_path.glob("*.md")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "spec.md").write_text("# Spec")
    printed = run("chats", "import", str(file), "--vault", str(vault))
    assert (printed.code, printed.out, printed.err) == (0, "same  demo  Specs\n", "")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert main(["chats", "import", str(file), "--vault", str(vault), "--store", other]) == 0
    with lamella.open(other) as there:
        turn = there.chat("demo").ask("Next?")
    assert "# Spec" in turn.messages[0].text


def test_export_without_vault_includes_all_texts(run: Run, url: str, tmp_path: Path) -> None:
    say(url, title="Specs")
    run("chats", "export", "demo", "--to", str(tmp_path))
    (file,) = tmp_path.glob("*.md")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert main(["chats", "import", str(file), "--store", other]) == 0
    with lamella.open(url) as here, lamella.open(other) as there:
        ours, theirs = here.chat("demo").ask("And now?"), there.chat("demo").ask("And now?")
    assert [message.text for message in theirs.messages] == [message.text for message in ours.messages]


def test_import_names_missing_notes(run: Run, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say(url, title="Specs")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "spec.md").write_text("# Spec", encoding="utf-8")
    run("chats", "export", "demo", "--to", str(tmp_path), "--vault", str(vault))
    (file,) = tmp_path.glob("*.md")
    assert main(["chats", "import", str(file), "--store", f"sqlite:///{tmp_path / 'other.db'}"]) == 0
    assert f"warning: {file.name}: spec.md is left out" in capsys.readouterr().err
    missing = run("chats", "import", str(tmp_path / "nothing.md"))
    assert missing.code == 2
    assert "nothing.md" in missing.err


def test_store_of_environment_is_default(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    say(url, "from-the-environment")
    monkeypatch.setenv("LAMELLA_STORE", url)
    assert main(["chats", "list"]) == 0
    assert "from-the-environment" in capsys.readouterr().out
