"""Why an artifact is in the prompt or not: every reason, and the actions that would add it."""

import pytest
from tests.unit.pictures import png

from lamella import Conversation, Image, Note, Selection, ToolResult
from lamella.conversation.reasons import PromptExplanation
from lamella.errors import InvalidOperationError

SPEC = Note(path="a/spec.md", title="The spec", text="# Spec\n" + "A sentence of the spec.\n" * 400)


def talk(*, turns: int = 0, **settings: object) -> Conversation:
    """A conversation whose first turn attaches the spec."""
    chat = Conversation(**{"layout": "in_place", "window": 20_000, "reserve": 0, **settings})  # type: ignore[arg-type]
    say(chat, "Read this.", attach=[SPEC])
    for number in range(turns):
        say(chat, f"Question {number}? " + "word " * 60)
    return chat


def say(chat: Conversation, text: str, **more: object) -> str:
    turn = chat.ask(text, **more)  # type: ignore[arg-type]
    chat.reply("An answer. " * 20)
    return turn.envelope.message_id


def remedies(reason: PromptExplanation) -> list[str]:
    return [f"{remedy.kind} {remedy.target}" for remedy in reason.remedies]


@pytest.mark.parametrize("name", ["a/spec.md", "spec.md", "spec", "The spec", "SPEC"])
def test_artifact_is_found_by_id_path_end_or_title(name: str) -> None:
    assert talk().why(name).id == "a/spec.md"


def test_selection_is_found_by_its_note() -> None:
    chat = Conversation()
    say(chat, "What is this?", attach=[Selection(path="b.md", lines=(1, 2), text="selected")])
    assert chat.why("b.md").id.startswith("b.md#L1-L2")


def test_name_that_may_mean_several_is_refused_with_their_ids() -> None:
    chat = talk()
    say(chat, "And this?", attach=[Note(path="b/spec.md", text="other")])
    with pytest.raises(InvalidOperationError, match=r"may be one of 2: a/spec\.md, b/spec\.md") as caught:
        chat.why("spec")
    assert caught.value.hint == "Give the id of one of them."


@pytest.mark.parametrize(("layout", "where"), [("in_place", "in message 0"), ("library", "in the context library")])
def test_attached_note_is_full_and_stays(layout: str, where: str) -> None:
    reason = talk(layout=layout).why("spec")
    assert reason.in_prompt
    assert reason.why == (f"Attached in turn 1; attachments stay while there is room. It is {where} in full.")
    assert (reason.kind, reason.title, reason.turns, remedies(reason)) == ("note", "The spec", (1,), [])
    ((layer, segment),) = reason.segments
    assert (layer, segment.form) == ("L2_PREVIOUS", "full")


def test_pending_pinned_and_updated_notes_say_so() -> None:
    chat = talk()
    chat.ask("And?", pin=["a/spec.md"], attach=[Note(path="b.md", text="B")])
    assert "this turn attaches it" in chat.why("b.md").why
    chat.reply("Yes.")
    assert "it is pinned and never shortened" in chat.why("spec").why
    say(chat, "It changed.", attach=[Note(path="b.md", text="Another B")])
    assert "its newest text as an update" in chat.why("b.md").why


def test_note_in_instructions_is_in_system_prompt() -> None:
    chat = talk()
    say(chat, "Now?", system={"instructions": "Obey {[[The spec]]}"}, attach=[SPEC])
    reason = chat.why("spec")
    assert reason.why == "The instructions of the system prompt include it."
    assert "L1_SYSTEM" in [layer for layer, _ in reason.segments]


def test_unattached_note_suggests_attaching() -> None:
    reason = talk().why("nowhere.md")
    assert (reason.in_prompt, reason.why, reason.kind) == (False, "It was never attached on this branch.", "")
    assert remedies(reason) == ["attach nowhere.md"]
    assert talk().why("a/spek.md").why == "It was never attached on this branch. Did you mean a/spec.md?"


def test_dropped_note_is_absent_until_reattached() -> None:
    chat = talk()
    say(chat, "Without it.", drop=["a/spec.md"])
    reason = chat.why("spec")
    assert (reason.in_prompt, reason.why) == (False, "It was dropped in turn 2.")
    assert remedies(reason) == ["attach a/spec.md", "recall a/spec.md"]
    say(chat, "With it again.", attach=[SPEC])
    assert chat.why("spec").in_prompt


def test_shortened_or_removed_note_names_receipt() -> None:
    chat = talk(turns=8)
    receipt = chat.compact(to=0.02)
    assert receipt is not None
    shortened = chat.why("spec")
    assert shortened.why.startswith(f"The compaction {receipt.id} shortened it in its step ")
    assert remedies(shortened) == [f"undo {receipt.id}", "attach a/spec.md", "recall a/spec.md"]
    # Replies go before any question does.
    message = receipt.steps[-1].removed[-1]
    taken = chat.why(message)
    assert (taken.in_prompt, taken.kind) == (False, "user")
    assert taken.why == f"The compaction {receipt.id} removed it in its step {receipt.steps[-1].name}."
    assert remedies(taken) == [f"undo {receipt.id}", f"recall {message}"]
    chat.undo()
    assert chat.why("spec").remedies == ()
    assert chat.why(message).why == "It is a message of the conversation; messages are sent in full."


def test_outlined_reply_names_last_step() -> None:
    chat = talk(turns=8)
    receipt = chat.compact(to=0.02)
    assert receipt is not None
    cut = receipt.steps[-1].removed
    stubs = [reason for reason in map(chat.why, cut) if reason.in_prompt]
    assert {reason.kind for reason in stubs} <= {"reply"}
    for reason in stubs:
        assert reason.why == f"The compaction {receipt.id} shortened it in its step expendable: one line is left."
        assert remedies(reason)[0] == f"undo {receipt.id}"
        assert "attach" not in " ".join(remedies(reason))


def test_outline_that_is_carried_forward_names_the_setting() -> None:
    chat = talk(layout="library", carry_forward="preview")
    say(chat, "And?")
    reason = chat.why("spec")
    assert reason.why == "Only its outline is kept, because of the setting carry_forward."
    assert remedies(reason) == ["attach a/spec.md", "set carry_forward=full", "recall a/spec.md"]


def test_hidden_message_names_history_mode() -> None:
    chat = talk(layout="library", history="window", history_turns=1)
    first = say(chat, "One?")
    for number in range(3):
        say(chat, f"Question {number}?")
    reason = chat.why(first)
    assert reason.why == "The history mode window shows the last 1 turns; it is older."
    assert remedies(reason) == ["set history=full", f"recall {first}"]


def test_image_and_tool_result_explain_their_turn() -> None:
    chat = Conversation(layout="library")
    picture = Image(data=png(2, 2), media_type="image/png", title="a duck")
    say(chat, "What is this?", attach=[picture], results=[ToolResult(name="look", arguments={}, output="a duck")])
    assert chat.why("a duck").why == "An image is sent only with its own turn, turn 1."
    result = chat.why(next(name for name in _ids(chat) if name.startswith("tool:")))
    assert result.why == "It is the result of a tool in turn 1; of older results only the call is left."
    assert remedies(result) == [f"recall {result.id}"]


def test_messages_are_named_by_turn() -> None:
    chat = Conversation(layout="library")
    say(chat, "What is this?")
    say(chat, "And that?")
    question, answer = chat.why("turn:2"), chat.why("reply:1")
    assert (question.in_prompt, question.kind, question.turns) == (True, "user", (2,))
    assert (answer.in_prompt, answer.kind, answer.turns) == (True, "reply", (1,))
    assert not chat.why("turn:9").in_prompt


def test_note_with_images_names_the_setting() -> None:
    chat = Conversation(layout="library", image_notes="handle")
    say(chat, "What is this?", attach=[Note(path="duck.md", text="![[duck.png]] A duck. " * 40)])
    reason = chat.why("duck")
    assert reason.why == "It embeds images; the setting image_notes reduces such a note to one line."
    assert remedies(reason) == ["attach duck.md", "set image_notes=text", "recall duck.md"]


def _ids(chat: Conversation) -> list[str]:
    prompt = chat.preview("").envelope
    return [segment.id for layer in prompt.layers for segment in layer.segments]
