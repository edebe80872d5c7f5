"""Forking: a new conversation that goes on from a message sends what the old one would send from there."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.lasting import NAME, Lasting, all_messages
from tests.invariants.moves import Kept, kept_plans

from lamella import Chat
from lamella.adapters.clocks.system import SystemClock
from lamella.adapters.stores.memory import MemoryStore
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.forking import fork_into

TRIED = settings.get_profile("invariants")


def sent(chat: Chat) -> list[dict[str, object]]:
    """What the next turn sends; going on from another message is not counted as rewriting what was said before."""
    stored = chat._stored
    turn = stored._next_dialogue().preview(stored._with_lasting(Ask(text="And from here?")))
    return [message.to_dict() for message in turn.messages]


@TRIED
@given(kept_plans(turns=4))
def test_a_fork_of_any_message_sends_what_going_on_from_it_would_send(kept: Kept) -> None:
    store = MemoryStore()
    with TemporaryDirectory() as folder:
        played = Lasting(kept, Path(folder), lambda: store)
        played.walk([False] * len(kept.moves))
        played.reopen()
        chat, backend = played.stored, played._backend
        for number, message in enumerate(all_messages(chat)[:6]):
            name = f"{NAME} {number}"
            fork_into(backend, NAME, message, name=name)
            chat.fork(message)
            assert sent(Chat(backend, name, {})) == sent(chat)
    assert list(Conversations(store, SystemClock()).verify()) == []
