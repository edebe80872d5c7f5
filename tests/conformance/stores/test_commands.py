"""Pending commands in every store: written at once, read by other processes, and erased with the rest."""

from tests.unit.conversation.backends import Ticking

from lamella import Conversation, Note
from lamella.conversation.import_export import ConversationRepository
from lamella.core.values import replace
from lamella.errors import ConflictError
from lamella.ports import Store
from lamella.wiring import open_backend


def talk(store: Store) -> Conversation:
    backend = replace(open_backend("memory:"), store=store, clock=Ticking(), make_key=str)
    return Conversation.open(backend, "talk", {"layout": "in_place"})


def test_pending_commands_are_shared_and_sent_once(store: Store) -> None:
    conversation = talk(store)
    conversation.ask("One.", attach=[Note(path="a.md", text="Alpha.")])
    conversation.reply("Yes.")
    conversation.attach(Note(path="b.md", text="Beta."), Note(path="c.md", text="Gamma."))
    conversation.detach("c.md")
    conversation.drop("a.md")
    other = talk(store)
    assert ([one.id for one in other.pending_commands.attach], other.pending_commands.drop) == (["b.md"], ("a.md",))
    sent = [message.text for message in conversation.preview("Two.").messages]
    assert [message.text for message in other.ask("Two.").messages] == sent
    assert not talk(store).pending_commands
    assert list(ConversationRepository(store, Ticking()).verify()) == []


def test_concurrent_attachments_are_both_kept(store: Store) -> None:
    one, two = talk(store), talk(store)
    one.attach(Note(path="a.md", text="Alpha."))
    try:
        two.attach(Note(path="b.md", text="Beta."))
    except ConflictError:
        two.reload()
        two.attach(Note(path="b.md", text="Beta."))
    assert [waits.id for waits in talk(store).pending_commands.attach] == ["a.md", "b.md"]


def test_pending_attachment_is_erased_with_its_content(store: Store) -> None:
    conversation = talk(store)
    conversation.ask("One.")
    conversation.reply("Yes.")
    conversation.attach(Note(path="a.md", text="Alpha."))
    conversations = ConversationRepository(store, Ticking())
    assert conversations.erase_artifact(conversation.id, "a.md") == 1
    assert not talk(store).pending_commands
    assert list(conversations.verify_erased(conversation.id)) == []
