"""Scripts: kept conversations that are played again, and written as transcripts."""

import json
from pathlib import Path

import pytest
from tests.unit.engine.backends import Ticking, make_chat
from tests.unit.pictures import png

from lamella import Chat, Note, Picture, Selection, Tool, ToolOutput, ToolResult
from lamella.core.log.nodes import name_round
from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.forking import fork_into
from lamella.engine.script import play_script, read_script, write_script
from lamella.errors import CallError
from lamella.wiring import open_backend, parse_transcript, replay_transcript

CALLS = (ToolCall(id="c1", name="look", arguments='{"page": 1}'), ToolCall(id="c2", name="look", arguments="[oops"))
PNG = png(1, 1)


@pytest.fixture
def chat() -> Chat:
    chat = Chat(
        replace(open_backend("memory:"), clock=Ticking(), make_key=str), "demo", {"layout": "in_place", "window": 9_000}
    )
    chat.ask(
        "one",
        attach=[Note(path="a.md", text="A\r\r\nnote."), Selection(path="b.md", lines=(2, 3), text="b", policy="pin")],
        results=[ToolResult(name="weather", arguments={"city": "Graz"}, output="dry")],
        tools=[Tool(name="look", description="Looks.", parameters={"type": "object"})],
        system={"base": "B", "workflow": "W"},
        model="openai:gpt-5",
    )
    chat._stored.reply(Answer(reply=Reply(text="", stop=StopReason.TOOLS, calls=CALLS)))
    chat.give([ToolOutput(call="c1", output="Page one."), ToolOutput(call="c2", output="No page.", failed=True)])
    chat.reply("yes")
    chat.ask("two", attach=[Picture(data=PNG)], system={"workflow": ""}, drop=["a.md"], fold=True)
    return chat


def test_a_transcript_has_everything_that_was_said(chat: Chat) -> None:
    body = json.loads(json.dumps(write_script(read_script(chat._backend, "demo"))))
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
    assert parse_transcript(json.dumps(write_script(read_script(chat._backend, "demo"))).encode(), name="t").turns


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
def test_a_transcript_sends_the_arguments_of_a_call_as_the_model_wrote_them(layout: str, arguments: str) -> None:
    chat = Chat(
        replace(open_backend("memory:"), clock=Ticking(), make_key=str),
        "demo",
        {"layout": layout, "model": "openai:gpt-5"},
    )
    chat.ask("one", tools=[Tool(name="look", description="Looks.")])
    call = ToolCall(id="c1", name="look", arguments=arguments)
    chat._stored.reply(Answer(reply=Reply(text="", stop=StopReason.TOOLS, calls=(call,))))
    chat.give([ToolOutput(call="c1", output="Page one.")])
    chat.reply("yes")
    sent = chat.ask("two").messages
    transcript = parse_transcript(json.dumps(chat.transcript(), ensure_ascii=False).encode(), name="t")
    *_, last = replay_transcript(transcript, overrides={}, beside=Path())
    assert last.messages == sent


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_results_that_were_erased_or_told_elsewhere_first_keep_their_ids_when_played_again(layout: str) -> None:
    chat = Chat(
        replace(open_backend("memory:"), clock=Ticking(), make_key=str),
        "demo",
        {"layout": layout, "model": "openai:gpt-5"},
    )
    chat.ask("one", tools=[Tool(name="look", description="Looks.")])
    chat._stored.reply(Answer(reply=Reply(text="", stop=StopReason.TOOLS, calls=CALLS)))
    chat.give([ToolOutput(call="c1", output="Page one."), ToolOutput(call="c2", output="No page.", failed=True)])
    chat.reply("yes")
    first = chat.turns()[0]
    (name, _) = name_round(first.message.id, 0, first.rounds[0])
    fork_into(chat._backend, "demo", chat.head, name="other")
    Conversations(chat._backend.store, Ticking()).erase_artifact("demo", name)
    chat.reload()
    for one in (chat, Chat(chat._backend, "other", {})):
        sent = one.ask("two").messages
        assert layout == "in_place" or name in "".join(message.text for message in sent)
        *_, last = one.replay()
        assert last.messages == sent
        transcript = parse_transcript(json.dumps(one.transcript()).encode(), name="t")
        *_, last = replay_transcript(transcript, overrides={}, beside=Path())
        assert last.messages == sent


def test_a_script_is_played_under_its_settings_or_under_others(chat: Chat) -> None:
    script = read_script(chat._backend, "demo")
    first, second = play_script(chat._backend, script)
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert (second.envelope.layout, second.tokens.limit, second.envelope.model) == ("in_place", 4_904, "openai:gpt-5")
    other = list(play_script(chat._backend, script, {"layout": "library", "window": 7_000, "model": "local"}))
    assert [(turn.envelope.layout, turn.envelope.model) for turn in other] == [("library", "local")] * 2
    assert other[0].tokens.limit == 2_904


def test_playing_writes_nothing_and_reads_one_branch(chat: Chat) -> None:
    version = len(chat._backend.store.load("demo"))
    first = chat.turns()[0].message.id
    assert [turn.number for turn in chat.replay(head=first)] == [1]
    assert len(chat.transcript(first)["turns"]) == 1  # type: ignore[arg-type]
    assert len(chat._backend.store.load("demo")) == version


def test_a_branch_or_a_conversation_that_is_not_there_is_told(chat: Chat) -> None:
    with pytest.raises(CallError, match="no message 'nobody'"):
        read_script(chat._backend, "demo", "nobody")
    with pytest.raises(CallError, match="no conversation 'other'"):
        read_script(chat._backend, "other")


def test_a_conversation_that_began_without_a_model_is_replayed_so() -> None:
    chat = make_chat(layout="in_place")
    chat.ask("one", attach=[Note(path="a.md", text="A")])
    chat.reply("r")
    sent = chat.ask("two", model="openai:gpt-5").messages
    chat.reply("r")
    *_, last = chat.replay()
    assert last.messages == sent


def test_what_a_turn_detaches_is_part_of_its_script() -> None:
    chat = make_chat(layout="library", attachments="sticky", carry_forward="preview")
    chat.ask("one", attach=[Note(path="a.md", text="# A\n\n" + "word " * 2_000)])
    chat.reply("r")
    chat.ask("two")
    chat.reply("r")
    sent = chat.ask("three", detach=["a.md"]).messages
    chat.reply("r")
    written = chat.transcript()
    assert (written["attachments"], written["linger"]) == ("sticky", 2)
    assert written["turns"][2]["detach"] == ["a.md"]  # type: ignore[index]
    transcript = parse_transcript(json.dumps(written).encode(), name="t")
    *_, last = replay_transcript(transcript, overrides={}, beside=Path())
    assert last.messages == sent


def test_braces_that_name_nothing_name_nothing_in_a_transcript_either() -> None:
    chat = make_chat()
    chat.ask("f'{}' {[[a]]}", attach=[Selection(text="x", path="a.md"), Note(path="a.md", text="A")], verbatim=True)
    chat.reply("So.")
    written = chat.transcript()
    transcript = parse_transcript(json.dumps(written).encode(), name="t")
    (turn,) = replay_transcript(transcript, overrides={}, beside=Path())
    assert turn.messages[-1].text.endswith("[User query]:\nf'{}' {[[a]]}")
    assert turn.messages == next(iter(chat.replay())).messages


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_a_replay_of_staged_work_takes_out_the_stages_that_were_taken_out(layout: str) -> None:
    backend = replace(open_backend("memory:"), clock=Ticking(), make_key=str)
    chat = Chat(backend, "paper", {"layout": layout, "window": 3_000, "profile": "seed-paper", "summarizer": "off"})
    chat.begin_workflow("paper")
    sent = []
    for number in range(9):
        sent.append(chat.ask(f"What of stage {number}?"))
        chat.reply(f"Stage {number}: " + "it is told at length, with all that belongs to it " * 40)
        work = chat.workflow
        assert work is not None
        stage = next(one for one in work.stages if one.id == work.current)
        chat.write_stage(dict.fromkeys(stage.required, f"Written for {number}."))
        chat.submit_stage()
        chat.approve_stage(f"Decided {number}.")
        if number == 6:
            chat.rewind_stage("outline")
    steps = [[step.name for step in turn.compaction.steps] if turn.compaction else [] for turn in sent]
    assert {"oldest_stages"} <= {name for names in steps for name in names}
    assert [turn.messages for turn in chat.replay()] == [turn.messages for turn in sent]
