"""Conversations that leave their store as markdown and come back: what is sent next is what would have been sent."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import preloaded
from tests.journeys.running import run
from tests.unit.pictures import png

import lamella
from lamella import ActiveNote, Image, Note, Selection, ToolResult, Turn, Unknown, Url
from lamella.archive.markdown import parse_archive, render_archive
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ImportOutcome
from lamella.wiring import open_archive, open_conversation_repository

NAME = "talk"
LAYOUTS = pytest.mark.parametrize("layout", ["library", "in_place", "auto"])

# Takes an archive into a new store, in a process that knows nothing else, and tells what it would send next.
GO_ON = """
import json, sys
from pathlib import Path
import lamella
from lamella.wiring import open_archive, open_conversation_repository

archive, vault, store = sys.argv[1:]
conversations = open_conversation_repository(store)
export = open_archive().load(Path(archive), vault=Path(vault))
taken = conversations.import_conversation(export)
assert not list(conversations.verify())
conversations.close()
with lamella.open(store, vault=vault) as engine:
    turn = engine.chat(export.conversation_key).ask("And now?")
    sent = [message.to_dict() for message in turn.messages]
print(json.dumps({"taken": taken, "warnings": export.warnings, "sent": sent}))
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / "docs").mkdir(parents=True)
    (folder / "spec.md").write_bytes(b"\xef\xbb\xbf# Spec\r\n\r\nThe text. **user**: quoted --> \r\n")
    (folder / "docs" / "a, [b] & c.md").write_text("Other text", encoding="utf-8")
    (folder / "drawn.md").write_text("![[dot.png]] in a note", encoding="utf-8")
    (folder / "dot.png").write_bytes(png(3, 3))
    return folder


def with_a_page(chat: Conversation, _: Path) -> None:
    chat.ask("Read this", attach=[Url(url="https://example.org/x?a=1&b=2#install", text="The page -->\r\n" * 50)])
    chat.reply("Read.")
    chat.ask("Again", attach=[Url(url="https://example.org/x?a=1&b=2", text="The page --> " * 50)])
    chat.reply("Still read.")


def with_tools(chat: Conversation, _: Path) -> None:
    result = ToolResult(name="search", arguments={"q": "ü", "n": [1, None]}, output="found <tool_result> -->\n")
    chat.ask("Look it up", results=[result], tools=[lamella.Tool(name="search", parameters={"a": 1})])
    chat.reply("Found.")
    chat.ask("And?", results=[ToolResult(name="clock", output="")])


def with_selections(chat: Conversation, _: Path) -> None:
    chat.ask("This part", attach=[Selection(path="spec.md", lines=(3, 3), text="The text."), Unknown(text="<odd/>")])
    chat.reply("That part.")
    chat.ask("And this", attach=[Selection(url="https://example.org", text="web words"), Image(data=png(2, 2))])
    chat.reply("**ai**: quoted\n[Timestamp: never]\n")


def with_notes(chat: Conversation, vault: Path) -> None:
    chat.ask("Sum up {[[spec]]}", attach=[Note(path="docs/a, [b] & c.md"), ActiveNote(path="drawn.md")])
    chat.reply("Summed up.")
    (vault / "spec.md").write_text("# Spec\n\nThe newer text.\n", encoding="utf-8")
    chat.ask("It has changed", attach=[Note(path="spec.md")], system={"instructions": "Mind {[[a, [b] & c]]}."})
    chat.reply("So it has.")
    chat.ask("Without it", drop=["spec.md"])


def with_edits(chat: Conversation, vault: Path) -> None:
    with_notes(chat, vault)
    chat.reply("Without.")
    chat.edit(chat.turns()[1].message.id, "It has really changed\r\n")
    chat.reply("Really.")
    chat.regenerate()
    chat.reply("Truly.")
    chat.rename('Edits: "all" of them')


def with_branches(chat: Conversation, vault: Path) -> None:
    with_edits(chat, vault)
    chat.ask("More")
    chat.reply("And more")
    chat.fork(chat.turns()[0].message.id)
    chat.reply("Another summary")
    chat.ask("On this branch", attach=[Url(url="https://example.org", text="a page")])
    chat.reply("Here.")
    chat.delete(chat.turns()[0].message.id)
    chat.ask("Once more")
    chat.switch(chat.branches()[0])


TALKS = pytest.mark.parametrize(
    "talk", [with_a_page, with_tools, with_selections, with_notes, with_edits, with_branches]
)


def sent(turn: Turn) -> list[object]:
    return [message.to_dict() for message in turn.messages]


@LAYOUTS
@TALKS
def test_next_turn_after_export_and_import_is_the_same_to_the_byte(
    tmp_path: Path, vault: Path, layout: str, talk: Callable[[Conversation, Path], None]
) -> None:
    here, there = (f"sqlite:///{tmp_path}/{name}.db" for name in ("here", "there"))
    with lamella.open(here, vault=vault) as engine:
        talk(engine.chat(NAME, layout=layout), vault)
    conversations = open_conversation_repository(here)
    export = conversations.export_conversation(conversations.resolve_conversation(NAME).conversation)
    path = open_archive().save(export, tmp_path / "chats")
    read = open_archive().load(path, vault=vault)
    assert read == export
    conversations.close()
    conversations = open_conversation_repository(there)
    assert conversations.import_conversation(read) is ImportOutcome.NEW
    assert list(conversations.verify()) == []
    assert conversations.export_conversation(conversations.resolve_conversation(NAME).conversation) == export
    conversations.close()
    with lamella.open(here, vault=vault) as engine, lamella.open(there, vault=vault) as other:
        one, two = engine.chat(NAME), other.chat(NAME)
        assert one.branches() == two.branches()
        assert sent(one.ask("And now?")) == sent(two.ask("And now?"))


def test_other_process_continues_from_archive_file(tmp_path: Path, vault: Path) -> None:
    here = f"sqlite:///{tmp_path}/here.db"
    with lamella.open(here, vault=vault) as engine:
        with_branches(engine.chat(NAME, layout="in_place"), vault)
    conversations = open_conversation_repository(here)
    path = open_archive().save(
        conversations.export_conversation(conversations.resolve_conversation(NAME).conversation), tmp_path / "chats"
    )
    conversations.close()
    command = [sys.executable, "-c", GO_ON, str(path), str(vault), f"sqlite:///{tmp_path}/there.db"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    with lamella.open(here, vault=vault) as engine:
        expected = sent(engine.chat(NAME).ask("And now?"))
    told = json.loads(run.stdout)
    assert told["sent"] == json.loads(json.dumps(expected))
    assert told["taken"] == "new"
    assert told["warnings"] == []


@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.long)])
def test_message_of_megabytes_is_archived_unchanged(tmp_path: Path, megabytes: int) -> None:
    text = "**user**: a line\r\n[Timestamp: x] --> 😀\n" * 28_000 * megabytes
    assert len(text.encode()) > 1_000_000 * megabytes
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url, keep_ledger=False) as engine:
        conversation = engine.chat(NAME, window=1_000_000_000)
        conversation.ask("short")
        conversation.reply(text)
    conversations = open_conversation_repository(url)
    export = conversations.export_conversation(conversations.resolve_conversation(NAME).conversation)
    conversations.close()
    path = open_archive().save(export, tmp_path)
    assert open_archive().load(path, vault=None) == export


def test_chat_moves_between_two_machines_without_overwriting(tmp_path: Path) -> None:
    """Export, import elsewhere, go on there, bring it back; meanwhile somebody edits the file by hand."""
    here, there = (open_conversation_repository(f"sqlite:///{tmp_path}/{name}.db") for name in ("here", "there"))
    folder = tmp_path / "shared"
    with lamella.open(f"sqlite:///{tmp_path}/here.db") as engine:
        conversation = engine.chat(NAME)
        conversation.ask("one")
        conversation.reply("two")
    path = open_archive().save(here.export_conversation(here.resolve_conversation(NAME).conversation), folder)
    assert there.import_conversation(open_archive().load(path, vault=None)) is ImportOutcome.NEW
    with lamella.open(f"sqlite:///{tmp_path}/there.db") as engine:
        conversation = engine.chat(NAME)
        conversation.ask("three")
        conversation.reply("four")
    assert open_archive().save(there.export_conversation(there.resolve_conversation(NAME).conversation), folder) == path
    path.write_text(path.read_text(encoding="utf-8").replace("**ai**: four", "**ai**: fourth"), encoding="utf-8")
    for conversations in (here, there):
        assert conversations.import_conversation(open_archive().load(path, vault=None)) is ImportOutcome.EXTENDED
        assert conversations.import_conversation(open_archive().load(path, vault=None)) is ImportOutcome.SAME
        assert list(conversations.verify()) == []
    assert here.export_conversation(here.resolve_conversation(NAME).conversation) == there.export_conversation(
        there.resolve_conversation(NAME).conversation
    )
    log = here.load_log(here.resolve_conversation(NAME).conversation)
    assert [record.reply.text for record in log.branch_records() if record.reply] == ["two", "fourth"]
    assert len(log.list_branch_heads()) == 2
    assert open_archive().save(here.export_conversation(here.resolve_conversation(NAME).conversation), folder) == path
    assert open_archive().load(path, vault=None) == here.export_conversation(
        here.resolve_conversation(NAME).conversation
    )
    here.close()
    there.close()


# Saves a conversation over and over, one message longer each time, and says when a file is there.
SAVE = """
import sys
from pathlib import Path
import lamella
from lamella.wiring import open_archive, open_conversation_repository

url = f"sqlite:///{sys.argv[1]}.db"
with lamella.open(url, keep_ledger=False) as engine:
    chat, conversations = engine.chat("talk"), open_conversation_repository(url)
    chat.rename("A talk")
    while True:
        chat.ask("x" * 50_000)
        chat.reply("y")
        open_archive().save(conversations.export_conversation(conversations.resolve_conversation("talk").conversation), Path(sys.argv[1]))
        print("saved", flush=True)
"""


def test_process_killed_while_saving_leaves_whole_file(tmp_path: Path) -> None:
    chance = random.Random(3)
    for round_ in range(6):
        folder = tmp_path / str(round_)
        with preloaded.Writing(SAVE, str(folder)) as saving:
            assert saving.lines.readline() == "saved\n"
            time.sleep(chance.random() / 5)
        (path,) = folder.iterdir()
        export = open_archive().load(path, vault=None)
        assert export.records
        assert render_archive(export) == path.read_text(encoding="utf-8")


def test_imported_foreign_chat_continues_and_is_archived(tmp_path: Path, vault: Path) -> None:
    legacy = (
        '---\nepoch: 1726179477500\nmodelKey: "gpt-5|openai"\ntopic: "The spec"\n---\n\n'
        "**user**: What is in it?\n[Context: Notes: old/place/spec.md]\n[Timestamp: 2024/09/12 22:17:57]\n\n"
        "**ai**: A text.\n[Timestamp: 2024/09/12 22:18:02]\n"
    )
    url = f"sqlite:///{tmp_path}/chats.db"
    conversations = open_conversation_repository(url)
    export = parse_archive(legacy, sources=None)
    (tmp_path / "legacy.md").write_text(legacy, encoding="utf-8")
    read = open_archive().load(tmp_path / "legacy.md", vault=vault)
    assert read.conversation_key == export.conversation_key
    assert read.warnings == ("Message 1: old/place/spec.md was found as spec.md.",)
    assert conversations.import_conversation(read) is ImportOutcome.NEW
    with lamella.open(url, vault=vault) as engine:
        turn = engine.chat(read.conversation_key).ask("Again?", attach=[Note(path="spec.md")])
        assert any("The text. **user**: quoted" in message.text for message in turn.messages)
        assert sum(message.text.count("The text.") for message in turn.messages) == 1
    path = open_archive().save(conversations.export_conversation(read.conversation_key), tmp_path / "chats")
    assert path.name == "The spec.md"
    assert open_archive().load(path, vault=vault) == conversations.export_conversation(read.conversation_key)
    conversations.close()


def test_transcript_import_is_refused_with_hint(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url) as engine:
        engine.chat("demo").ask("Hi.")
    assert run("chats", "export", "demo", "--transcript", "--to", str(tmp_path), "--store", url).exit == 0
    (file,) = tmp_path.glob("*.json")
    ran = run("chats", "import", str(file), "--store", url)
    assert (ran.exit, ran.out) == (2, "")
    assert ran.err.startswith(
        f"error: {file.name}: The file is JSON; archives are markdown.\nhint: A transcript is replayed"
    )
