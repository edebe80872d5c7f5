"""Flags of code tasks: each is true exactly while its block is in the prompt."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lamella import Conversation, Engine, Unknown
from lamella import open as open_engine
from lamella.code import CodeTask, InstructionsInPrompt, build_task_turn, get_task_state
from lamella.errors import ContextBudgetExceededError, InvalidOperationError
from lamella.runners.code_questions import TASK_INSTRUCTIONS

TRIED = settings.get_profile("invariants")
KINDS = st.sampled_from([None, *CodeTask])
DEEDS = st.one_of(
    st.tuples(st.just("ask"), KINDS),
    st.tuples(st.sampled_from(["compact", "undo", "fork", "delete", "reload", "drop", "detach"]), st.integers(0, 9)),
)
SMALL = {"window": 1_800, "reserve": 200, "model": "scripted:m", "linger": 1}


def read_off(chat: Conversation) -> InstructionsInPrompt:
    """Which blocks can be read in the next prompt, found in its letters."""
    sent = "\n".join(message.text for message in chat.preview().messages)
    return InstructionsInPrompt(tuple(kind for kind in CodeTask if TASK_INSTRUCTIONS[kind].text in sent))


def ask(chat: Conversation, kind: CodeTask | None, number: int) -> None:
    said = f"Word {number}. " + "Beans and peas. " * 12
    if kind is None:
        chat.ask(said)
    else:
        turn = build_task_turn(kind, Unknown(text=f"code {number}"), text=said)
        chat.ask(turn.text, attach=turn.attach, system=turn.system)
    chat.reply("So it is. " * 20)


def disturb(chat: Conversation, deed: str, at: int) -> None:
    """Something that changes what is in the prompt; where there is nothing to do it to, nothing."""
    records = chat.turns()
    names = [row.id for row in chat.library() if row.kind == "instruction"]
    doing: dict[str, Callable[[], object]] = {
        "compact": lambda: chat.compact(to=0.1),
        "undo": chat.undo,
        "fork": lambda: chat.fork(replies[at % len(replies)]),
        "delete": lambda: chat.delete(records[at % len(records)].message.id),
        "drop": lambda: chat.drop(names[at % len(names)]),
        "detach": lambda: chat.detach(names[at % len(names)]),
    }
    replies = [one.reply.id for one in records if one.reply is not None]
    needs = {"fork": replies, "delete": records, "drop": names, "detach": names}
    if needs.get(deed, [deed]):
        try:
            doing[deed]()
        except InvalidOperationError:
            assert deed == "undo", "there may be nothing to undo"


def walk(engine: Engine, chat: Conversation, deeds: list[tuple[str, object]]) -> None:
    for number, (deed, more) in enumerate(deeds):
        try:
            if deed == "ask":
                assert more is None or isinstance(more, CodeTask)
                ask(chat, more, number)
            elif deed == "reload":
                chat = engine.chat("flags")
            else:
                disturb(chat, deed, int(str(more)))
        except ContextBudgetExceededError:
            # What no longer fits is refused, and nothing has changed.
            pass
        assert get_task_state(chat) == read_off(chat), deed
    assert get_task_state(engine.chat("flags")) == get_task_state(chat)


@TRIED
@given(st.sampled_from(["library", "in_place"]), st.sampled_from(["turn", "sticky"]), st.lists(DEEDS, max_size=9))
def test_task_flag_is_set_exactly_while_block_is_readable(
    layout: str, attachments: str, deeds: list[tuple[str, object]]
) -> None:
    with TemporaryDirectory() as folder, open_engine(f"sqlite:///{Path(folder) / 'chats.db'}") as engine:
        walk(engine, engine.chat("flags", layout=layout, attachments=attachments, **SMALL), deeds)
