"""Sticky attachments at the terminal: shown before the prompt, followed on disk, and detached."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, spawn
from tests.journeys.terminal import ENTER, Terminal
from tests.unit.pictures import png

Talk = Callable[..., Ran]
CHANGED = "plan.md changed since it was last sent; its new text is sent now."


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.md").write_text("Low tide is at 14:10.\n")
    (folder / "list.md").write_text("Milk.\n")
    (folder / "map.png").write_bytes(png(4, 3))
    return folder


@pytest.fixture
def talk(home: Mapping[str, str], notes: Path, script: Callable[..., str]) -> Talk:
    """A chat over these notes that gets these lines."""

    def talking(*lines: str, vault: bool = True, more: Mapping[str, str] | None = None) -> Ran:
        model = script(*(f"Answer {number}." for number in range(9)))
        words = ("chat", "talk", "--model", model, *(("--vault", str(notes)) if vault else ()))
        typed = "".join(f"{line}\n" for line in lines).encode()
        return spawn(*words, stdin=typed, environment={**home, **(more or {})})

    return talking


def sent(home: Mapping[str, str]) -> list[dict[str, object]]:
    """The messages of the last request."""
    turns = json.loads(spawn("replay", "talk", "--json", environment=home).out)["turns"]
    messages = turns[-1]["messages"]
    assert isinstance(messages, list)
    return messages


def listed_artifacts(ran: Ran) -> list[str]:
    """What is told after each answer of what is attached."""
    lines = [line for line in ran.err.splitlines() if "tokens used" in line]
    return [line[: line.index("[", 1)].strip() if line.count("[") > 1 else "" for line in lines]


@pytest.mark.layout("library")
def test_attachment_stays_until_detached(talk: Talk, home: Mapping[str, str]) -> None:
    ran = talk("Read @plan.md and @list.md.", "More?", "/detach plan.md", "And now?", "/detach", "Last?")
    assert ran.exit == 0
    assert listed_artifacts(ran) == ["[plan.md, list.md]", "[plan.md, list.md]", "[list.md]", ""]
    assert "plan.md is detached with the next message; /drop also removes it from the prompt." in ran.out
    assert "All attachments are removed from the next message on." in ran.out
    assert [message["content"] for message in sent(home)][-1] == "Last?"
    assert "14:10" in json.dumps(sent(home))


def test_passages_that_a_search_found_are_not_shown_as_attached(talk: Talk, home: Mapping[str, str]) -> None:
    ran = talk("/runner vault_qa", "When is low tide?", "Is milk on @list.md?")
    assert (ran.exit, listed_artifacts(ran)) == (0, ["", "[list.md]"])
    assert "plan.md#passage:" in json.dumps(sent(home))


def test_changed_note_is_noticed_in_next_session(talk: Talk, home: Mapping[str, str], notes: Path) -> None:
    assert CHANGED not in talk("Read @plan.md.", "More?").err
    (notes / "plan.md").write_text("Low tide is at 15:20.\n")
    ran = talk("And now?", "And then?")
    assert ran.err.count(f"warning: {CHANGED}\n") == 1
    assert "15:20" in json.dumps(sent(home))


def test_without_vault_only_files_of_this_session_are_followed(
    talk: Talk, home: Mapping[str, str], notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notes)
    talk("Read @plan.md and @plan.md:1.", vault=False)
    (notes / "plan.md").write_text("Low tide is at 15:20.\n")
    ran = talk("And now?", vault=False)
    assert "note: plan.md has another text here than was sent; attach it again to send that.\n" in ran.err
    assert "note: plan.md:1 changed on disk since it was selected, and stays as it was sent;" in ran.err
    assert "15:20" not in json.dumps(sent(home))


def test_attachments_setting_changes_retention(talk: Talk) -> None:
    ran = talk("Read @plan.md.", "More?", more={"LAMELLA_ATTACHMENTS": "turn"})
    assert listed_artifacts(ran) == ["", ""]


def test_attachments_setting_is_stored_with_new_conversation(
    talk: Talk, home: Mapping[str, str], tmp_path: Path
) -> None:
    talk("Read @plan.md.")
    spawn("chats", "export", "talk", "--transcript", "--to", str(tmp_path / "out"), environment=home)
    (file,) = (tmp_path / "out").iterdir()
    assert json.loads(file.read_text(encoding="utf-8"))["attachments"] == "sticky"


def test_input_line_lists_attachments(home: Mapping[str, str], script: Callable[..., str], notes: Path) -> None:
    words = ("chat", "talk", "--model", script("Yes.", "No."), "--vault", str(notes))
    with Terminal(words, home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("Read @plan.md now", ENTER)
        terminal.wait_for("Yes.")
        terminal.wait_for("[plan.md] >")
        assert terminal.end_chat() == 0


def test_status_shows_last_of_many_attachments_and_line_ranges(talk: Talk, notes: Path) -> None:
    (notes / "long.md").write_text("one\ntwo\nthree\n")
    ran = talk(
        "Read @plan.md and @list.md.", "And @long.md:2-3 and @long.md:1.", "/detach long.md:2-3", "And @map.png?"
    )
    assert listed_artifacts(ran) == [
        "[plan.md, list.md]",
        "[1 more, list.md, long.md:2-3, long.md:1]",
        "[1 more, list.md, long.md:1, map.png]",
    ]
    assert "long.md:2-3 is detached with the next message" in ran.out


def test_pending_commands_are_printed_with_file_names(talk: Talk, home: Mapping[str, str]) -> None:
    talk("See @map.png and @plan.md:1-1.", "/drop map.png", "/detach plan.md:1")
    shown = spawn("show", "talk", environment=home)
    assert "detached with the next turn: plan.md:1\ndropped with the next turn: map.png\n" in shown.out
    done = spawn("detach", "talk", "map.png", environment=home)
    assert "note: map.png will not be dropped with the next turn." in done.err


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_line_below_prompt_is_never_truncated(
    home: Mapping[str, str], script: Callable[..., str], notes: Path, columns: int
) -> None:
    (notes / "a-note-with-a-long-name.md").write_text("Long.\n")
    words = ("chat", "talk", "--model", script("Yes."), "--vault", str(notes))
    with Terminal(words, home, columns=columns) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("/attach a-note-with-a-long-name.md", ENTER)
        terminal.wait_for("+a-note-with-a-long-name.md")
        terminal.press("/pin plan.md", ENTER)
        terminal.wait_for("is neither")
        terminal.wait_for("+a-note-with-a-long-name.md")
        last = [line for line in terminal.screen if line.endswith("+a-note-with-a-long-name.md")]
        assert terminal.end_chat() == 0
    assert last


def test_attachment_table_keeps_names_whole(talk: Talk, home: Mapping[str, str], notes: Path) -> None:
    (notes / "a-longer-name.md").write_text("Long.\n")
    talk("Read @a-longer-name.md and @plan.md:1.")
    with Terminal(("show", "talk"), home, columns=80) as terminal:
        assert terminal.wait_for_end() == 0
    assert any(line.startswith("a-longer-name.md ") for line in terminal.screen)


def test_unknown_name_is_refused_and_prefix_unchanged(talk: Talk, home: Mapping[str, str]) -> None:
    ran = talk("Read @plan.md.", "/drop nothing.md", "/detach nothing.md", "/pin nothing.md", "More?", "And more?")
    assert ran.exit == 0
    assert "error: nothing.md is not in the prompt.\nhint: To drop: plan.md.\n" in ran.err
    assert "error: nothing.md is not attached.\nhint: Attached: plan.md.\n" in ran.err
    assert "hint: To pin: plan.md, turn:1, reply:1 and the like.\n" in ran.err
    turns = json.loads(spawn("replay", "talk", "--json", environment=home).out)["turns"]
    assert [turn["prefix"]["cause"] for turn in turns] == ["first_turn", "none", "none"]


def test_image_is_dropped_and_detached_by_name(talk: Talk, home: Mapping[str, str]) -> None:
    ran = talk("See @map.png.", "/detach map.png", "And now?", "/drop map.png", "Last?", "/drop map.png")
    assert listed_artifacts(ran) == ["[map.png]", "", ""]
    assert "map.png is removed from the prompt with the next message." in ran.out
    assert not any(message.get("images") for message in sent(home))
    assert "error: map.png is not in the prompt.\nhint: To drop: nothing.\n" in ran.err


def test_pending_image_drop_shows_its_name(talk: Talk) -> None:
    ran = talk("See @map.png.", "/drop map.png", "/retry")
    assert "· -map.png]" in ran.err
    assert "sha256:" not in ran.err


def test_drop_cancels_pending_attachment_and_spares_pinned_one(talk: Talk) -> None:
    ran = talk("/attach plan.md", "/drop plan.md", "Read @plan.md.", "/pin plan.md", "Keep it.", "/drop plan.md")
    assert "note: plan.md is no longer attached to the next turn.\n" in ran.err
    assert "error: plan.md is pinned and stays.\nhint: Unpin it first, then drop it.\n" in ran.err


def test_attached_names_are_completed(home: Mapping[str, str], script: Callable[..., str], notes: Path) -> None:
    words = ("chat", "talk", "--model", script("Yes.", "No."), "--vault", str(notes))
    with Terminal(words, home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("Read @plan.md and @map.png now", ENTER)
        terminal.wait_for("Yes.")
        terminal.wait_for("[plan.md, map.png] >")
        terminal.press("/drop ma")
        terminal.wait_for("map.png")
        terminal.press("\t", ENTER, ENTER)
        terminal.wait_for("map.png is removed from the prompt with the next message.")
        terminal.wait_for("[plan.md] >")
        assert terminal.end_chat() == 0


def test_names_detached_by_failed_message_are_not_detached_again(
    home: Mapping[str, str], script: Callable[..., str], notes: Path
) -> None:
    lines = ("Read @plan.md.", "/detach plan.md", "Fails?", "Fails too?")
    words = ("chat", "talk", "--model", script("Once."), "--vault", str(notes))
    ran = spawn(*words, stdin="".join(f"{line}\n" for line in lines).encode(), environment=home)
    assert ran.err.count("error: ") == 2
    assert "Nothing to detach" not in ran.err


def test_question_for_a_script_can_detach(talk: Talk, home: Mapping[str, str], notes: Path) -> None:
    talk("Read @plan.md.")
    words = ("--chat", "talk", "--vault", str(notes), "--detach", "plan.md", "--detach", "gone.md")
    ran = spawn("ask", "And now?", *words, environment=home)
    assert (ran.exit, ran.err.count("warning: Nothing to detach: gone.md is not in the working set.\n")) == (0, 1)
    (notes / "plan.md").write_text("Low tide is at 15:20.\n")
    assert CHANGED not in talk("And then?").err


def test_retry_keeps_commands_for_next_message(talk: Talk) -> None:
    ran = talk("Read @plan.md.", "/detach plan.md", "/attach list.md", "/retry", "And now?")
    assert ran.exit == 0
    assert listed_artifacts(ran) == ["[plan.md]", "", "[list.md]"]


def test_messages_are_pinned_by_turn_and_unpinning_unknown_is_refused(talk: Talk) -> None:
    ran = talk("Read @plan.md.", "/unpin turn:9", "/pin turn:1", "More?", "/unpin turn:1", "Last?")
    assert ran.exit == 0
    assert "error: turn:9 is not pinned.\nhint: Pinned: nothing.\n" in ran.err
    assert "turn:1 is pinned from the next message on" in ran.out
    assert ran.err.count("error:") == 1


def test_pin_cancels_pending_drop_and_moves_nothing(talk: Talk, home: Mapping[str, str]) -> None:
    ran = talk("Read @plan.md.", "/drop plan.md", "/pin plan.md", "And now?")
    assert "note: plan.md will not be dropped with the next turn.\n" in ran.err
    assert "plan.md is pinned from the next message on" in ran.out
    turns = json.loads(spawn("replay", "talk", "--json", environment=home).out)["turns"]
    assert turns[-1]["prefix"]["cause"] == "none"


def test_note_mentioned_in_message_is_not_dropped(talk: Talk, home: Mapping[str, str]) -> None:
    ran = talk("Read @plan.md.", "/drop plan.md", "Once more: @plan.md")
    assert "plan.md is attached by this turn itself, so it is neither dropped nor detached." in ran.err
    turns = json.loads(spawn("replay", "talk", "--json", environment=home).out)["turns"]
    assert turns[-1]["prefix"]["cause"] == "none"
