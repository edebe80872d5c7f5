"""Marks: where a conversation was compacted, and where that was taken back."""

from pathlib import Path

import lamella
from lamella.conversation.log import CompactionMarker, list_compactions_and_undos
from lamella.wiring import open_backend


def find(url: str) -> tuple[CompactionMarker, ...]:
    backend = open_backend(url, create=False)
    try:
        [listed] = backend.store.list_conversations()
        return list_compactions_and_undos(listed.conversation, backend.store.load(listed.conversation))
    finally:
        backend.store.close()


def test_compaction_markers_follow_their_messages(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(url) as engine:
        conversation = engine.chat("garden", window=5_000, reserve=500)
        for number in range(12):
            conversation.ask(f"What of bed {number}?" + " It was dug in March." * 12)
            conversation.reply(f"Bed {number} is fine." + " It grows well." * 12)
        assert find(url) == ()
        first_head, first = conversation.head, conversation.compact(0.2)
        conversation.ask("And now?" + " Look again." * 40)
        conversation.reply("Still fine." + " Nothing changed." * 40)
        second_head, second = conversation.head, conversation.compact(0.1)
        assert first is not None
        assert second is not None
        before = find(url)
        conversation.undo(second.id)
        undone_at = conversation.head
        conversation.undo()
    assert [(mark.message, mark.receipt and mark.receipt.id, mark.undone, mark.voided) for mark in before] == [
        (first_head, first.id, False, ()),
        (second_head, second.id, False, ()),
    ]
    assert [(mark.message, mark.receipt and mark.receipt.id, mark.undone, mark.voided) for mark in find(url)] == [
        (first_head, first.id, True, ()),
        (second_head, second.id, True, ()),
        (undone_at, None, False, (second.id,)),
        (undone_at, None, False, (first.id,)),
    ]
