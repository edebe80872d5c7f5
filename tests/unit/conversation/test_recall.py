"""Recalling: originals come back byte for byte with their place, and only those that left the prompt."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.unit.conversation.backends import make_backend, make_chat

import lamella
from lamella import Conversation, Message, Note, ToolResult
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.recall import MAX_ANSWER_CHARS, BranchSearch, answer_recall
from lamella.conversation.turn import TurnRequest
from lamella.core.search.recall import RecallHit
from lamella.errors import InvalidOperationError
from lamella.providers import ToolCall, ToolOutput
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider, ScriptedReply
from lamella.wiring import open_prompt_builder, read_services

SPEC = "# Spec\r\n\tA desk has the code «Ä-17».\n\n" + "It stands by the window. " * 40
CHATS: list[Callable[..., Conversation | Conversation]] = [Conversation, make_chat]


def talk(chat: Conversation | Conversation, turns: int = 12) -> None:
    """A note and a tool result, then plain talk."""
    chat.ask("What is this?", attach=[Note(path="spec.md", text=SPEC)], results=[ToolResult(name="web", output="none")])
    chat.reply("A desk.")
    for number in range(turns):
        chat.ask(f"Question {number} about shelf {number * 7}, please." + " More words." * 20)
        chat.reply(f"Answer {number}." + " And so on." * 20)


def places(found: Sequence[RecallHit]) -> list[tuple[str, str]]:
    return [(one.passage.place, one.passage.role) for one in found]


@pytest.mark.parametrize("make", CHATS)
def test_text_in_prompt_is_not_recalled(make: Callable[..., Conversation | Conversation]) -> None:
    chat = make(layout="in_place")
    assert chat.recall("desk") == ()
    talk(chat)
    assert chat.recall("spec.md desk shelf") == ()


@pytest.mark.parametrize("make", CHATS)
def test_notice_of_shortened_reply_names_recall_query(
    make: Callable[..., Conversation | Conversation],
) -> None:
    chat = make(layout="in_place", window=4_000, reserve=500)
    talk(chat)
    assert chat.compact(0.5) is not None
    sent = [message.text for message in chat.ask("And now?").messages]
    chat.reply("Now.")
    assert any("turn 3.]" in text for text in sent)
    found = chat.recall("turn 3")
    assert places(found)[0] == ("turn 3", "reply")
    assert found[0].passage.text == "Answer 1." + " And so on." * 20
    assert chat.recall("Turn 99") == ()
    assert len(chat.recall("turn 3", limit=1)) == 1


@pytest.mark.parametrize("make", CHATS)
def test_compacted_text_is_recalled_unchanged(
    make: Callable[..., Conversation | Conversation],
) -> None:
    chat = make(layout="in_place", window=4_000, reserve=500)
    talk(chat)
    assert chat.compact(0.2) is not None
    (note,) = chat.recall('"code «Ä-17»"')
    assert note.passage.text == SPEC.replace("\r\n", "\n")
    assert (note.passage.place, note.passage.role, note.passage.title) == ("turn 1", "note", "spec.md")
    assert places(chat.recall("shelf 21", limit=1)) == [("turn 5", "user")]
    chat.undo()
    assert chat.recall("code") == ()


@pytest.mark.parametrize("make", CHATS)
def test_id_of_text_in_prompt_recalls_nothing_else(make: Callable[..., Conversation | Conversation]) -> None:
    chat = make(layout="in_place")
    chat.ask(
        "Compare notes/b.md with a.md: harbour.", attach=[Note(path="notes/a.md", text="The harbour of notes/b.md.")]
    )
    chat.reply("See notes/b.md.")
    chat.ask("And this?", attach=[Note(path="notes/b.md", text="Boats.")], drop=["notes/a.md"])
    assert [hit.passage.title for hit in chat.recall("harbour")] == ["notes/a.md"]
    assert chat.recall("notes/b.md") == ()
    assert "Nothing found" in answer_recall({"query": '"notes/b.md"'}, chat.recall)
    assert [hit.passage.text for hit in chat.recall("notes/a.md")] == ["The harbour of notes/b.md."]


def test_id_of_newer_version_recalls_the_older_one() -> None:
    chat = Conversation(layout="library")
    chat.ask("What?", attach=[Note(path="notes/b.md", text="Boats.")])
    chat.reply("See notes/b.md.")
    chat.ask("And now?", attach=[Note(path="notes/b.md", text="Ferries and more.")])
    chat.reply("So.")
    chat.ask("Well?", fold=True)
    assert {hit.passage.text for hit in chat.recall("notes/b.md")} <= {"Boats."}


@pytest.mark.parametrize("make", CHATS)
@pytest.mark.parametrize("query", ["[6]", "message 6", " Message 6 "])
def test_message_is_recalled_by_its_number(make: Callable[..., Conversation | Conversation], query: str) -> None:
    chat = make(layout="in_place", window=4_000, reserve=500)
    talk(chat)
    chat.compact(0.2)
    (found,) = chat.recall(query)
    assert (found.passage.place, found.passage.role) == ("turn 3", "reply")
    assert found.passage.text == "Answer 1." + " And so on." * 20
    assert chat.recall("[99]") == ()


@pytest.mark.parametrize("make", CHATS)
def test_message_is_found_by_the_id_that_a_receipt_gives(
    make: Callable[..., Conversation | Conversation],
) -> None:
    chat = make(layout="in_place", window=4_000, reserve=500)
    talk(chat)
    receipt = chat.compact(0.2)
    assert receipt is not None
    sent = "\n".join(message.text for message in chat.preview("").messages)
    removed = [name for step in receipt.steps for name in step.removed]
    # A digest has the whole text of some questions, so there is nothing to recall of them.
    gone = [name for name in removed if name not in chat._log.nodes or chat._log.nodes[name].text not in sent]
    assert gone
    for name in gone:
        assert chat.recall(name, limit=1)[0].passage.title.startswith(name)


@pytest.mark.parametrize("make", CHATS)
def test_text_of_pending_turn_is_not_recalled(
    make: Callable[..., Conversation | Conversation],
) -> None:
    chat = make(layout="in_place")
    talk(chat, turns=1)
    chat.ask("one more", drop=["spec.md"])
    assert places(chat.recall("window")) == [("turn 1", "note")]
    chat.reply("yes")
    chat.ask("and back", attach=[Note(path="spec.md", text=SPEC)])
    assert chat.recall("window") == ()


@pytest.mark.layout("library")
def test_another_branch_is_not_recalled() -> None:
    conversation = make_chat(history="window", history_turns=1)
    for text in ("first of apples", "second of pears", "third of plums"):
        conversation.ask(text)
        conversation.reply("yes")
    conversation.edit(conversation.turns()[1].message.id, "second of quinces")
    conversation.reply("yes")
    conversation.ask("last")
    assert conversation.recall("pears plums") == ()
    assert places(conversation.recall("apples")) == [("turn 1", "user")]


def test_erased_text_is_not_recalled_in_open_chat() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place")
    talk(conversation, turns=1)
    conversation.ask("one more", drop=["spec.md"])
    conversation.reply("yes")
    assert conversation.recall("window")
    backend = make_backend(store)
    ConversationRepository(backend.store, backend.clock).erase_artifact("chat", "spec.md")
    assert conversation.recall("window") == ()


def test_chat_opened_again_recalls_the_same() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place", window=4_000, reserve=500)
    talk(conversation)
    conversation.compact(0.2)
    assert make_chat(store).recall("shelf window") == conversation.recall("shelf window")


@pytest.mark.layout("library")
def test_recall_index_is_kept_while_branch_grows() -> None:
    runner = open_prompt_builder(read_services({"history": "window", "history_turns": 1}), conversation_key="chat")
    runner._branch_search = recaller = BranchSearch()
    for text in ("Of desks and shelves", "Of chairs"):
        runner.ask(TurnRequest(text=text))
        runner.reply("Yes.")
    assert places(runner.recall("desks")) == [("turn 1", "user")]
    entered = list(recaller.get_index(runner._history).passages)
    runner.ask(TurnRequest(text="Of tables"))
    assert places(runner.recall("shelves")) == [("turn 1", "user")]
    grown = recaller.get_index(runner._history).passages
    # The turn that was the last may have been answered since: it is entered again.
    assert [old is new for old, new in zip(entered[:2], grown, strict=False)] == [True, True]
    assert [one.passage.text for one in grown] == ["Of desks and shelves", "Yes.", "Of chairs", "Yes.", "Of tables"]
    runner.reply("No.")
    assert recaller.get_index(runner._history).passages[-1].passage.text == "No."


@pytest.mark.parametrize("query", ["", " \n"])
def test_query_without_words_is_refused(query: str) -> None:
    with pytest.raises(InvalidOperationError, match="nothing to look for"):
        Conversation().recall(query)


@pytest.mark.parametrize("limit", [0, -1, True, 2.5, "3"])
def test_invalid_limit_is_refused(limit: int) -> None:
    with pytest.raises(InvalidOperationError, match="no number"):
        Conversation().recall("desk", limit)


def test_tool_answers_with_place_and_exact_original() -> None:
    chat = Conversation()
    talk(chat, turns=1)
    chat.ask("one more", drop=["spec.md"])
    told = answer_recall({"query": "spec.md", "limit": 1}, chat.recall)
    original = SPEC.replace("\r\n", "\n")
    question = chat.turns()[0].message.id
    after = f"[after it, user {question}] What is this?"
    assert told == f"[turn 1, note spec.md, {len(original):,} characters]\n{original}\n{after}"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "takes a query"),
        ({"query": 3}, "takes a query"),
        ({"query": " "}, "nothing to look for"),
        ({"query": "desk", "limit": "many"}, "no number"),
        ({"query": "zebra"}, "Nothing found: nothing that left the prompt fits 'zebra'"),
    ],
)
def test_invalid_recall_call_is_answered_in_words(arguments: dict[str, object], told: str) -> None:
    assert told in answer_recall(arguments, Conversation().recall)


def test_originals_too_long_for_one_answer_are_shown_in_part_with_their_length() -> None:
    chat = Conversation(layout="in_place", window=1_000_000)
    texts = {f"{name}.md": f"{name} zebra " * MAX_ANSWER_CHARS for name in ("a", "b")}
    chat.ask("one", attach=[Note(path=path, text=text) for path, text in texts.items()])
    chat.reply("yes")
    chat.ask("two", drop=list(texts))
    told = answer_recall({"query": "zebra"}, chat.recall)
    assert len(told) < MAX_ANSWER_CHARS
    assert [line for line in told.splitlines() if line.startswith("[turn")] == [
        f"[turn 1, note {path}, a part of {len(text):,} characters; start 0 reads it from its beginning]"
        for path, text in texts.items()
    ]


def test_summarized_text_can_be_recalled_whole() -> None:
    class Brief:
        def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
            return "About a zebra."

    text = "# Zebra\n" + "It has stripes. " * 4_000
    chat = Conversation(window=6_000, reserve=500, summarizer=Brief())
    chat.ask("What is this?", attach=[Note(path="zebra.md", text=text)])
    assert [found.passage.text for found in chat.recall("stripes")] == [text]


def test_model_with_recall_tool_reads_removed_text() -> None:
    wants = ToolCall(id="c", name="recall", arguments='{"query": "spec.md", "limit": 1}')
    provider = ScriptedProvider(
        ScriptedReply(text="yes"), ScriptedReply(text="", calls=(wants,)), ScriptedReply(text="Four seats.")
    )
    conversation = lamella.open("memory:", model="scripted:x", provider=provider).chat("demo")

    async def send(text: str, **given: Any) -> list[ToolOutput]:  # noqa: ANN401 - what send takes
        return [event.output async for event in conversation.send(text, **given) if event.output]

    asyncio.run(send("What is in it?", attach=[Note(path="spec.md", text=SPEC)]))
    (output,) = asyncio.run(send("And now?", drop=["spec.md"], tools=[conversation.recall_tool]))
    original = SPEC.replace("\r\n", "\n")
    place, text = output.output.split("\n[after it", 1)[0].split("\n", 1)
    said_at = conversation.turns()[0].message.at[:16].replace("T", " ")
    assert (place, text) == (f"[turn 1, {said_at} UTC, note spec.md, {len(original):,} characters]", original)
    told = conversation.recall_tool.to_definition()
    assert (told.name, '"required":["query"]' in told.parameters) == ("recall", True)


def test_recall_tool_limits_its_answer() -> None:
    chat = Conversation(layout="in_place")
    for number in range(40):
        chat.ask(f"Question {number}", attach=[Note(path=f"{number}.md", text=f"stripes {number} " * 400)])
        chat.reply("Yes.")
    chat.ask("Now", drop=[f"{number}.md" for number in range(40)])
    told = answer_recall({"query": "stripes", "limit": 300}, chat.recall)
    assert 4_000 < len(told) < 14_000
    short = answer_recall({"query": "stripes"}, chat.recall, max_chars=1_000)
    assert len(short) < 1_200
    assert "more were found" in short
