"""What an examination finds in generated logs: the planted cause first, and nothing in clean logs."""

import io
import json
from collections.abc import Iterable

import pytest
from tests.planted_logs import CAUSES, WIRES, fits, make_log

from lamella.doctor.analysis import Diagnosis, Examination
from lamella.doctor.log_files import LogReader
from lamella.wiring import read_services
from lamella.wiring.doctor import build_knowledge

# The thresholds were chosen on seeds below 100.
SEEDS = (101, 102)
KNOWLEDGE = build_knowledge(read_services())
CASES = [
    (cause, wire, usage)
    for usage in (True, False)
    for wire in WIRES
    for cause in (None, *CAUSES)
    if cause is None or fits(cause, wire, usage=usage)
]


def examine(lines: Iterable[str]) -> Diagnosis:
    reader, examination = LogReader(), Examination(KNOWLEDGE)
    for call in reader.read_stream(io.BytesIO("\n".join(lines).encode()), name="a log"):
        examination.add(call)
    assert reader.unread == 0
    return examination.finish()


@pytest.mark.parametrize(("cause", "wire", "usage"), CASES)
def test_planted_cause_is_found_first_and_clean_logs_have_none(cause: str | None, wire: str, *, usage: bool) -> None:
    for seed in SEEDS:
        for conversations in (1, 3):
            lines = make_log(seed, cause, wire, usage=usage, conversations=conversations, interleaved=True)
            diagnosis = examine(lines)
            found = [one.cause.value for one in diagnosis.findings]
            assert found[:1] == ([] if cause is None else [cause]), (seed, conversations, found)
            assert diagnosis.conversation_count == conversations


def test_several_causes_in_one_log_are_all_found() -> None:
    causes = ("time_in_prompt", "tools_reordered", "expired", "document_repeated")
    lines = [line for cause in causes for line in make_log(101, cause, "chat")]
    found = {one.cause.value for one in examine(lines).findings}
    assert found >= set(causes)


def test_findings_are_sorted_by_money_and_name_their_requests() -> None:
    diagnosis = examine([*make_log(101, "time_in_prompt", "chat"), *make_log(101, "tool_result_cleared", "chat")])
    costs = [one.cost or 0 for one in diagnosis.findings]
    assert costs == sorted(costs, reverse=True)
    first = diagnosis.findings[0]
    assert first.cause == "time_in_prompt"
    assert first.requests[0] == 2
    assert "time" in first.before.lower()
    assert first.before != first.after


def test_reachable_share_is_never_below_the_reached_share() -> None:
    for cause, wire, usage in CASES[::5]:
        diagnosis = examine(make_log(103, cause, wire, usage=usage))
        assert 0 <= diagnosis.reached <= diagnosis.reachable <= diagnosis.input


def test_cost_is_that_of_the_reported_tokens() -> None:
    line = {
        "request": {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]},
        "response": {
            "choices": [{"message": {"role": "assistant", "content": "Hi"}}],
            "usage": {
                "prompt_tokens": 1_000_000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 500_000}
            },
        },
    }  # fmt: skip
    spent = examine([json.dumps(line)]).spent
    # 1.25 dollars for a million tokens, and a tenth of it from the cache.
    assert float(spent) == pytest.approx(0.6875)


def test_conversations_with_the_same_beginning_are_told_apart() -> None:
    opening = {"role": "user", "content": "Where is the office?"}
    lines = []
    for answer in ("In the north.", "In the south."):
        for messages in (
            [opening],
            [opening, {"role": "assistant", "content": answer}, {"role": "user", "content": "Thank you."}],
        ):
            lines.append(json.dumps({"request": {"model": "gpt-5", "messages": messages}}))
    assert examine([lines[0], lines[2], lines[3], lines[1]]).conversation_count == 2


def test_old_conversations_are_forgotten_but_counted() -> None:
    lines = [
        json.dumps(
            {"request": {"model": "gpt-5", "messages": [{"role": "user", "content": f"{number} " + "long " * 200_000}]}}
        )
        for number in range(100)
    ]
    examination = Examination(KNOWLEDGE)
    reader = LogReader()
    for call in reader.read_stream(io.BytesIO("\n".join(lines).encode()), name="a log"):
        examination.add(call)
    assert examination.remembered_chars <= 64_000_000
    assert examination.finish().conversation_count == 100
