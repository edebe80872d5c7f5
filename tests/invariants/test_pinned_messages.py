"""A turn with a pinned message is sent whole after any compaction, undo or reopening."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.conversation.backends import make_chat

from lamella.conversation.conversation import Conversation
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")
TURNS = 8
names = st.builds(lambda voice, number: f"{voice}:{number}", st.sampled_from(("turn", "reply")), st.integers(1, TURNS))
deeds = st.lists(
    st.one_of(
        st.tuples(st.just("pin"), names),
        st.tuples(st.just("unpin"), names),
        st.tuples(st.just("compact"), st.sampled_from(("0.005", "0.02", "0.05"))),
        st.tuples(st.just("undo"), st.just("")),
        st.tuples(st.just("reopen"), st.just("")),
    ),
    min_size=2,
    max_size=8,
)


def speak(chat: Conversation, number: int, **more: list[str]) -> str:
    """A turn whose two messages can be told from all others; what was sent."""
    turn = chat.ask(f"<question {number}> " + "word " * 40, **more)  # type: ignore[arg-type]
    chat.reply(f"<answer {number}> " + "word " * 40)
    return "\n".join(message.text for message in turn.messages)


@TRIED
@given(deeds=deeds, layout=st.sampled_from(("library", "in_place", "auto")))
def test_pinned_turn_is_always_kept(deeds: list[tuple[str, str]], layout: str) -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout=layout, window=8_000, reserve=0)
    for number in range(1, TURNS + 1):
        speak(conversation, number)
    pinned: dict[str, list[str]] = {}
    number = TURNS
    for deed, what in deeds:
        if deed == "compact":
            conversation.compact(to=float(what))
        elif deed == "undo" and conversation.receipts():
            conversation.undo()
        elif deed == "reopen":
            conversation = make_chat(store)
        elif deed in ("pin", "unpin") and (stands := _find_sent(conversation, what)):
            number += 1
            speak(conversation, number, **{deed: [what]})
            pinned.pop(what, None)
            pinned |= {what: stands} if deed == "pin" else {}
        number += 1
        sent = speak(conversation, number)
        assert [one for stands in pinned.values() for one in stands if one not in sent] == []


def _find_sent(chat: Conversation, name: str) -> list[str]:
    """What of a turn is part of the next prompt: where its question is, it can be pinned; its reply may have left."""
    number = name.partition(":")[2]
    sent = "\n".join(message.text for message in chat.preview("").messages)
    marks = [f"<question {number}>", f"<answer {number}>"]
    return [mark for mark in marks if mark in sent] if marks[0] in sent else []
