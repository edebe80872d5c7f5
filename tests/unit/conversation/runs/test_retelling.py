"""Replaying an answer: the part a client heard and the replayed part make the whole answer."""

import asyncio

import lamella
from lamella.conversation.runs import StreamPosition, replay_turn_events
from lamella.testing import ScriptedProvider, ScriptedReply


def test_heard_and_replayed_parts_make_whole_answer() -> None:
    def tide_table(day: str) -> str:
        """Tides of a day."""
        return f"12:00 {day}"

    call = lamella.ToolCall(id="c1", name="tide_table", arguments='{"day": "today"}')
    script = ScriptedProvider(ScriptedReply(text="Let me look.", calls=(call,)), "At noon, as on most days.")

    async def ask(chat: lamella.Conversation) -> None:
        async for _ in chat.send("When?", tools=[tide_table]):
            pass

    with lamella.open("memory:", model="scripted:x", provider=script) as engine:
        conversation = engine.chat("tides")
        asyncio.run(ask(conversation))
        said = conversation.messages()
    (record,) = said.path
    whole = replay_turn_events(record, said.contents, after_position=None)
    assert "".join(event.text for _, event in whole) == "Let me look.At noon, as on most days."
    assert [event.kind for _, event in whole] == ["delta", "tool", "tool", "delta", "usage", "done"]
    texts = ["Let me look.", "At noon, as on most days."]
    for number, text in enumerate(texts):
        for heard in range(len(text) + 1):
            place = StreamPosition(record.message.id, "gone", 3, number, heard)
            rest = "".join(event.text for _, event in replay_turn_events(record, said.contents, after_position=place))
            assert "".join(texts[:number]) + text[:heard] + rest == "".join(texts)
    # From each place that was told, the events after it follow.
    for at, (place, _) in enumerate(whole, start=1):
        again = replay_turn_events(record, said.contents, after_position=place)
        assert [event for _, event in again][-1] == whole[-1][1]
        assert len([event for _, event in again if event.text]) <= len([1 for _, event in whole[at:] if event.text])
