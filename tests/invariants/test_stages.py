"""Workflows under any operations on a conversation: live equals reopened, and no range covers the open stage.

Stage commands, talk, forks, edits, deletions, compactions and undos in any order, in a window that is too small for it.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.reopened_prompts import all_messages, make_backend

from lamella import ContextBudgetExceededError, Conversation, InvalidOperationError, Turn
from lamella.clocks import SystemClock
from lamella.conversation.backend import Backend
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.stages import list_branch_stages_and_messages
from lamella.conversation.turn import TurnRequest
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore
from lamella.workflows import WorkflowError

TRIED = settings.get_profile("invariants")
NAME = "work"
STAGES = ("problem", "background", "options", "design", "rollout", "review")
DEEDS = (
    "ask",
    "ask",
    "ask",
    "data",
    "submit",
    "finish",
    "finish",
    "rewind",
    "fork",
    "edit",
    "delete",
    "compact",
    "undo",
)
Move = tuple[str, int]
moves = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 30)), min_size=4, max_size=22)


def open_chat(store: InMemoryStore, **given: object) -> tuple[Conversation, Backend]:
    backend, _ = make_backend(store, None)
    # Often enough that what is opened again comes from snapshots.
    backend = replace(backend, checkpoint_every=3)
    return Conversation.open(backend, NAME, dict(given)), backend


def play(chat: Conversation, move: Move, number: int) -> None:
    """One move; what is refused where the work stands changes nothing."""
    deed, pick = move
    with suppress(WorkflowError, InvalidOperationError, ContextBudgetExceededError):
        _DO[deed](chat, pick, number)


def _ask(chat: Conversation, pick: int, number: int) -> None:
    chat.ask(f"Question {number}? " + "because " * (pick * 4))
    chat.reply(f"Answer {number}. " + "therefore " * (pick * 4))


def _write(chat: Conversation, pick: int, number: int) -> None:
    chat.write_stage(
        {f"field {pick % 3}": f"data {number} " + "words " * pick, "references": [f"https://x.org/{pick}"]}
    )


def _finish(chat: Conversation, pick: int, number: int) -> None:
    work = chat.workflow
    assert work is not None
    missing = next((stage.missing for stage in work.stages if stage.id == work.current), ())
    if missing:
        chat.write_stage(dict.fromkeys(missing, f"given {number} " + "in detail " * (pick * 3)))
    if work.status != "pending":
        chat.submit_stage()
    chat.approve_stage(f"decision {number}")


def _fork(chat: Conversation, pick: int, _number: int) -> None:
    messages = all_messages(chat)
    if messages:
        chat.fork(messages[pick % len(messages)])


def _edit(chat: Conversation, pick: int, number: int) -> None:
    asked = [record.message.id for record in chat.turns()]
    if asked:
        chat.edit(asked[pick % len(asked)], f"Otherwise {number}?")
        chat.reply(f"Otherwise answered {number}.")


def _delete(chat: Conversation, pick: int, _number: int) -> None:
    said = [node.id for record in chat.turns() for node in (record.message, record.reply) if node is not None]
    if said:
        chat.delete(said[pick % len(said)])


_DO: dict[str, Callable[[Conversation, int, int], object]] = {
    "ask": _ask,
    "data": _write,
    "submit": lambda chat, _pick, _number: chat.submit_stage(),
    "finish": _finish,
    "rewind": lambda chat, pick, _number: chat.rewind_to_stage(STAGES[pick % len(STAGES)]),
    "fork": _fork,
    "edit": _edit,
    "delete": _delete,
    "compact": lambda chat, pick, _number: chat.compact(to=(0.7, 0.4, 0.1)[pick % 3]),
    "undo": lambda chat, _pick, _number: chat.undo(),
}


def foresee(chat: Conversation) -> Turn:
    conversation_log = chat
    return conversation_log._next_prompt_builder().preview(
        conversation_log._with_pending_and_overrides(TurnRequest(text="And now?"))
    )


def sent(chat: Conversation) -> list[dict[str, object]]:
    return [message.to_dict() for message in foresee(chat).messages]


def check_stages(chat: Conversation) -> None:
    """No range covers the current stage, no two overlap, and every decision that counts is in the prompt once."""
    session = chat.workflow_session
    assert session is not None
    path = list_branch_stages_and_messages(chat._log)[1]
    ranges = [path[one.first_message_index : one.end_message_index] for one in session.approved_attempts]
    covered = [name for said in ranges for name in said]
    assert len(covered) == len(set(covered))
    assert set(covered).isdisjoint(path[session.stage_start :])
    assert [one.stage for one in session.approved_attempts] == [
        stage.id for stage in session.workflow.stages[: session.stage_index]
    ]
    told = str(sent(chat)[0]["content"])
    assert told.count("\n## Digest\n") == bool(session.approved_attempts)
    digest = told.partition("\n## Digest\n")[2].partition("\n\n")[0]
    assert [line.rpartition(": ")[2] for line in digest.splitlines()[1:]] == [
        one.decision for one in session.approved_attempts
    ]


@pytest.mark.parametrize("layout", ["library", "in_place"])
@TRIED
@given(played=moves)
def test_workflow_is_the_same_after_reopen(layout: str, played: list[Move]) -> None:
    store = InMemoryStore()
    conversation, _ = open_chat(store, layout=layout, window=4_000, reserve=0)
    conversation.start_workflow("rfc")
    for number, move in enumerate(played):
        play(conversation, move, number)
        anew, _ = open_chat(store)
        assert anew.workflow == conversation.workflow
        assert sent(anew) == sent(conversation)
        check_stages(conversation)
    assert list(ConversationRepository(store, SystemClock()).verify()) == []


@TRIED
@given(played=moves)
def test_copied_workflow_keeps_stage_and_sends_the_same(played: list[Move]) -> None:
    store = InMemoryStore()
    conversation, backend = open_chat(store, layout="in_place", window=4_000, reserve=0)
    conversation.start_workflow("rfc")
    for number, move in enumerate(played):
        play(conversation, move, number)
    for number, message in enumerate(all_messages(conversation)[:5]):
        copy_branch_into_new_conversation(backend, NAME, message, name=f"copy {number}")
        conversation.fork(message)
        copy = Conversation.open(backend, f"copy {number}", {})
        here, there = conversation.workflow, copy.workflow
        assert here is not None
        assert there is not None
        assert there.digest == here.digest
        assert [(one.status, one.attempt, one.data) for one in there.stages] == [
            (one.status, one.attempt, one.data) for one in here.stages
        ]
        assert [len(one.messages) for one in there.stages] == [len(one.messages) for one in here.stages]
        assert sent(copy) == sent(conversation)
