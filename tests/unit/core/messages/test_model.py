"""Messages: role, text and pictures, belonging to no provider."""

from base64 import b64encode
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.artifacts.kinds import make_image_data
from lamella.core.messages import Message, Role, ToolCall, count_common_prefix
from lamella.core.values import replace

PICTURE = make_image_data(b"bytes", media_type="image/png", width=1, height=1)


def test_message_of_text_has_a_string_as_content() -> None:
    message = Message(role=Role.USER, pieces=("a", "b"))
    assert message.to_dict() == {"role": "user", "content": "ab"}


def test_message_with_images_has_parts_text_first() -> None:
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
    assert one.has_same_content(Message(role=Role.USER, pieces=("a", "bc")))
    assert not one.has_same_content(Message(role=Role.USER, pieces=("abd",)))
    assert not one.has_same_content(Message(role=Role.ASSISTANT, pieces=("abc",)))
    assert not one.has_same_content(Message(role=Role.USER, pieces=("abc",), images=(PICTURE,)))


def test_roles_are_the_usual_words() -> None:
    assert [role.value for role in Role] == ["system", "user", "assistant", "tool"]


def test_minimal_message_has_only_text() -> None:
    message = Message(role=Role.USER, pieces=("a",))
    assert (message.images, message.tokens, message.piece_token_counts, message.calls) == ((), 0, (), ())
    assert (message.provider_reply, message.call_id, message.failed) == (None, None, False)


def test_message_that_calls_tools_has_each_call_by_id_name_and_arguments() -> None:
    call = ToolCall(id="c1", name="search", arguments='{"q": "x"}')
    message = Message(role=Role.ASSISTANT, pieces=("Let me see.",), calls=(call,))
    assert message.to_dict() == {
        "role": "assistant",
        "content": "Let me see.",
        "calls": [{"id": "c1", "name": "search", "arguments": '{"q": "x"}'}],
    }


def test_tool_message_names_call_and_marks_failure() -> None:
    message = Message(role=Role.TOOL, pieces=("found",), call_id="c1")
    assert message.to_dict() == {"role": "tool", "call": "c1", "content": "found"}
    assert replace(message, failed=True).to_dict() == {"role": "tool", "call": "c1", "content": "found", "failed": True}


def test_messages_differ_by_calls_and_failure() -> None:
    call = ToolCall(id="c1", name="search", arguments="{}")
    asking = Message(role=Role.ASSISTANT, pieces=("a",), calls=(call,))
    back = Message(role=Role.TOOL, pieces=("a",), call_id="c1")
    assert asking.has_same_content(replace(asking, tokens=9))
    assert not asking.has_same_content(replace(asking, calls=()))
    assert back.has_same_content(replace(back, tokens=9))
    assert not back.has_same_content(replace(back, call_id="c2"))
    assert not back.has_same_content(replace(back, failed=True))


def test_text_of_a_message_is_not_printed() -> None:
    shown = repr(Message(role=Role.USER, pieces=("secret",), piece_token_counts=(77,), tokens=3))
    assert "secret" not in shown
    assert "77" not in shown
    assert "tokens=3" in shown


@steady
@given(st.lists(st.integers(0, 1), max_size=12), st.lists(st.integers(0, 1), max_size=12))
def test_common_prefix_ends_at_first_difference(before: list[int], now: list[int]) -> None:
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
    assert count_common_prefix(before, now) == len(list(alike))


def test_list_shares_all_of_its_prefix() -> None:
    assert [count_common_prefix(list(range(size)), list(range(9))) for size in range(10)] == list(range(10))
