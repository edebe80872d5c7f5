"""No answer is lost: a late one is stored on a branch of its own question."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.unit.conversation.backends import make_chat

import lamella
from lamella import Conversation, Note, ReplyOnOtherBranchError, TurnEvent
from lamella.cli.errors import CliHints
from lamella.providers import InvalidReplyError
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider, ScriptedReply

LAYOUTS = pytest.mark.parametrize("layout", ["library", "in_place", "auto"])


def texts(chat: Conversation, head: str | None = None) -> list[str]:
    return [node.text for record in chat.turns(head) for node in (record.message, record.reply) if node]


async def read_all(chat: Conversation, text: str) -> str:
    return "".join([event.text async for event in chat.send(text)])


def late(one: Conversation, text: str = "Late.") -> ReplyOnOtherBranchError:
    with pytest.raises(ReplyOnOtherBranchError) as caught:
        one.reply(text)
    return caught.value


def test_answers_of_two_concurrent_clients_are_kept(tmp_path: Path) -> None:
    async def talk() -> ReplyOnOtherBranchError:
        script = ScriptedProvider("At noon, and again at midnight.", "At six.")
        async with lamella.open(f"sqlite:///{tmp_path}/chats.db", model="scripted:t", provider=script) as engine:
            one, other = engine.chat("tides"), engine.chat("tides")
            async with aclosing(one.send("When is high tide?")) as events:
                while not (await anext(events)).text:
                    pass
                other.reload()
                assert await read_all(other, "When is low tide?") == "At six."
                with pytest.raises(ReplyOnOtherBranchError) as caught:
                    [event async for event in events]
            again = engine.chat("tides")
            assert texts(one) == texts(again) == ["When is high tide?", "", "When is low tide?", "At six."]
            answer = caught.value.reply_id
            assert texts(again, answer) == ["When is high tide?", "At noon, and again at midnight."]
            assert answer in again.branches()
            assert answer in str(caught.value)
            again.switch(answer)
            assert [call.stop for call in again.ledger()[0]] == ["end"], "what it cost is in the ledger"
            return caught.value

    error = asyncio.run(talk())
    assert error.code == "answer_aside"
    assert error.message.startswith("The conversation tides went on before this answer came")
    assert f'chat.switch("{error.reply_id}")' in error.hint
    shell = error.hint_for(CliHints("sqlite:///tides.db"))
    assert f"`lamella chats show tides --branch {error.reply_id} --store sqlite:///tides.db` shows it" in shell


@LAYOUTS
def test_answer_on_other_branch_does_not_change_active_branch(layout: str) -> None:
    def play(*, answered: bool) -> list[object]:
        store = InMemoryStore()
        one = make_chat(store, layout=layout)
        one.ask("q1", attach=[Note(path="a.md", text="Apple.")])
        other = make_chat(store)
        sent = [other.ask("q2").messages]
        if answered:
            late(one)
        other.reply("a2")
        turn = other.ask("q3")
        return [*sent, turn.messages, turn.prefix_change.cause]

    assert play(answered=True) == play(answered=False)


def test_late_answer_given_twice_makes_one_branch() -> None:
    store = InMemoryStore()
    one, two = make_chat(store), make_chat(store)
    one.ask("q1")
    two.reload()
    other = make_chat(store)
    other.ask("q2")
    first, second = late(one), late(two)
    other.reload()
    assert first.reply_id == second.reply_id
    assert [head for head in other.branches() if head == first.reply_id] == [first.reply_id]


def test_concurrent_rename_makes_no_branch() -> None:
    store = InMemoryStore()
    one = make_chat(store)
    one.ask("q1")
    make_chat(store).rename("Tides")
    one.reply("a1")
    assert (texts(one), len(one.branches()), one.title) == (["q1", "a1"], 1, "Tides")
    assert texts(make_chat(store)) == ["q1", "a1"]


def test_answer_is_kept_when_next_question_comes_first() -> None:
    async def talk() -> None:
        script = ScriptedProvider(ScriptedReply(text="At noon, and again at midnight.", chunk_size=4))
        async with lamella.open("memory:", model="scripted:t", provider=script) as engine:
            conversation = engine.chat("tides")
            async with aclosing(conversation.send("When is high tide?")) as events:
                await anext(events)
                conversation.ask("Something else?")
                with pytest.raises(ReplyOnOtherBranchError) as caught:
                    [event async for event in events]
            assert texts(conversation) == ["When is high tide?", "", "Something else?"]
            assert texts(conversation, caught.value.reply_id)[-1] == "At noon, and again at midnight."
            conversation.reply("Yes.")
            assert texts(engine.chat("tides"))[-1] == "Yes."

    asyncio.run(talk())


def test_stopped_partial_answer_is_kept_on_other_branch() -> None:
    async def talk() -> None:
        script = ScriptedProvider(ScriptedReply(text="At noon, and again at midnight.", chunk_size=4))
        async with lamella.open("memory:", model="scripted:t", provider=script) as engine:
            conversation, other = engine.chat("tides"), engine.chat("tides")
            events = conversation.send("When is high tide?")
            said: list[TurnEvent] = []
            while not said or not said[-1].text:
                said.append(await anext(events))
            other.reload()
            other.ask("Something else?")
            await events.aclose()
            other.reload()
            kept = [texts(other, head)[-1] for head in other.branches()]
            assert kept == ["At n", "Something else?"] or kept == ["Something else?", "At n"]

    asyncio.run(talk())


def test_broken_off_answer_on_other_branch_reports_both_errors() -> None:
    async def talk() -> tuple[InvalidReplyError, str]:
        broken = InvalidReplyError("It broke off.", hint="Ask again.")
        script = ScriptedProvider(ScriptedReply(text="At noon, and again at midnight.", chunk_size=4, error=broken))
        async with lamella.open("memory:", model="scripted:t", provider=script) as engine:
            conversation, other = engine.chat("tides"), engine.chat("tides")
            async with aclosing(conversation.send("When is high tide?")) as events:
                while not (await anext(events)).text:
                    pass
                other.reload()
                other.ask("Something else?")
                with pytest.raises(InvalidReplyError) as caught:
                    [event async for event in events]
            other.reload()
            kept = [head for head in other.branches() if texts(other, head)[-1] == "At noon, and again at midnight."]
            return caught.value, kept[0]

    error, kept = asyncio.run(talk())
    assert error.message.startswith("It broke off. The conversation tides went on before this answer came;")
    assert kept in error.message
    assert error.hint.startswith("Ask again. `chat.turns(")
    assert f"`lamella chats show tides --branch {kept}` shows it" in error.hint_for(CliHints(None))


def test_text_before_late_tool_call_is_kept_with_ledger_entry() -> None:
    async def talk() -> None:
        call = lamella.ToolCall(id="c", name="look", arguments="{}")
        script = ScriptedProvider(ScriptedReply(text="Let me look.", calls=(call,)))
        tool = lamella.Tool(name="look", description="Looks.", parameters={"type": "object"})
        async with lamella.open("memory:", model="scripted:t", provider=script) as engine:
            conversation, other = engine.chat("tides"), engine.chat("tides")
            async with aclosing(conversation.send("When is high tide?", tools=[tool])) as events:
                await anext(events)
                other.reload()
                other.ask("Something else?")
                with pytest.raises(ReplyOnOtherBranchError) as caught:
                    [event async for event in events]
            other.reload()
            assert texts(other, caught.value.reply_id)[-1] == "Let me look."

    asyncio.run(talk())


def test_archive_includes_answer_on_other_branch(tmp_path: Path) -> None:
    async def talk() -> None:
        async with lamella.open(f"sqlite:///{tmp_path}/one.db") as engine:
            one = engine.chat("tides")
            one.ask("q1")
            other = engine.chat("tides")
            other.ask("q2")
            aside = late(one).reply_id
            other.reply("a2")
            file = engine.export_archive("tides", tmp_path)
            async with lamella.open(f"sqlite:///{tmp_path}/two.db") as second:
                copied, _, _ = second.import_archive(file)
                assert texts(copied) == ["q1", "", "q2", "a2"]
                assert texts(copied, aside) == ["q1", "Late."]

    asyncio.run(talk())
