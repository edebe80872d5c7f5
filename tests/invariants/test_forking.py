"""Forking: a new conversation from a message sends what the original would send from there."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME, Lasting, all_messages

from lamella import Conversation
from lamella.clocks import SystemClock
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.turn import TurnRequest
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")


def sent(chat: Conversation) -> list[dict[str, object]]:
    """What the next turn sends; going on from another message is not counted as rewriting what was said before."""
    conversation_log = chat
    turn = conversation_log._next_prompt_builder().preview(
        conversation_log._with_pending_and_overrides(TurnRequest(text="And from here?"))
    )
    return [message.to_dict() for message in turn.messages]


@TRIED
@given(stored_conversation_plans(turns=4))
def test_fork_sends_like_original_branch(kept: Kept) -> None:
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        played = Lasting(kept, Path(folder), lambda: store)
        played.walk([False] * len(kept.moves))
        played.reopen()
        conversation, backend = played.stored, played._backend
        for number, message in enumerate(all_messages(conversation)[:6]):
            name = f"{NAME} {number}"
            copy_branch_into_new_conversation(backend, NAME, message, name=name)
            conversation.fork(message)
            assert sent(Conversation.open(backend, name, {})) == sent(conversation)
    assert list(ConversationRepository(store, SystemClock()).verify()) == []
