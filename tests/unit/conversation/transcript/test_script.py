"""Scripts: stored conversations that are played again, and written as transcripts."""

import json
from pathlib import Path

import pytest
from tests.unit.conversation.backends import Ticking, make_chat
from tests.unit.pictures import png

from lamella import Conversation, Image, Note, Selection, Tool, ToolOutput, ToolResult
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.transcript import load_script, replay_conversation_script, script_to_transcript
from lamella.conversation.turn import ModelAnswer
from lamella.core.log.turn_records import round_result_ids
from lamella.core.messages import ModelReply, StopReason, ToolCall
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.wiring import open_backend, parse_transcript, replay_transcript

CALLS = (ToolCall(id="c1", name="look", arguments='{"page": 1}'), ToolCall(id="c2", name="look", arguments="[oops"))
PNG = png(1, 1)


@pytest.fixture
def chat() -> Conversation:
    conversation = Conversation.open(
        replace(open_backend("memory:"), clock=Ticking(), make_key=str), "demo", {"layout": "in_place", "window": 9_000}
    )
    conversation.ask(
        "one",
        attach=[Note(path="a.md", text="A\r\r\nnote."), Selection(path="b.md", lines=(2, 3), text="b", policy="pin")],
        results=[ToolResult(name="weather", arguments={"city": "Graz"}, output="dry")],
        tools=[Tool(name="look", description="Looks.", parameters={"type": "object"})],
        system={"base": "B", "workflow": "W"},
        model="openai:gpt-5",
    )
    conversation.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=CALLS)))
    conversation.submit_tool_outputs(
        [ToolOutput(call="c1", output="Page one."), ToolOutput(call="c2", output="No page.", failed=True)]
    )
    conversation.reply("yes")
    conversation.ask("two", attach=[Image(data=PNG)], system={"workflow": ""}, drop=["a.md"], fold=True)
    return conversation


def test_transcript_has_all_messages(chat: Conversation) -> None:
    body = json.loads(json.dumps(script_to_transcript(load_script(chat._backend, "demo"))))
    first, second = body.pop("turns")
    assert {name: body[name] for name in ("lamella", "conversation", "model", "window", "layout")} == {
        "lamella": 1, "conversation": "demo", "model": "openai:gpt-5", "window": 9_000, "layout": "in_place",
    }  # fmt: skip
    assert first["attach"] == [
        {"kind": "note", "path": "a.md", "text": "A\r\r\nnote."},
        {"kind": "selected_text", "path": "b.md", "lines": [2, 3], "text": "b", "policy": "pin"},
    ]
    assert first["tools"] == [{"name": "weather", "arguments": {"city": "Graz"}, "output": "dry"}]
    assert first["rounds"] == [
        {
            "text": "",
            "calls": [
                {"id": "c1", "name": "look", "arguments": {"page": 1}, "written": '{"page": 1}'},
                {"id": "c2", "name": "look", "arguments": {"arguments": "[oops"}, "written": "[oops"},
            ],
            "results": [
                {"call": "c1", "output": "Page one."},
                {"call": "c2", "output": "No page.", "failed": True},
            ],
        }
    ]
    assert (first["system"], first["reply"]) == ({"base": "B", "workflow": "W"}, "yes")
    assert second["attach"][0].keys() == {"kind", "data", "media_type", "title"}
    assert (second["system"], second["drop"], second["fold"]) == ({"workflow": ""}, ["a.md"], True)
    assert "reply" not in second
    assert parse_transcript(
        json.dumps(script_to_transcript(load_script(chat._backend, "demo"))).encode(), name="t"
    ).turns


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize(
    "arguments",
    [
        '{"page":1}',
        '{ "b": 1,\n"a": "\\u00fc" }',
        '{"a":1,"a":2}',
        '{"a":1.0e2}',
        '{"a":1e999}',
        '{"a":NaN}',
        '{"a":"\\ud800"}',
        "[1, 2]",
        "[oops",
        " ",
        "",
    ],
)
def test_transcript_sends_arguments_as_model_wrote_them(layout: str, arguments: str) -> None:
    conversation = Conversation.open(
        replace(open_backend("memory:"), clock=Ticking(), make_key=str),
        "demo",
        {"layout": layout, "model": "openai:gpt-5"},
    )
    conversation.ask("one", tools=[Tool(name="look", description="Looks.")])
    call = ToolCall(id="c1", name="look", arguments=arguments)
    conversation.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(call,))))
    conversation.submit_tool_outputs([ToolOutput(call="c1", output="Page one.")])
    conversation.reply("yes")
    sent = conversation.ask("two").messages
    transcript = parse_transcript(json.dumps(conversation.transcript(), ensure_ascii=False).encode(), name="t")
    *_, last = replay_transcript(transcript, overrides={}, base_folder=Path())
    assert last.messages == sent


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_erased_and_renamed_results_keep_ids_in_transcript(layout: str) -> None:
    conversation = Conversation.open(
        replace(open_backend("memory:"), clock=Ticking(), make_key=str),
        "demo",
        {"layout": layout, "model": "openai:gpt-5"},
    )
    conversation.ask("one", tools=[Tool(name="look", description="Looks.")])
    conversation.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=CALLS)))
    conversation.submit_tool_outputs(
        [ToolOutput(call="c1", output="Page one."), ToolOutput(call="c2", output="No page.", failed=True)]
    )
    conversation.reply("yes")
    first = conversation.turns()[0]
    (name, _) = round_result_ids(first.message.id, 0, first.completed_rounds[0])
    copy_branch_into_new_conversation(conversation._backend, "demo", conversation.head, name="other")
    ConversationRepository(conversation._backend.store, Ticking()).erase_artifact("demo", name)
    conversation.reload()
    for one in (conversation, Conversation.open(conversation._backend, "other", {})):
        sent = one.ask("two").messages
        assert layout == "in_place" or name in "".join(message.text for message in sent)
        *_, last = one.replay()
        assert last.messages == sent
        transcript = parse_transcript(json.dumps(one.transcript()).encode(), name="t")
        *_, last = replay_transcript(transcript, overrides={}, base_folder=Path())
        assert last.messages == sent


def test_script_runs_with_own_or_other_settings(chat: Conversation) -> None:
    script = load_script(chat._backend, "demo")
    first, second = replay_conversation_script(chat._backend, script)
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert (second.envelope.layout, second.tokens.limit, second.envelope.model) == ("in_place", 4_904, "openai:gpt-5")
    other = list(
        replay_conversation_script(chat._backend, script, {"layout": "library", "window": 7_000, "model": "local"})
    )
    assert [(turn.envelope.layout, turn.envelope.model) for turn in other] == [("library", "local")] * 2
    assert other[0].tokens.limit == 2_904


def test_replay_stores_nothing_and_reads_one_branch(chat: Conversation) -> None:
    version = len(chat._backend.store.load("demo"))
    first = chat.turns()[0].message.id
    assert [turn.number for turn in chat.replay(head=first)] == [1]
    assert len(chat.transcript(first)["turns"]) == 1  # type: ignore[arg-type]
    assert len(chat._backend.store.load("demo")) == version


def test_missing_branch_or_conversation_is_reported(chat: Conversation) -> None:
    with pytest.raises(InvalidOperationError, match="no message 'nobody'"):
        load_script(chat._backend, "demo", "nobody")
    with pytest.raises(InvalidOperationError, match="no conversation 'other'"):
        load_script(chat._backend, "other")


def test_conversation_that_began_without_a_model_is_replayed_so() -> None:
    conversation = make_chat(layout="in_place")
    conversation.ask("one", attach=[Note(path="a.md", text="A")])
    conversation.reply("r")
    sent = conversation.ask("two", model="openai:gpt-5").messages
    conversation.reply("r")
    *_, last = conversation.replay()
    assert last.messages == sent


def test_script_includes_detached_names() -> None:
    conversation = make_chat(layout="library", attachments="sticky", carry_forward="preview")
    conversation.ask("one", attach=[Note(path="a.md", text="# A\n\n" + "word " * 2_000)])
    conversation.reply("r")
    conversation.ask("two")
    conversation.reply("r")
    sent = conversation.ask("three", detach=["a.md"]).messages
    conversation.reply("r")
    written = conversation.transcript()
    assert (written["attachments"], written["linger"]) == ("sticky", 2)
    assert written["turns"][2]["detach"] == ["a.md"]  # type: ignore[index]
    transcript = parse_transcript(json.dumps(written).encode(), name="t")
    *_, last = replay_transcript(transcript, overrides={}, base_folder=Path())
    assert last.messages == sent


def test_braces_without_match_stay_literal_in_transcript() -> None:
    conversation = make_chat()
    conversation.ask(
        "f'{}' {[[a]]}", attach=[Selection(text="x", path="a.md"), Note(path="a.md", text="A")], verbatim=True
    )
    conversation.reply("So.")
    written = conversation.transcript()
    transcript = parse_transcript(json.dumps(written).encode(), name="t")
    (turn,) = replay_transcript(transcript, overrides={}, base_folder=Path())
    assert turn.messages[-1].text.endswith("[User query]:\nf'{}' {[[a]]}")
    assert turn.messages == next(iter(conversation.replay())).messages


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_replay_of_workflow_removes_same_stages(layout: str) -> None:
    backend = replace(open_backend("memory:"), clock=Ticking(), make_key=str)
    conversation = Conversation.open(
        backend, "paper", {"layout": layout, "window": 3_000, "profile": "seed-paper", "summarizer": "off"}
    )
    conversation.start_workflow("paper")
    sent = []
    for number in range(9):
        sent.append(conversation.ask(f"What of stage {number}?"))
        conversation.reply(f"Stage {number}: " + "it is told at length, with all that belongs to it " * 40)
        work = conversation.workflow
        assert work is not None
        stage = next(one for one in work.stages if one.id == work.current)
        conversation.write_stage(dict.fromkeys(stage.required, f"Written for {number}."))
        conversation.submit_stage()
        conversation.approve_stage(f"Decided {number}.")
        if number == 6:
            conversation.rewind_to_stage("outline")
    steps = [[step.name for step in turn.compaction.steps] if turn.compaction else [] for turn in sent]
    assert {"oldest_stages"} <= {name for names in steps for name in names}
    assert [turn.messages for turn in conversation.replay()] == [turn.messages for turn in sent]
