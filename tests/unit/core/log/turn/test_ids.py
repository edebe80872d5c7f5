"""Message ids: from content and ancestry, sixteen hex digits, in no rendered byte and no envelope hash."""

import re

from lamella import Conversation, Note, Turn
from lamella.core.log.turn import MessageAuthor, compute_message_id


def first(conversation: str = "c", text: str = "hello", note: str = "A") -> Turn:
    return Conversation(conversation_key=conversation).ask(text, attach=[Note(path="a.md", text=note)])


def test_message_id_is_sixteen_hex_digits() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", first().envelope.message_id)


def test_same_conversation_has_the_same_ids() -> None:
    assert first().envelope.message_id == first().envelope.message_id


def test_conversation_text_attachments_role_and_parent_each_make_another_id() -> None:
    ids = {
        first().envelope.message_id,
        first(conversation="d").envelope.message_id,
        first(text="hullo").envelope.message_id,
        first(note="B").envelope.message_id,
        compute_message_id("c", parent="", role=MessageAuthor.REPLY, text="hello"),
        compute_message_id("c", parent="x", role=MessageAuthor.REPLY, text="hello"),
    }
    assert len(ids) == 6


def test_texts_joining_alike_have_different_ids() -> None:
    one = compute_message_id('c","', parent="", role=MessageAuthor.USER, text="x")
    assert one != compute_message_id("c", parent='","', role=MessageAuthor.USER, text="x")


def test_message_id_is_in_no_rendered_byte_or_hash() -> None:
    one, other = first(), first(conversation="d")
    assert one.envelope.message_id not in one.envelope.text
    assert all(one.envelope.message_id not in message.text for message in one.messages)
    assert one.envelope.hash == other.envelope.hash
    assert one.envelope.prefix_hash == other.envelope.prefix_hash
