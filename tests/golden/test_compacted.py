"""Conversations that were compacted by the first two chains send what they sent then, byte for byte.

Each archive was written, and each request recorded, by an earlier version: plain and summarised ones before the chain
removed replies before questions, the others before it had a digest. They cannot be made again by this version, so no
command regenerates these files. In ``rules`` the last compaction was never sent, so its placeholders have today's
wording.
"""

import json
from pathlib import Path

import pytest

import lamella

HERE = Path(__file__).parent / "compacted"
STORED = sorted(HERE.glob("*.md"))


@pytest.mark.parametrize("archive", STORED, ids=lambda path: path.stem)
def test_receipts_of_older_chains_remove_the_same(archive: Path) -> None:
    engine = lamella.open("sqlite://", summarizer="off")
    conversation, _, _ = engine.import_archive(archive)
    turn = engine.chat(conversation.name, layout=archive.stem.partition(".")[2], window=4_000, reserve=200).ask(
        "And now?"
    )
    sent = [[message.role.value, message.text] for message in turn.messages]
    assert sent == json.loads(archive.with_suffix(".json").read_text(encoding="utf-8"))
    assert turn.compaction is None


def test_older_receipts_include_every_step() -> None:
    engine = lamella.open("sqlite://", summarizer="off")
    receipts = [receipt for archive in STORED for receipt in engine.import_archive(archive)[0].receipts()]
    assert {receipt.chain_version for receipt in receipts} == {1, 2}
    steps = {step.name.value for receipt in receipts for step in receipt.steps}
    assert steps == {"chitchat", "preview", "handle", "tool_results", "summary", "expendable", "replies", "rules"}
