"""Conversations whose placeholders named the recall tool are shown and continued byte for byte as they were sent.

Each archive was written by an earlier version, with a digest of each request that it sent: compactions, cut and cleared
tool results, lists of handles, hidden turns. They cannot be made again by this version, so no command regenerates these
files.
"""

import json
from hashlib import sha256
from pathlib import Path

import pytest

import lamella
from lamella import Message
from lamella.conversation.turn import RequestStatus

HERE = Path(__file__).parent / "placeholders"
STORED = sorted(HERE.glob("*.md"))


def digest(messages: tuple[Message, ...]) -> str:
    sent = [[message.role.value, message.text] for message in messages]
    return sha256(json.dumps(sent, ensure_ascii=False).encode()).hexdigest()


@pytest.mark.parametrize("archive", STORED, ids=lambda path: path.stem)
def test_requests_of_older_versions_are_shown_as_sent(archive: Path) -> None:
    engine = lamella.open("sqlite://", summarizer="off")
    conversation, _, _ = engine.import_archive(archive)
    shown = list(conversation.replay())
    assert [digest(turn.messages) for turn in shown] == json.loads(archive.with_suffix(".json").read_text("utf-8"))
    # Without a model's answer no hash of the last request of a turn is stored.
    checked = {turn.check.status for turn in shown if turn.check is not None}
    assert checked == {RequestStatus.VERIFIED, RequestStatus.UNVERIFIED}
    texts = [message.text for turn in shown for message in turn.messages]
    assert any("recall turn" in text for text in texts)
    copy = engine.fork(conversation, conversation.head, "copy")
    assert [turn.messages for turn in copy.replay()] == [turn.messages for turn in shown]


def test_prefix_of_older_conversation_stays() -> None:
    engine = lamella.open("sqlite://", summarizer="off")
    conversation, _, _ = engine.import_archive(HERE / "full.auto.md")
    before = list(conversation.replay())[-1]
    now = engine.chat(conversation.name, layout="auto", window=12_000, tool_output=600).ask("And now?")
    assert now.messages[: len(before.messages)] == before.messages
