"""Hash chains, signatures and labels of requests."""

import pytest

from lamella.server.compat.identity import find_conversation_label, find_signatures, has_breakpoints, hash_each_prefix

HI, A, MORE = ({"role": "user", "content": text} for text in ("hi", "a", "more"))
HEAD = {"system": "Be terse.", "tools": None}


def test_equal_beginnings_share_hashes_up_to_divergence() -> None:
    one, two = hash_each_prefix("", "chat", HEAD, [HI, A, MORE]), hash_each_prefix("", "chat", HEAD, [HI, MORE, MORE])
    assert one[:2] == two[:2]
    assert not set(one[2:]) & set(two[2:])


@pytest.mark.parametrize(
    ("owner", "wire", "head"),
    [("ana", "chat", HEAD), ("", "messages", HEAD), ("", "chat", {**HEAD, "system": "Be brief."})],
)
def test_owner_wire_and_head_are_part_of_every_hash(owner: str, wire: str, head: dict[str, object]) -> None:
    assert not set(hash_each_prefix("", "chat", HEAD, [HI])) & set(hash_each_prefix(owner, wire, head, [HI]))


def test_moved_breakpoints_and_key_order_change_no_hash() -> None:
    marked = {"content": [{"text": "hi", "cache_control": {"type": "ephemeral"}, "type": "text"}], "role": "user"}
    plain = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert hash_each_prefix("", "messages", HEAD, [marked]) == hash_each_prefix("", "messages", HEAD, [plain])
    assert has_breakpoints(marked)
    assert not has_breakpoints(plain)


def test_call_argument_named_like_breakpoint_is_not_ignored() -> None:
    def call(value: int) -> dict[str, object]:
        return {"role": "assistant", "content": [{"type": "tool_use", "input": {"cache_control": value}}]}

    assert hash_each_prefix("", "messages", HEAD, [call(1)]) != hash_each_prefix("", "messages", HEAD, [call(2)])
    assert not has_breakpoints(call(1))


def test_half_of_a_surrogate_pair_is_hashed() -> None:
    assert len(hash_each_prefix("", "chat", HEAD, [{"role": "user", "content": "\ud83d"}])) == 2


def test_signatures_of_all_kinds_are_found() -> None:
    messages = [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "d"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "e"},
        {"role": "assistant", "tool_calls": [{"extra_content": {"google": {"thought_signature": "t"}}}]},
        {"role": "user", "content": "signature"},
    ]
    assert find_signatures(messages) == [(0, "s"), (1, "d"), (2, "e"), (3, "t")]


@pytest.mark.parametrize(
    ("headers", "body", "label"),
    [
        ({"x-lamella-conversation": "own", "session-id": "s"}, {}, "own"),
        ({"x-claude-code-session-id": "c"}, {}, "c"),
        ({"x-claude-code-session-id": "c", "x-claude-code-agent-id": "a"}, {}, "c/a"),
        ({"thread-id": "t", "session-id": "s"}, {}, "t"),
        ({}, {"prompt_cache_key": "k"}, "k"),
        ({}, {"metadata": {"user_id": '{"device_id":"d","session_id":"m"}'}}, "m"),
        ({}, {"metadata": {"user_id": "someone"}}, None),
        ({}, {"metadata": {"user_id": "{"}}, None),
        ({}, {}, None),
    ],
)
def test_label_comes_from_first_known_source(
    headers: dict[str, str], body: dict[str, object], label: str | None
) -> None:
    assert find_conversation_label(headers, body) == label
