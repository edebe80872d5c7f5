"""``lamella chat`` through a pipe, in processes of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, SECONDS, Ran, spawn
from tests.wire.openai_caching import LOCAL_MODEL
from tests.wire.openai_chat_server import chat_server
from tests.wire.script import Fail, Say

import lamella
from lamella.cli.access import format_command

Chat = Callable[..., Ran]


@pytest.fixture
def chat(home: Mapping[str, str]) -> Chat:
    """A chat that gets these lines."""

    def chatting(*lines: str, words: tuple[str, ...] = ()) -> Ran:
        return spawn("chat", *words, stdin="".join(f"{line}\n" for line in lines).encode(), environment=home)

    return chatting


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.md").write_text("# Plan\nBeans.\nPeas.\n", encoding="utf-8")
    (folder / "my list.md").write_text("# List\nMilk.\n", encoding="utf-8")
    return folder


def ledger(home: Mapping[str, str], name: str) -> list[dict[str, object]]:
    turns = json.loads(spawn("ledger", name, "--json", environment=home).out)["turns"]
    assert isinstance(turns, list)
    return turns


def test_each_line_is_a_message_and_answers_are_all_of_stdout(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    model = script({"text": "One.", "usage": {"plain": 9, "read": 0, "output": 2}}, "Two\nlines.")
    ran = chat("First?", "", "Second \\", "half?", words=("talk", "--model", model))
    assert (ran.exit, ran.out) == (0, "One.\nTwo\nlines.\n")
    assert ran.err.splitlines()[0] == f"Conversation talk (new), model {model}. /help lists all commands."
    assert "> First?\n" in ran.err
    assert "> Second \nhalf?\n" in ran.err
    assert f"0% of the last turn cached · no price · {model}]" in ran.err
    assert ran.err.splitlines()[-1] == "Saved. Continue with: lamella chat talk"
    listed = json.loads(spawn("chats", "list", "--json", environment=home).out)["chats"]
    assert [(row["name"], row["title"]) for row in listed] == [("talk", "First?")]


def test_printed_continue_command_opens_same_store_and_notes(
    chat: Chat, script: Callable[..., str], notes: Path, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/my chats.db"
    words = ("my talk", "--store", store, "--vault", str(notes))
    ran = chat("First?", words=(*words, "--model", script("Yes.")))
    kept = ran.err.splitlines()[-1]
    assert kept == f"Saved. Continue with: lamella chat 'my talk' --store '{store}' --vault {notes}"
    again = chat("Second?", words=tuple(shlex.split(kept.partition("lamella chat ")[2])))
    assert again.err.startswith("Conversation my talk (1 turn)")


def test_password_in_the_address_of_a_store_is_not_repeated() -> None:
    assert format_command("chat", "a", store="postgresql://me:secret@host/chats") == (
        "lamella chat a --store 'postgresql://me:***@host/chats'"
    )


def test_compaction_in_chat_is_undone_by_undo_command(chat: Chat, script: Callable[..., str]) -> None:
    model = script(*["Yes, and here is why. " * 60] * 3)
    ran = chat("First?", "Second?", "Third?", "/compact 0.002", "/undo", words=("talk", "--model", model))
    assert "To undo: /undo\n" in ran.out
    assert "Undone: " in ran.out


def test_conversation_continues_by_name_and_last_one_by_default(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    model = script("Yes.", "No.")
    chat("First?", words=("talk", "--model", model))
    by_name = chat("Second?", words=("talk",))
    assert by_name.err.startswith(f"Conversation talk (1 turn), model {model}.")
    last = chat("Third?", words=("--last",))
    assert last.err.startswith(f"Conversation talk (2 turns), model {model}.")
    assert last.err.splitlines()[1:3] == ["> Second?", "Yes."], "the last exchange is shown again"
    causes = [turn["calls"][0]["verdict"]["cause"] for turn in ledger(home, "talk")]  # type: ignore[index]
    assert causes == ["first_turn", "none", "none"]


def test_new_conversation_gets_a_name_that_can_be_typed(chat: Chat, script: Callable[..., str]) -> None:
    ran = chat("Hello?", words=("--model", script("Yes.")))
    name = ran.err.split()[1]
    assert len(name) == len("2026-11-16-abcd")
    assert ran.err.splitlines()[-1] == f"Saved. Continue with: lamella chat {name}"


def test_files_are_attached_by_command_and_mention_and_dropped_again(
    chat: Chat, script: Callable[..., str], notes: Path, home: Mapping[str, str]
) -> None:
    model = script("One.", "Two.", "Three.")
    ran = chat(
        "/attach plan.md:2-3",
        'What do @plan.md, @"my list.md" and @plna.md say to @jo?',
        "/drop my list.md",
        "And now?",
        "/attach gone.md",
        "/attach",
        "Last?",
        words=("talk", "--model", model, "--vault", str(notes)),
    )
    assert ran.exit == 0
    assert "plan.md:2-3 is attached to the next message and stays attached until /detach." in ran.out
    assert "my list.md is removed from the prompt with the next message." in ran.out
    assert "attached: plan.md · my list.md\n" in ran.err
    missing = "There is no file plna.md in the vault. Did you mean plan.md?"
    assert f"note: @plna.md is sent as plain text. {missing}\n" in ran.err
    assert ran.err.count("note: ") == 1
    assert "error: There is no file gone.md in the vault." in ran.err
    assert "error: Missing file." in ran.err
    shown = spawn("chats", "show", "talk", environment=home).out
    assert [line.strip() for line in shown.splitlines() if "  + " in line][1:] == ["+ plan.md", "+ my list.md"]
    assert "+ plan.md#L2-L3:" in shown


def test_printed_parts_of_prompt_add_up_to_counted_tokens(chat: Chat, notes: Path, script: Callable[..., str]) -> None:
    ran = chat(
        "One? @plan.md", "Two?", words=("talk", "--strata", "--vault", str(notes), "--model", script("A.", "B."))
    )
    shown = [block.splitlines() for block in ran.out.split("\nturn ")[1:]]
    assert len(shown) == 2
    for lines in shown:
        sizes = [re.match(r"  (?:L\d_\w+|tools|overhead) *[█░]* *([\d,]+)(?:$|  )", line) for line in lines]
        (counted,) = [line.split()[1] for line in lines if line.startswith("  counted ")]
        assert any(line.startswith("  overhead ") for line in lines)
        assert sum(int(size[1].replace(",", "")) for size in sizes if size) == int(counted.replace(",", ""))


def test_commands_print_their_results(chat: Chat, script: Callable[..., str]) -> None:
    ran = chat(
        "/help",
        "Hello?",
        "/strata",
        "//etc?",
        "/retry",
        "/branches",
        "/ledger",
        "/recall etc",
        "/compact 0.5",
        "/compact much",
        "/undo",
        "/switch nowhere",
        "/dance",
        "/quit",
        "never sent",
        words=("talk", "--model", script("One.", "Two.", "Three.")),
    )
    for command in ("/attach PATH[:10-20]", "/drop NAME", "/compact [SHARE]", "/undo", "/recall WORDS", "/ledger"):
        assert command in ran.out
    assert "[to ID] shorten the prompt" in ran.out
    assert "L5_USER" in ran.out
    branches = [line.partition("  2 turns  ") for line in ran.out.splitlines() if "  2 turns  " in line]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert [(head[0], rest[:10], rest[18:]) for head, _, rest in branches] == [
        (" ", today, "/etc? → Two."),
        ("*", today, "/etc? → Three."),
    ]
    assert "talk  █ cached  ░ not cached" in ran.out
    assert "Nothing found outside the prompt." in ran.out
    for told in ("Nothing to compact", "Invalid share: much", "There is no compaction to undo.", "no such message"):
        assert told in ran.err
    assert "error: Unknown command: /dance" in ran.err
    assert "never sent" not in ran.err


@pytest.mark.parametrize(("typed", "meant"), [("/hlep", "/help"), ("/Help", "/help"), ("/regen", "/regenerate")])
def test_misspelt_command_suggests_similar_one(chat: Chat, typed: str, meant: str) -> None:
    assert f"hint: Did you mean {meant}? See /help." in chat(typed).err


def test_unknown_command_gives_no_suggestion(chat: Chat) -> None:
    assert "hint: See /help. To send a message that starts with /, type // instead." in chat("/etc").err


@pytest.mark.parametrize("command", ["/drop", "/pin", "/unpin"])
def test_missing_attachment_name_hints_at_show(chat: Chat, command: str) -> None:
    ran = chat(command, "/show")
    assert "error: Missing attachment" in ran.err
    assert "; /show lists the attachments" in ran.err


def test_each_branch_continues_with_its_own_model(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str], tmp_path: Path
) -> None:
    first = script("One.")
    second = f"scripted:{tmp_path / 'second.json'}"
    (tmp_path / "second.json").write_text('["Two.", "Three."]', encoding="utf-8")
    chat("First?", words=("talk", "--model", first))
    shown = spawn("chats", "show", "talk", environment=home).out
    head = next(line.split()[0] for line in shown.splitlines() if "reply: One." in line)
    ran = chat("Second?", f"/switch {head}", "Third?", words=("talk", "--model", second))
    assert ran.out == f"Two.\nContinuing from {head}.\nOne.\n"
    assert ran.err.splitlines()[-2].endswith(f"{first}]")


def test_message_after_conflict_is_reloaded_and_can_be_sent_again(
    home: Mapping[str, str], script: Callable[..., str], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    words = [*COMMAND, "chat", "talk", "--model", script("Yes.", "Yes."), "--store", url]
    with subprocess.Popen(
        words, env={**os.environ, **home}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"First?\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"Yes.\n"
        with lamella.open(url) as engine:
            engine.chat("talk").ask("Another voice")
        out, err = process.communicate(b"Second?\nSecond?\n", timeout=SECONDS)
    assert (process.returncode, out) == (0, b"Yes.\n")
    assert "The conversation was loaded again; repeat your last input." in err.decode()
    shown = spawn("chats", "show", "talk", "--store", url, environment=home).out
    assert [line.split("user: ")[1] for line in shown.splitlines() if "user: " in line] == [
        "First?",
        "Another voice",
        "Second?",
    ]


def test_closed_stdin_ends_chat(home: Mapping[str, str], script: Callable[..., str]) -> None:
    named = " ".join(f"'{word}'" for word in COMMAND)
    closed = f"{named} chat talk --model '{script('Yes.')}' <&-"
    done = subprocess.run(["bash", "-c", closed], env={**os.environ, **home}, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"error" not in done.stderr


def test_invalid_bytes_are_refused_and_chat_continues(home: Mapping[str, str], script: Callable[..., str]) -> None:
    old = {**home, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    lines = b"ab\xff\n" + "Grüße?\n".encode()
    ran = spawn("chat", "talk", "--model", script("Ja."), stdin=lines, environment=old)
    assert (ran.exit, ran.out) == (0, "Ja.\n")
    assert "error: Character 3 of a text is U+DCFF" in ran.err
    assert "user: Grüße?" in spawn("chats", "show", "talk", environment=home).out


def test_long_conversation_is_compacted_recalled_and_restored(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    said = [f"Bed {number} has {number * 3} plants. " * 40 for number in range(6)]
    model = script(*(f"Noted {number}." for number in range(7)))
    chat(*said, words=("talk", "--model", model))
    ran = chat("/compact 0.005", "/recall Bed 1", "/undo", words=("talk",))
    assert "  target " in ran.out
    assert "Bed 1 has 3 plants." in ran.out
    assert "Undone: " in ran.out


def test_compaction_since_and_until_message_works_in_chat(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    said = [f"Bed {number}?" for number in range(6)]
    model = script(*(f"Bed {number} has plants. " * 60 for number in range(6)))
    chat(*said, words=("talk", "--model", model))
    for asked, left in (("from turn:4", (0, 1, 2)), ("up to turn:3", (3, 4, 5)), ("from turn:2 to turn:3", (0, 3))):
        ran = chat(f"/compact 0.005 {asked}", words=("talk",))
        assert "Compacted (receipt " in ran.out, ran.err
        found = spawn("recall", "talk", "plants", "--limit", "9", environment=home).out
        assert "has plants." in found
        assert all(f"Bed {number} has plants." not in found for number in left)
        chat("/undo", words=("talk",))


def test_provider_error_is_printed_and_chat_continues(chat: Chat, home: Mapping[str, str]) -> None:
    refused = Fail(status=400, kind="invalid_request_error", words="That is too much")
    with chat_server(refused, Say(text="Here I am."), Say(text="Still here.")) as server:
        model = f"openai-compatible:{server.url}/v1#{LOCAL_MODEL}"
        ran = chat("First?", "/retry", "Second?", words=("talk", "--model", model))
    assert (ran.exit, ran.out) == (0, "Here I am.\nStill here.\n")
    assert "error: " in ran.err
    assert "That is too much" in ran.err
    assert "[no answer yet, /retry · " in ran.err
    assert [turn["standing"] for turn in ledger(home, "talk")] == ["called", "called"]


def test_piped_chat_exits_with_1_if_last_message_failed(chat: Chat, script: Callable[..., str]) -> None:
    assert chat("First?", "Second?", words=("--model", script("One."))).exit == 1


def test_interrupted_piped_chat_exits_with_130_and_sends_nothing_more(
    home: Mapping[str, str], script: Callable[..., str]
) -> None:
    model = script({"text": "word " * 400, "chunk": 5, "delay": 0.05}, "Two.")
    with subprocess.Popen(
        [*COMMAND, "chat", "talk", "--model", model],
        env={**os.environ, **home},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"First?\nSecond?\n")
        process.stdin.close()
        assert process.stdout.read(4) == b"word"
        os.kill(process.pid, signal.SIGINT)
        rest, err = process.stdout.read(), process.stderr.read() if process.stderr else b""
    assert process.returncode == 130
    assert b"Two." not in rest
    assert b"Saved. Continue with: lamella chat talk\n" in err
    assert b"error: Stopped.\n" in err
    shown = spawn("chats", "show", "talk", environment=home).out
    assert "reply: word" in shown
    assert "Second?" not in shown


@pytest.mark.parametrize("errors", ["", "2>&1"])
def test_piped_chat_with_closed_reader_exits_with_1(
    home: Mapping[str, str], script: Callable[..., str], errors: str
) -> None:
    model = script({"text": "word\n" * 400, "chunk": 5, "delay": 0.01}, "Two.")
    named = " ".join(f"'{word}'" for word in COMMAND)
    piped = f"{named} chat talk --model '{model}' {errors} | head -n 4 > /dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", piped], input=b"First?\nSecond?\n", env={**os.environ, **home}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert "Second?" not in spawn("chats", "show", "talk", environment=home).out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--last",), "No conversations yet."),
        (("talk", "--last"), "Use either --last or a conversation name, not both."),
        (("--model", "anthropic:claude-opus-5-5"), "There is no key for Anthropic."),
        (("--model", "nobody:model"), "There is no provider 'nobody'."),
        (("--vault", "gone"), "There is no vault folder at gone."),
        (("--store", "nowhere:"), "There is no kind of store 'nowhere'."),
        (("--store", "sqlite:///~nobody-here/x.db"), "~nobody-here/x.db names a home folder that does not exist."),
    ],
)
def test_missing_resource_fails_at_start(chat: Chat, words: tuple[str, ...], told: str) -> None:
    ran = chat("Hello?", words=words)
    assert (ran.exit, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {told}\nhint: ")


def test_name_of_erased_conversation_can_be_reused(
    chat: Chat, script: Callable[..., str], home: Mapping[str, str]
) -> None:
    chat("Hello?", words=("talk", "--model", script("Yes.")))
    spawn("chats", "delete", "talk", "--yes", environment=home)
    ran = chat("Again?", words=("talk", "--model", script("A new one.")))
    assert (ran.exit, ran.out) == (0, "A new one.\n")
    assert ran.err.startswith("Conversation talk (new)")


def test_demo_model_is_default_and_its_cache_is_used(chat: Chat, notes: Path, home: Mapping[str, str]) -> None:
    ran = chat("What grows? @plan.md", "And what else?", words=("talk", "--vault", str(notes), "--max-tokens", "6"))
    assert ran.exit == 0
    assert ran.err.startswith("local is a demo model")
    calls = [turn["calls"][0] for turn in ledger(home, "talk")]  # type: ignore[index]
    assert [call["verdict"]["outcome"] for call in calls] == ["first", "hit"]
    assert [call["predicted"]["read"] for call in calls] == [call["reported"]["read"] for call in calls]
    assert calls[1]["reported"]["read"] > calls[0]["reported"]["plain"]


def test_question_is_answered_again_by_the_model_that_the_command_names(
    chat: Chat, script: Callable[..., str], tmp_path: Path, home: Mapping[str, str]
) -> None:
    nowhere = f"scripted:{tmp_path / 'nowhere.json'}"
    with lamella.open(f"sqlite:///{tmp_path}/chats.db") as engine:
        engine.chat("talk", model=nowhere).ask("First?")
    words = ("talk", "--store", f"sqlite:///{tmp_path}/chats.db")
    assert chat("/retry", words=words).exit != 0
    other = script("Yes.")
    ran = chat("/retry", words=(*words, "--model", other))
    assert (ran.exit, ran.out) == (0, "Yes.\n"), ran.err
    calls = json.loads(spawn("ledger", *words, "--json", environment=home).out)["turns"][-1]["calls"]
    assert [call["model"] for call in calls] == [other]


def test_chat_hints_name_conversation_and_store(chat: Chat, script: Callable[..., str], tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/chats.db"
    words = ("talk", "--store", store, "--model", script("One."))
    ran = chat("First?", "/delete zzz", "Second?", "/compact", "/undo", words=words)
    assert f"hint: See its messages with `lamella chats show talk --store {store}`." in ran.err
    assert "hint: Set a lower target, for example /compact " in ran.err
    assert "hint: Nothing was compacted on this branch." in ran.err


def test_failed_command_does_not_change_exit_code(chat: Chat, script: Callable[..., str]) -> None:
    assert chat("First?", "/hlep", words=("--model", script("One."))).exit == 0
    assert chat("First?", "Second?", "/help", words=("--model", script("One."))).exit == 1
    assert chat("First?", "/retry", words=("--model", script("One."))).exit == 1


def test_status_is_printed_after_each_command_that_calls_model(chat: Chat, script: Callable[..., str]) -> None:
    model = script("One.", "Two.", "Three.", "Four.")
    ran = chat("First?", "/retry", "/regenerate", "/edit Second?", "/branches", words=("talk", "--model", model))
    assert (ran.exit, ran.err.count("tokens used (")) == (0, 4)
