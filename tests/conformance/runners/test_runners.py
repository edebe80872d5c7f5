"""Properties of every runner: it streams, stops, fails, overflows, resumes and counts like the others."""

import asyncio

import pytest
from tests.conformance.runners.conftest import MODEL, Open, Say
from tests.runner_provider import Speaker

from lamella import Conversation, Note, TurnEvent
from lamella.core.log.call import PrefixChange
from lamella.errors import ContextOverflowError, InvalidReplyError
from lamella.providers import ToolCall, Usage
from lamella.testing import ScriptedReply

ANSWER = ScriptedReply(text="In May, beside the wall.", usage=Usage(plain=40, read=60, write=0, output=7))
DOWN = InvalidReplyError("The provider is down.", hint="Try again later.")


def replies(chat: Conversation) -> list[str]:
    return [record.reply.text if record.reply else "(none)" for record in chat.turns()]


def test_answer_is_streamed_in_pieces_and_stored_whole(opened: Open, say: Say) -> None:
    speaker = Speaker(ScriptedReply(text="In May, beside the wall.", chunk_size=4))
    conversation = opened(speaker).chat("garden", layout="in_place")
    events = say(conversation, "When were the beans sown?")
    assert len([event for event in events if event.kind == "delta"]) > 1
    assert "".join(event.text for event in events) == "In May, beside the wall."
    assert [events[0].kind, events[-1].kind] == ["envelope", "done"]
    assert replies(conversation) == ["In May, beside the wall."]


def test_requests_of_a_conversation_extend_one_another(opened: Open, say: Say) -> None:
    speaker = Speaker("One.", "Two.", "Three.")
    conversation = opened(speaker).chat("garden", layout="in_place")
    for text in ("When were the beans sown?", "And the bees?", "Thanks."):
        say(conversation, text, attach=[Note(path="beans.md", text="# Beans\n\nIn May.\n")])
    first, second, third = ([message.to_dict() for message in request.messages] for request in speaker.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


def test_stopped_answer_is_stored_partially(opened: Open, runner: str) -> None:
    conversation = opened(Speaker(ScriptedReply(text="In May, beside the wall.", chunk_size=4))).chat("garden")

    async def stop() -> None:
        events = conversation.send("When?", runner=runner)
        async for event in events:
            if event.kind == "delta":
                break
        await events.aclose()

    asyncio.run(stop())
    assert replies(conversation) == ["In M"]
    assert conversation.ledger()[-1][-1].stop == "stopped"


def test_killed_process_leaves_question_pending(opened: Open, runner: str) -> None:
    lost = opened(Speaker(ScriptedReply(text="Never heard.", error=DOWN))).chat("garden", layout="in_place")

    async def vanish() -> list[dict[str, object]]:
        events = lost.send("When?", runner=runner)
        async for event in events:
            if event.turn is not None:
                # Nobody ever asks it for more: so a process is killed after what it was told is on the disk.
                return [message.to_dict() for message in event.turn.messages]
        raise AssertionError("no turn was told of")

    sent = asyncio.run(vanish())
    speaker = Speaker(ANSWER)
    conversation = opened(speaker).chat("garden")
    assert replies(conversation) == ["(none)"]

    async def resume() -> list[TurnEvent]:
        return [event async for event in conversation.resume()]

    last = asyncio.run(resume())[-1]
    assert last.kind == "done"
    assert last.turn is not None
    assert last.turn.envelope.prompt.turn_settings.runner == runner
    assert [message.to_dict() for message in speaker.requests[-1].messages] == sent
    assert replies(conversation) == [ANSWER.text]


def test_error_before_text_leaves_question_pending(opened: Open, say: Say) -> None:
    speaker = Speaker(ScriptedReply(error=DOWN), ANSWER)
    conversation = opened(speaker).chat("garden")
    with pytest.raises(InvalidReplyError):
        say(conversation, "When?")
    assert replies(conversation) == ["(none)"]
    say(conversation, conversation.regenerate())
    assert replies(conversation) == [ANSWER.text]


def test_failed_answer_is_stored_partially_and_error_is_not_sent(opened: Open, say: Say) -> None:
    speaker = Speaker(ScriptedReply(text="In May", reasoning="Perhaps in May.", error=DOWN), ANSWER)
    conversation = opened(speaker).chat("garden", layout="in_place")
    with pytest.raises(InvalidReplyError):
        say(conversation, "When?")
    assert replies(conversation) == ["In May"]
    say(conversation, "And where?")
    sent = " ".join(message.text for message in speaker.requests[-1].messages)
    assert "In May" in sent
    assert "down" not in sent
    assert "Perhaps" not in sent


def test_reasoning_is_reported_and_never_sent_back(opened: Open, say: Say) -> None:
    speaker = Speaker(ScriptedReply(text="In May.", reasoning="The note says May."), ANSWER)
    conversation = opened(speaker).chat("garden", layout="in_place")
    events = say(conversation, "When?")
    assert "The note says May." in [event.message for event in events if event.kind == "reasoning"]
    say(conversation, "Sure?")
    assert not any("The note says May." in message.text for message in speaker.requests[-1].messages)


@pytest.mark.moves_prefix(reason="a request that the provider calls too long is compacted before it is sent again")
def test_request_rejected_as_too_long_is_shrunk_once(opened: Open, say: Say, movements: list[PrefixChange]) -> None:
    too_long = ContextOverflowError("The prompt is too long.", hint="Shorten it.")
    speaker = Speaker("One.", "Two.", ScriptedReply(error=too_long), ANSWER)
    conversation = opened(speaker).chat("garden", layout="in_place")
    for text in ("Tell me of the beans. " * 200, "And the bees? " * 200):
        say(conversation, text)
    events = say(conversation, "When?")
    smaller = [event.turn for event in events if event.kind == "compaction" and event.turn]
    assert len(smaller) == 1
    movements.append(smaller[0].prefix_change.prefix_change)
    asked = next(event.turn for event in events if event.turn is not None)
    assert smaller[0].tokens.total < asked.tokens.total
    assert replies(conversation)[-1] == ANSWER.text


def test_each_call_is_in_ledger_with_tokens_and_cost(opened: Open, say: Say) -> None:
    conversation = opened(Speaker(ANSWER)).chat("garden")
    say(conversation, "When?")
    call = conversation.ledger()[-1][-1]
    assert (call.model, call.usage.prompt_tokens, call.usage.output) == (MODEL, 100, 7)
    assert call.billed is not None
    assert call.billed > 0


@pytest.mark.moves_prefix(reason="the window is small, so that the chain runs")
def test_runner_has_own_compaction_settings(opened: Open, say: Say, runner: str) -> None:
    long = "The tide is high at noon, and low at six. " * 60
    speaker = Speaker(*[long] * 12)
    own = {"steps": ["handle"], "runners": {runner: {"steps": ["expendable"]}}}
    conversation = opened(speaker).chat("garden", layout="in_place", window=6_000, reserve=200, compaction=own)
    events = [event for number in range(12) for event in say(conversation, f"Question {number}?")]
    receipts = [event.turn.compaction for event in events if event.turn is not None and event.turn.compaction]
    assert receipts
    assert {str(step.name) for receipt in receipts for step in receipt.steps} == {"expendable"}


def test_calls_have_results_after_any_interruption(opened: Open, say: Say) -> None:
    def look(word: str) -> str:
        """Looks up a word."""
        return f"{word}: a plant."

    calls = tuple(ToolCall(id=f"c{number}", name="look", arguments=f'{{"word": "w{number}"}}') for number in range(3))
    speaker = Speaker(ScriptedReply(text="Let me look.", calls=calls), ANSWER, "Bye.")
    conversation = opened(speaker).chat("garden", layout="in_place")
    say(conversation, "What are these?", tools=[look])
    say(conversation, "Thanks.")
    messages = speaker.requests[-1].messages
    called = [call.id for message in messages for call in message.calls]
    assert called == ["c0", "c1", "c2"]
    assert [message.call_id for message in messages if message.call_id] == called
    assert replies(conversation) == [ANSWER.text, "Bye."]


def test_runner_description_is_one_short_sentence(opened: Open, runner: str) -> None:
    does = opened(Speaker()).runners()[runner]
    assert does.endswith(".")
    assert len(does) < 120
