"""Lines of a server's output are split within limits, however they arrive."""

import pytest

from lamella.providers.connection import ResponseLimits
from lamella.tools.mcp_stdio import MessageSplitter

LIMITS = ResponseLimits(max_event_bytes=10, max_stream_bytes=30)


def test_lines_are_joined_from_parts() -> None:
    splitter = MessageSplitter(LIMITS)
    assert [splitter.feed(part) for part in (b"ab", b"c\nd", b"\n\ne")] == [[], [b"abc"], [b"d", b""]]


def test_message_above_the_limit_is_refused() -> None:
    splitter = MessageSplitter(LIMITS)
    splitter.feed(b"x" * 10)
    with pytest.raises(ValueError, match="a message of more than 10 bytes"):
        splitter.feed(b"x")


def test_messages_after_one_request_have_a_limit_together() -> None:
    splitter = MessageSplitter(LIMITS)
    for _ in range(3):
        splitter.feed(b"123456789\n")
    splitter.reset_request_limit()
    splitter.feed(b"123456789\n")
    splitter.feed(b"123456789\n")
    with pytest.raises(ValueError, match="more than 30 bytes after one request"):
        splitter.feed(b"123456789\n1")
