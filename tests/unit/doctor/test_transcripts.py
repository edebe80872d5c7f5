"""Logged conversations become transcripts: turns, tool rounds, and repeated texts as notes."""

import io
import json
from decimal import Decimal
from pathlib import Path

import pytest
from tests.planted_logs import WIRES, make_log

from lamella.doctor.analysis import Examination
from lamella.doctor.log_files import LogReader
from lamella.doctor.transcripts import build_transcript
from lamella.wiring import read_services
from lamella.wiring.doctor import build_knowledge, examine_logs

SERVICES = read_services()


@pytest.mark.parametrize("wire", WIRES)
def test_turns_rounds_and_documents_are_those_of_the_log(wire: str) -> None:
    lines = make_log(41, "document_repeated", wire)
    examination = Examination(build_knowledge(SERVICES), records=True)
    for call in LogReader().read_stream(io.BytesIO("\n".join(lines).encode()), name="a log"):
        examination.add(call)
    transcript, documents = build_transcript(examination.recorded[1], 1)
    turns = transcript["turns"]
    rounds = [one for turn in turns for one in turn.get("rounds", ())]
    # A request with tool results follows each round, so the requests are the turns and the rounds.
    assert len(turns) + len(rounds) == len(lines)
    assert rounds
    assert all(one["calls"][0]["id"] == one["results"][0]["call"] for one in rounds)
    assert all(turn["reply"] for turn in turns)
    assert [len(one) for one in documents] == [1] * len(turns)
    assert {one.path for own in documents for one in own} == {"document-1.md"}
    assert not any(documents[0][0].text in turn["user"] for turn in turns)


def test_replay_costs_less_than_glued_documents_and_keeps_them_readable(tmp_path: Path) -> None:
    for wire in WIRES:
        path = tmp_path / f"{wire}.jsonl"
        path.write_text("\n".join(make_log(42, "document_repeated", wire, conversations=2)), encoding="utf-8")
        replay = examine_logs([str(path)], SERVICES, replays=True).replay
        assert replay is not None
        assert replay.left_out == {}
        assert len(replay.conversations) == 2
        for one in replay.conversations:
            assert one.auto < one.logged
            assert one.readable == one.documents > 0


def test_replay_of_a_clean_log_costs_about_the_same(tmp_path: Path) -> None:
    for wire in WIRES:
        path = tmp_path / f"{wire}.jsonl"
        path.write_text("\n".join(make_log(43, None, wire)), encoding="utf-8")
        replay = examine_logs([str(path)], SERVICES, replays=True).replay
        assert replay is not None
        (one,) = replay.conversations
        assert Decimal("0.7") < one.auto / one.logged < Decimal("1.1")


def test_conversations_that_cannot_be_replayed_are_counted_with_the_reason(tmp_path: Path) -> None:
    unknown = {"request": {"model": "our-own", "messages": [{"role": "user", "content": "Hello"}]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(unknown), encoding="utf-8")
    names = [str(tmp_path / "a.jsonl"), "tests/clients/recorded_sessions/codex.jsonl"]
    replay = examine_logs(names, SERVICES, replays=True).replay
    assert replay is not None
    assert replay.left_out == {"the model has no known price": 1, "the log has not the whole prompt": 1}
