"""Work in stages under anything that is done to a conversation: live equals reopened, and no range covers what is open.

Stage commands, talk, forks, edits, deletions, compactions and undos in any order, in a window that is too small for it.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.lasting import all_messages, make_backend

from lamella import BudgetExceededError, CallError, Chat, Turn
from lamella.adapters.clocks.system import SystemClock
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.forking import fork_into
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


def open_chat(store: MemoryStore, **given: object) -> tuple[Chat, Backend]:
    backend, _ = make_backend(store, None)
    # Often enough that what is opened anew comes from snapshots.
    backend = replace(backend, checkpoint_every=3)
    return Chat(backend, NAME, dict(given)), backend


def play(chat: Chat, move: Move, number: int) -> None:
    """One move; what is refused where the work stands changes nothing."""
    deed, pick = move
    with suppress(WorkflowError, CallError, BudgetExceededError):
        _DO[deed](chat, pick, number)


def _ask(chat: Chat, pick: int, number: int) -> None:
    chat.ask(f"Question {number}? " + "because " * (pick * 4))
    chat.reply(f"Answer {number}. " + "therefore " * (pick * 4))


def _write(chat: Chat, pick: int, number: int) -> None:
    chat.write_stage(
        {f"field {pick % 3}": f"data {number} " + "words " * pick, "references": [f"https://x.org/{pick}"]}
    )


def _finish(chat: Chat, pick: int, number: int) -> None:
    work = chat.workflow
    assert work is not None
    missing = next((stage.missing for stage in work.stages if stage.id == work.current), ())
    if missing:
        chat.write_stage(dict.fromkeys(missing, f"given {number} " + "in detail " * (pick * 3)))
    if work.status != "pending":
        chat.submit_stage()
    chat.approve_stage(f"decision {number}")


def _fork(chat: Chat, pick: int, _number: int) -> None:
    messages = all_messages(chat)
    if messages:
        chat.fork(messages[pick % len(messages)])


def _edit(chat: Chat, pick: int, number: int) -> None:
    asked = [told.message.id for told in chat.turns()]
    if asked:
        chat.edit(asked[pick % len(asked)], f"Otherwise {number}?")
        chat.reply(f"Otherwise answered {number}.")


def _delete(chat: Chat, pick: int, _number: int) -> None:
    said = [node.id for told in chat.turns() for node in (told.message, told.reply) if node is not None]
    if said:
        chat.delete(said[pick % len(said)])


_DO: dict[str, Callable[[Chat, int, int], object]] = {
    "ask": _ask,
    "data": _write,
    "submit": lambda chat, _pick, _number: chat.submit_stage(),
    "finish": _finish,
    "rewind": lambda chat, pick, _number: chat.rewind_stage(STAGES[pick % len(STAGES)]),
    "fork": _fork,
    "edit": _edit,
    "delete": _delete,
    "compact": lambda chat, pick, _number: chat.compact(to=(0.7, 0.4, 0.1)[pick % 3]),
    "undo": lambda chat, _pick, _number: chat.undo(),
}


def foresee(chat: Chat) -> Turn:
    stored = chat._stored
    return stored._next_dialogue().preview(stored._with_lasting(Ask(text="And now?")))


def sent(chat: Chat) -> list[dict[str, object]]:
    return [message.to_dict() for message in foresee(chat).messages]


def check_stages(chat: Chat) -> None:
    """No range covers the current stage, no two overlap, and every decision that counts is in the prompt once."""
    session = chat._stored.session
    assert session is not None
    path = chat._stored._list_staged()[1]
    ranges = [path[one.first : one.end] for one in session.done]
    covered = [name for said in ranges for name in said]
    assert len(covered) == len(set(covered))
    assert set(covered).isdisjoint(path[session.since :])
    assert [one.stage for one in session.done] == [stage.id for stage in session.workflow.stages[: session.at]]
    told = str(sent(chat)[0]["content"])
    assert told.count("\n## Digest\n") == bool(session.done)
    digest = told.partition("\n## Digest\n")[2].partition("\n\n")[0]
    assert [line.rpartition(": ")[2] for line in digest.splitlines()[1:]] == [one.decision for one in session.done]


@pytest.mark.parametrize("layout", ["library", "in_place"])
@TRIED
@given(played=moves)
def test_live_work_is_what_it_is_when_it_is_opened_anew(layout: str, played: list[Move]) -> None:
    store = MemoryStore()
    chat, _ = open_chat(store, layout=layout, window=4_000, reserve=0)
    chat.begin_workflow("rfc")
    for number, move in enumerate(played):
        play(chat, move, number)
        anew, _ = open_chat(store)
        assert anew.workflow == chat.workflow
        assert sent(anew) == sent(chat)
        check_stages(chat)
    assert list(Conversations(store, SystemClock()).verify()) == []


@TRIED
@given(played=moves)
def test_a_copy_of_work_stands_where_the_work_stood_and_sends_the_same(played: list[Move]) -> None:
    store = MemoryStore()
    chat, backend = open_chat(store, layout="in_place", window=4_000, reserve=0)
    chat.begin_workflow("rfc")
    for number, move in enumerate(played):
        play(chat, move, number)
    for number, message in enumerate(all_messages(chat)[:5]):
        fork_into(backend, NAME, message, name=f"copy {number}")
        chat.fork(message)
        copy = Chat(backend, f"copy {number}", {})
        here, there = chat.workflow, copy.workflow
        assert here is not None
        assert there is not None
        assert there.digest == here.digest
        assert [(one.status, one.attempt, one.data) for one in there.stages] == [
            (one.status, one.attempt, one.data) for one in here.stages
        ]
        assert [len(one.messages) for one in there.stages] == [len(one.messages) for one in here.stages]
        assert sent(copy) == sent(chat)
