"""Layout auto over a store: plans are the same after reopening, undo, fork and export."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.behaviour.test_reopening import Kept
from tests.unit.pictures import claim_size

import lamella
from lamella import ActiveNote, Conversation, Note, Selection, ToolResult
from lamella.providers import ModelReply, StopReason, ToolCall, ToolOutput

START = datetime(2026, 11, 17, tzinfo=UTC)
MODEL = "anthropic:claude-sonnet-5"
LONG = "A line of a long note about desks.\n" * 300


def walk(kept: Kept, *, pauses: tuple[int, ...] = (60, 30, 700, 20, 4_000, 60)) -> None:
    """Notes that come, change and go, a result, and pauses over the lifetime of the cache."""
    at = START
    for number, pause in enumerate(pauses):
        at += timedelta(seconds=pause)
        given = [Note(path=f"n{number % 3}.md", text=f"{LONG}Version {number // 2}.")] if number % 2 == 0 else []
        results = [ToolResult(name="look", arguments={"n": number}, output=LONG)] if number == 1 else []
        kept.ask(f"q{number}", answer=f"a{number} " * 20, attach=given, results=results, at=at)


def undo(kept: Kept) -> None:
    assert kept.chat.compact(0.01) is not None
    kept.ask("after it", answer="yes", at=START + timedelta(seconds=5_000))
    kept.chat.undo()
    kept.ask("undone", answer="yes", at=START + timedelta(seconds=5_030))


def fork(kept: Kept) -> None:
    kept.chat.fork(kept.turns[2].envelope.message_id)
    kept.ask("elsewhere", answer="yes", at=START + timedelta(seconds=5_000))
    kept.ask("and on", answer="yes", at=START + timedelta(seconds=5_030))


def edit(kept: Kept) -> None:
    kept.chat.edit(kept.turns[3].envelope.message_id, "q3, better")
    kept.chat.reply("yes")
    kept.ask("and on", answer="yes", at=START + timedelta(seconds=5_030))


@pytest.mark.parametrize("deed", [lambda _kept: None, undo, fork, edit], ids=["talk", "undo", "fork", "edit"])
def test_reopening_before_each_step_plans_and_sends_the_same(deed: Callable[[Kept], None]) -> None:
    through, anew = (Kept(closed=closed, layout="auto", model=MODEL) for closed in (False, True))
    for kept in (through, anew):
        walk(kept)
        deed(kept)
    assert [turn.messages for turn in through.turns] == [turn.messages for turn in anew.turns]
    assert [turn.layout_reason for turn in through.turns] == [turn.layout_reason for turn in anew.turns]
    assert [turn.cache for turn in through.turns[:1]] == [turn.cache for turn in anew.turns[:1]]
    assert any(turn.layout_reason.startswith("folded") for turn in through.turns)


def test_follow_up_after_pause_still_has_its_note() -> None:
    for settings in ({"attachments": "turn"}, {"attachments": "sticky"}):
        chat = Conversation(layout="auto", model=MODEL, **settings)  # type: ignore[arg-type]  # settings by name
        chat.ask("Summarize", attach=[Note(path="a.md", text=LONG)], at=START)
        chat.reply("Desks.")
        turn = chat.ask("And how many?", at=START + timedelta(hours=3))
        assert sum(LONG in message.text for message in turn.messages) == 1
        assert LONG in turn.messages[-1].text
        assert turn.layout_reason.startswith("folded: the cache lapsed")


def test_request_has_planned_breakpoints_and_both_lifetimes() -> None:
    chat = Conversation(system="Be terse. " * 600, layout="auto", model=MODEL)
    at = START
    for number in range(6):
        at += timedelta(seconds=600 if number % 2 else 30)
        turn = chat.ask(f"q{number}", attach=[Note(path=f"{number}.md", text=LONG)], at=at)
        body = turn.request("anthropic")
        chat.reply("Answer. " * 200, at=at)
    marks = [block["cache_control"] for block in body["system"] if "cache_control" in block]
    said = [block.get("cache_control") for message in body["messages"] for block in message["content"]]
    assert {"type": "ephemeral", "ttl": "1h"} in marks
    # The API wants what is kept for longer before what is not.
    kept = [mark for mark in said if mark]
    assert kept == [{"type": "ephemeral", "ttl": "1h"}] * (len(kept) - 1) + [{"type": "ephemeral"}]
    assert len(marks) + len(kept) <= 4
    assert said[-1] == {"type": "ephemeral"}


@pytest.mark.parametrize("before", ["Short.", "A line of a long note.\n" * 3_000])
def test_reattached_large_note_is_outlined_in_fold(before: str) -> None:
    chat = Conversation(layout="auto", window=4_000, reserve=0)
    chat.ask("Read this.", attach=[Note(path="a.md", text=before)])
    chat.reply("Read.")
    turn = chat.ask("And now?", attach=[Note(path="a.md", text="# One\n" + "Another line of it.\n" * 3_000)], fold=True)
    assert turn.tokens.total < 4_000
    assert any("a.md is sent as its outline" in warning for warning in turn.envelope.warnings)


def test_shortened_note_with_images_does_not_block_later_turns(tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(claim_size(2, 2))
    (tmp_path / "a.md").write_text("![[plan.png]]\n" + "A line of a long note.\n" * 900, encoding="utf-8")
    chat = Conversation(layout="auto", window=2_000, reserve=0, vault=tmp_path, image_notes="handle")
    chat.ask("Read this.", attach=[ActiveNote(path="a.md")])
    chat.reply("Read.")
    turn = chat.ask("And now?")
    assert turn.layout_reason.startswith("appended")
    assert [(one.id, one.form) for one in turn.envelope.layers[1].segments] == [("a.md", "summary")]


def test_note_reattached_by_setting_omits_its_images(tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(claim_size(2, 2))
    (tmp_path / "a.md").write_text("![[plan.png]]\nThe harbour has nine berths.", encoding="utf-8")
    with lamella.open("memory:", vault=tmp_path, summarizer="off") as engine:
        conversation = engine.chat("berths", layout="auto", linger=0)
        conversation.ask("Read this.", attach=[ActiveNote(path="a.md")], at=START)
        conversation.reply("Read. " * 900)
        conversation.ask("Two?", fold=True, at=START)
        conversation.reply("Yes.")
        conversation.set(linger=2)
        asked = conversation.ask("How many berths?", at=START).messages[-1]
    assert "The harbour has nine berths." in asked.text
    assert asked.images == ()


@pytest.mark.parametrize("history", ["window", "strip"])
def test_fold_moves_text_into_question_when_turns_are_hidden(history: str) -> None:
    chat = Conversation(layout="auto", history=history, history_turns=2, attachments="sticky")
    chat.ask("Read this.", attach=[Note(path="a.md", text="The harbour has nine berths.")])
    chat.reply("Read.")
    for number in range(5):
        chat.ask(f"Question {number}?")
        chat.reply("Answer.")
    turn = chat.ask("And now?", fold=True)
    assert "The harbour has nine berths." in turn.messages[-1].text
    assert len(turn.messages) == 5


def test_full_history_after_hidden_turns_does_not_cut_within_first_message() -> None:
    chat = Conversation(system="Be brief.", layout="auto", history="window", history_turns=1, window=4_000, reserve=0)
    chat.ask("Where is the ferry?")
    chat.reply("At sea.")
    chat.ask("What is this?", attach=[Selection(text="A quay.", path="port.md")])
    chat.reply("A quay.")
    # The results leave no room for the only turn that is shown, so the question becomes the first message.
    table = "The ferry leaves the harbour at noon. " * 350
    chat.ask("Look.", results=[ToolResult(name="look", output=table)])
    call = ToolCall(id="1", name="look", arguments="{}")
    chat.reply(ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS))
    before = chat.submit_tool_outputs([ToolOutput(call="1", output=table)])
    assert "Look." in before.messages[1].text
    chat.reply("Seen.")
    chat.set(history="full")
    turn = chat.ask("And where is it now?")
    assert [message.text for message in turn.messages if message.text.endswith("Where is the ferry?")]


def test_reopening_after_cut_within_message_sends_the_same() -> None:
    through, anew = (
        Kept(closed=closed, system="Be terse.", layout="auto", model="openai:gpt-5", attachments="sticky")
        for closed in (False, True)
    )
    for kept in (through, anew):
        notes = [Note(path="a.md", text=LONG), Note(path="b.md", text=f"{LONG}More of it.")]
        kept.ask("both", answer="yes", attach=notes, at=START)
        for number in range(1, 6):
            detach = ["b.md"] if number == 1 else []
            kept.ask(f"q{number}", answer="yes", detach=detach, at=START + timedelta(seconds=30 * number))
    assert any(turn.layout_reason.startswith("cut in message") for turn in through.turns)
    assert [turn.messages for turn in through.turns] == [turn.messages for turn in anew.turns]
    assert [turn.layout_reason for turn in through.turns] == [turn.layout_reason for turn in anew.turns]
    last = through.turns[-1].messages
    assert [one.text.count(LONG) for one in last if LONG in one.text] == [1]


def test_request_after_compaction_has_no_breakpoint_on_removed_message() -> None:
    chat = Conversation(system="Be terse. " * 200, model=MODEL, layout="auto", window=6_000, reserve=500)
    compacted = 0
    for number in range(20):
        at = START + timedelta(minutes=number)
        notes = [Note(path=f"{number}.md", text=f"Line {number}.\n" * 100)] if number % 5 == 0 else []
        turn = chat.ask(f"Question {number}. " * 30, attach=notes, at=at)
        assert turn.request("anthropic")
        compacted += turn.compaction is not None
        chat.reply("An answer. " * 40, at=at)
    assert compacted


@pytest.mark.parametrize("under", [{"linger": 2}, {"attachments": "sticky"}], ids=["linger", "sticky"])
def test_text_removed_by_cut_is_readable_after_reattachment(under: dict[str, object]) -> None:
    through, anew = (Kept(closed=closed, layout="auto", model=MODEL, attachments="sticky") for closed in (False, True))
    text = f"{LONG}The harbour has nine berths."
    for kept in (through, anew):
        kept.ask("Read this.", answer="Read. " * 900, attach=[Note(path="a.md", text=text)], at=START)
        _set(kept, attachments="turn", linger=0)
        kept.ask("Two?", answer="Yes.", fold=True, at=START + timedelta(seconds=30))
        _set(kept, **under)
        kept.ask("How many berths?", answer="Nine.", at=START + timedelta(seconds=60))
        assert kept.chat.working_set == ("a.md",)
        kept.ask("And now?", answer="Nine.", at=START + timedelta(seconds=90))
    _, without, back, later = ["\n".join(message.text for message in turn.messages) for turn in through.turns]
    assert text not in without
    assert text in through.turns[2].messages[-1].text
    assert [turn.layout_reason.partition(":")[0] for turn in through.turns[2:]] == ["appended", "appended"]
    assert (back.count(text), later.count(text)) == (1, 1)
    assert [turn.messages for turn in through.turns] == [turn.messages for turn in anew.turns]


def _set(kept: Kept, **settings: object) -> None:
    conversation = kept.chat
    conversation.set(**settings)
    conversation.save_settings()


def test_hidden_call_is_unchanged_on_replay_with_another_tokenizer() -> None:
    through, anew = (
        Kept(closed=closed, layout="auto", model=MODEL, history="window", history_turns=1) for closed in (False, True)
    )
    for kept in (through, anew):
        result = ToolResult(name="look", arguments={"n": 1}, output=LONG)
        kept.ask("One?", answer="Yes.", results=[result], at=START)
        kept.ask("Two?", answer="Yes.", system="Be brief.", at=START + timedelta(seconds=10))
        kept.ask("Three?", answer="Yes.", system="Be clear.", at=START + timedelta(seconds=20))
        kept.ask("Four?", answer="Yes.", model="openai:gpt-5", at=START + timedelta(seconds=30))
        kept.ask("And now?", at=START + timedelta(seconds=40))
    hidden = through.turns[-1].envelope.prompt.history.turns[0]
    assert hidden.question_message.text == '<call look({"n":1})>\nOne?'
    assert [turn.envelope for turn in through.turns] == [turn.envelope for turn in anew.turns]


def test_change_of_deleted_turn_applies_to_next_turn_and_folds() -> None:
    through, anew = (Kept(closed=closed, layout="auto", model=MODEL) for closed in (False, True))
    for kept in (through, anew):
        kept.ask("One?", answer="Yes. " * 900, attach=[Note(path="a.md", text=LONG)], at=START)
        changed = kept.ask("Two?", answer="Yes.", system="Be terse.", at=START + timedelta(seconds=30))
        kept.ask("Three?", answer="Yes.", at=START + timedelta(seconds=60))
        kept.chat.delete(changed)
        kept.regenerate(kept.chat.turns()[-1].message.id)
        kept.chat.reply("No.")
        kept.ask("And now?", at=START + timedelta(seconds=120))
    again = through.turns[-2]
    assert [turn.layout_reason.partition(":")[0] for turn in (*through.turns[2:3], again)] == [
        "appended",
        "the system prompt changed",
    ]
    assert again.messages[0].text == "Be terse."
    assert [turn.messages for turn in through.turns] == [turn.messages for turn in anew.turns]


def test_repeated_question_after_undo_matches_replay() -> None:
    through, anew = (Kept(closed=closed, layout="auto", model=MODEL) for closed in (False, True))
    for kept in (through, anew):
        for number in range(4):
            note = Note(path=f"{number}.md", text=f"{LONG}Note {number}.")
            kept.ask(f"q{number}", answer="Yes. " * 300, attach=[note], at=START + timedelta(seconds=number))
        assert kept.chat.compact(0.001) is not None
        kept.ask("Under it?", answer="Yes.", at=START + timedelta(seconds=10))
        kept.chat.undo()
        kept.regenerate(kept.turns[2].envelope.message_id)
        kept.chat.reply("No. " * 300)
        kept.ask("And now?", at=START + timedelta(seconds=20))
    assert through.turns[-2].messages == through.turns[2].messages
    assert [turn.messages for turn in through.turns] == [turn.messages for turn in anew.turns]


def test_changed_note_can_enter_system_prompt_within_retention(tmp_path: Path) -> None:
    note = tmp_path / "Spec.md"
    note.write_text("The harbour has nine berths.")
    chat = Conversation(layout="auto", linger=2, vault=tmp_path)
    chat.ask("Read this.", attach=[Note(path="Spec.md")], at=START)
    chat.reply("Read.")
    note.write_text("The harbour has ten berths.")
    turn = chat.ask("And now?", system={"instructions": "Use {[[Spec]]}."}, at=START + timedelta(seconds=30))
    assert "ten berths" in turn.messages[0].text
    assert "nine berths" in turn.messages[-1].text
