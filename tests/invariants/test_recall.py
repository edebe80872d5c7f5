"""Recall stays up to date with a branch after questions, edits, forks, undos and erasures."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.conversation.backends import make_backend, make_chat

from lamella import Conversation, Note
from lamella.conversation.import_export import ConversationRepository
from lamella.core.search.recall import RecallHit
from lamella.core.search.search import search
from lamella.errors import InvalidOperationError
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")
WORDS = [
    *("budget", "Budgets", "Käse", "getUserName", "12,500", "decide", "deciding", "mengirim", "İzmir", "the", "中文"),
    "?!",
]
QUERIES = ["budgets", "kase", "user name", "12500", "decided", '"the "', "dikirim", "izmir", '"中"', "note"]
SECRET = "zebra"
SMALL = {"layout": "in_place", "window": 2_000, "reserve": 200}

said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
MOVES = ["ask", "ask", "ask", "note", "edit", "fork", "delete", "compact", "undo", "erase", "switch", "set"]
steps = st.tuples(st.sampled_from(MOVES), said, st.integers(0, 50))


def say(chat: Conversation, text: str, which: int, attached: Sequence[Note] = ()) -> None:
    chat.ask(text + " and so on" * 20, attach=attached)
    if which % 7:
        chat.reply(f"{text} too" + " as it is" * 20)


def edit(chat: Conversation, text: str, which: int) -> None:
    questions = [record.message.id for record in chat.turns()]
    if questions:
        chat.edit(questions[which % len(questions)], f"{text} instead")
        chat.reply("yes")


def move(chat: Conversation, do: str, which: int) -> None:
    """Go on without a message, or from another one."""
    messages = [node.id for record in chat.turns() for node in (record.message, record.reply) if node is not None]
    if messages and do == "delete":
        chat.delete(messages[which % len(messages)])
    elif messages:
        chat.fork(messages[which % len(messages)])


def erase(chat: Conversation, store: InMemoryStore, which: int) -> None:
    backend = make_backend(store)
    with suppress(InvalidOperationError):
        ConversationRepository(backend.store, backend.clock).erase_artifact("chat", f"{which % 3}.md")
        chat.reload()


def take(chat: Conversation, store: InMemoryStore, step: tuple[str, str, int]) -> None:
    """One step of a conversation; what makes no sense where it stands changes nothing."""
    do, text, which = step
    note = Note(path=f"{which % 3}.md", text=f"{SECRET} {text} " * 20)
    does: dict[str, Callable[[], object]] = {
        "ask": lambda: say(chat, text, which),
        "note": lambda: say(chat, text, which, [note]),
        "edit": lambda: edit(chat, text, which),
        "fork": lambda: move(chat, do, which),
        "delete": lambda: move(chat, do, which),
        "compact": lambda: chat.compact(0.3),
        "undo": lambda: chat.undo() if chat.receipts() else None,
        "erase": lambda: erase(chat, store, which),
        "switch": lambda: chat.switch(chat.branches()[which % len(chat.branches())]) if chat.branches() else None,
        "set": lambda: chat.set(window=2_000 + which),
    }
    does[do]()


def hit_fields(found: Sequence[RecallHit]) -> list[tuple[object, ...]]:
    return [(one.passage, one.score, one.text, one.before, one.after, one.at) for one in found]


@TRIED
@given(st.lists(steps, min_size=3, max_size=12))
def test_open_chat_recalls_like_reopened_one(walk: list[tuple[str, str, int]]) -> None:
    store = InMemoryStore()
    conversation = make_chat(store, **SMALL)
    for number, step in enumerate(walk):
        take(conversation, store, step)
        again = make_chat(store)
        for query in (QUERIES[number % len(QUERIES)], QUERIES[(number * 3 + 1) % len(QUERIES)]):
            assert hit_fields(conversation.recall(query, 50)) == hit_fields(again.recall(query, 50))


@TRIED
@given(st.lists(steps, min_size=2, max_size=8), st.data())
def test_quoted_text_of_branch_is_recalled_exactly(walk: list[tuple[str, str, int]], data: st.DataObject) -> None:
    store = InMemoryStore()
    conversation = make_chat(store, **SMALL)
    for step in walk:
        take(conversation, store, step)
    dialogue = conversation._prompt_builder()
    index = dialogue._branch_search.get_index(dialogue._history)
    for record in conversation.turns():
        for node in (record.message, record.reply):
            if node is None or not node.text:
                continue
            start = data.draw(st.integers(0, len(node.text) - 1))
            span = node.text[start : start + data.draw(st.integers(1, 40))]
            if span.strip():
                assert node.id in {one.passage.id for one in search(index, f'"{span}"', limit=1_000)}


@TRIED
@given(st.lists(steps, min_size=2, max_size=8))
def test_erased_text_is_not_recalled(walk: list[tuple[str, str, int]]) -> None:
    store = InMemoryStore()
    conversation = make_chat(store, **SMALL)
    take(conversation, store, ("note", "the budget", 0))
    for step in walk:
        take(conversation, store, step)
    conversation.recall(SECRET)
    backend = make_backend(store)
    for which in range(3):
        with suppress(InvalidOperationError):
            ConversationRepository(backend.store, backend.clock).erase_artifact("chat", f"{which}.md")
    assert conversation.recall(SECRET, 50) == ()
    assert make_chat(store).recall(SECRET, 50) == ()
