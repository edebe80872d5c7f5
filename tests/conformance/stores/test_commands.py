"""What waits for the next question, in every store: written at once, read by another, and erased with the rest."""

from tests.unit.engine.backends import Ticking

from lamella import Chat, Note
from lamella.core.values import replace
from lamella.engine.keeping.conversations import Conversations
from lamella.errors import ConflictError
from lamella.ports import Store
from lamella.wiring import open_backend


def talk(store: Store) -> Chat:
    backend = replace(open_backend("memory:"), store=store, clock=Ticking(), make_key=str)
    return Chat(backend, "talk", {"layout": "in_place"})


def test_what_waits_is_read_by_another_and_sent_once(store: Store) -> None:
    chat = talk(store)
    chat.ask("One.", attach=[Note(path="a.md", text="Alpha.")])
    chat.reply("Yes.")
    chat.attach(Note(path="b.md", text="Beta."), Note(path="c.md", text="Gamma."))
    chat.detach("c.md")
    chat.drop("a.md")
    other = talk(store)
    assert ([one.id for one in other.commands.attach], other.commands.drop) == (["b.md"], ("a.md",))
    sent = [message.text for message in chat.preview("Two.").messages]
    assert [message.text for message in other.ask("Two.").messages] == sent
    assert not talk(store).commands
    assert list(Conversations(store, Ticking()).verify()) == []


def test_two_writers_do_not_lose_what_either_attaches(store: Store) -> None:
    one, two = talk(store), talk(store)
    one.attach(Note(path="a.md", text="Alpha."))
    try:
        two.attach(Note(path="b.md", text="Beta."))
    except ConflictError:
        two.reload()
        two.attach(Note(path="b.md", text="Beta."))
    assert [waits.id for waits in talk(store).commands.attach] == ["a.md", "b.md"]


def test_what_waits_is_erased_with_its_content(store: Store) -> None:
    chat = talk(store)
    chat.ask("One.")
    chat.reply("Yes.")
    chat.attach(Note(path="a.md", text="Alpha."))
    conversations = Conversations(store, Ticking())
    assert conversations.erase_artifact(chat.id, "a.md") == 1
    assert not talk(store).commands
    assert list(conversations.verify_erased(chat.id)) == []
