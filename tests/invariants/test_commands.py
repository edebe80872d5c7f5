"""Commands between turns: a conversation sends the same live, reopened and forked."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.conversation.backends import Ticking

from lamella import Conversation, Folder, Note
from lamella.conversation.backend import Backend
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.core.values import replace
from lamella.errors import ContextBudgetExceededError, InvalidOperationError
from lamella.wiring import open_backend

TRIED = settings.get_profile("invariants")
FILES = ("a.md", "docs/b.md", "docs/c.md")
NAMES = (*FILES, "docs", "turn:1")
MOVES = st.tuples(
    st.sampled_from(("attach", "folder", "detach", "drop", "pin", "unpin", "refresh", "ask", "ask", "write", "open")),
    st.sampled_from(NAMES),
)


def sent(chat: Conversation) -> list[dict[str, object]]:
    return [message.to_dict() for message in chat.preview("And now?").messages]


def command(chat: Conversation, do: str, name: str) -> None:
    match do:
        case "attach":
            chat.attach(Note(path=name if name in FILES else FILES[0]))
        case "folder":
            chat.attach(Folder(path="docs"), question=name)
        case "detach" | "drop" | "pin" | "unpin" | "refresh":
            getattr(chat, do)(name)
        case _:
            chat.ask(f"What of {name}?")
            chat.reply("It is as it is.")


def write(folder: Path, name: str, number: int) -> None:
    (folder / (name if name in FILES else FILES[0])).write_text(f"# {number}\n\n{'Words. ' * 60}", encoding="utf-8")


def open_chat(backend: Backend, layout: str, attachments: str) -> Conversation:
    given = {"layout": layout, "attachments": attachments, "window": 1_200, "reserve": 100}
    return Conversation.open(backend, "talk", given)


@TRIED
@given(st.lists(MOVES, max_size=10), st.sampled_from(("library", "in_place")), st.sampled_from(("turn", "sticky")))
def test_reopened_and_forked_conversation_sends_the_same(
    moves: list[tuple[str, str]], layout: str, attachments: str
) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "docs").mkdir()
        for number, name in enumerate(FILES):
            write(folder, name, number)
        backend = replace(open_backend("memory:", vault=folder), clock=Ticking(), make_key=str)
        conversation = open_chat(backend, layout, attachments)
        for number, (do, name) in enumerate(moves):
            if do == "write":
                write(folder, name, number)
            elif do == "open":
                conversation = open_chat(backend, layout, attachments)
            else:
                # What means nothing now, or does not fit, is refused, and nothing has changed.
                with suppress(InvalidOperationError, ContextBudgetExceededError):
                    command(conversation, do, name)
            assert sent(open_chat(backend, layout, attachments)) == sent(conversation)
        if conversation.head:
            copy_branch_into_new_conversation(backend, conversation.id, conversation.head, name="other")
            assert sent(Conversation.open(backend, "other", {})) == sent(conversation)
        assert list(ConversationRepository(backend.store, Ticking()).verify()) == []
