"""Messages: role, text and pictures, belonging to no provider."""

from base64 import b64encode

from lamella.core.artifacts.make import make_image_value
from lamella.core.messages.model import Message, Role

PICTURE = make_image_value(b"bytes", media_type="image/png", width=1, height=1)


def test_a_message_of_text_has_a_string_as_content() -> None:
    message = Message(role=Role.USER, pieces=("a", "b"))
    assert message.to_dict() == {"role": "user", "content": "ab"}


def test_a_message_with_pictures_has_parts_text_first() -> None:
    message = Message(role=Role.USER, pieces=("look",), images=(PICTURE,))
    assert message.to_dict() == {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "media_type": "image/png", "data": b64encode(b"bytes").decode()},
        ],
    }


def test_messages_are_the_same_by_their_bytes_not_by_their_pieces() -> None:
    one = Message(role=Role.USER, pieces=("ab", "c"))
    assert one.extends_to(Message(role=Role.USER, pieces=("a", "bc")))
    assert not one.extends_to(Message(role=Role.USER, pieces=("abd",)))
    assert not one.extends_to(Message(role=Role.ASSISTANT, pieces=("abc",)))
    assert not one.extends_to(Message(role=Role.USER, pieces=("abc",), images=(PICTURE,)))
