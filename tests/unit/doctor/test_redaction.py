"""A redacted log has no word of the original and gives the same findings."""

import io
import json
import re
from collections.abc import Iterable

import msgspec
import pytest
from tests.planted_logs import CAUSES, WIRES, fits, make_log

from lamella.doctor.analysis import Diagnosis, Examination, normalize_model
from lamella.doctor.log_files import LogReader
from lamella.doctor.redaction import Redactor
from lamella.wiring import read_services
from lamella.wiring.doctor import build_knowledge

SERVICES = read_services()
KNOWLEDGE = build_knowledge(SERVICES)
CASES = [(cause, wire) for wire in WIRES for cause in CAUSES if fits(cause, wire, usage=True)]


def examine(lines: Iterable[str]) -> Diagnosis:
    examination = Examination(KNOWLEDGE)
    for call in LogReader().read_stream(io.BytesIO("\n".join(lines).encode()), name="a log"):
        examination.add(call)
    return examination.finish()


def redact(lines: Iterable[str]) -> list[str]:
    redactor = Redactor(b"secret" * 5)
    calls = LogReader().read_stream(io.BytesIO("\n".join(lines).encode()), name="a log")
    return [
        msgspec.json.encode(
            redactor.redact(call, SERVICES.counter.get_tokenizer(normalize_model(call) or None))
        ).decode()
        for call in calls
    ]


@pytest.mark.parametrize(("cause", "wire"), CASES)
def test_redacted_log_keeps_every_finding_with_its_price(cause: str, wire: str) -> None:
    for usage in (True, False):
        if not fits(cause, wire, usage=usage):
            continue
        lines = make_log(21, cause, wire, usage=usage, conversations=2, interleaved=True)
        before, after = examine(lines), examine(redact(lines))
        expected = [(one.cause, one.requests, one.tokens, one.cost) for one in before.findings]
        assert [(one.cause, one.requests, one.tokens, one.cost) for one in after.findings] == expected
        assert (after.input, after.reached, after.spent) == (before.input, before.reached, before.spent)


def test_redacted_log_has_no_long_word_of_the_original() -> None:
    for wire in WIRES:
        lines = make_log(21, "document_repeated", wire)
        texts = " ".join(json.dumps(json.loads(line)["request"]) for line in lines)
        made = " ".join(redact(lines)).lower()
        long_words = set(re.findall(r"[a-z]{9,}", texts.lower())) - {"properties", "ephemeral", "cache_control"}
        known = {
            "description",
            "parameters",
            "function_call_output",
            "tool_use_id",
            "instructions",
            "assistant",
            "arguments",
        }
        assert [word for word in long_words if re.search(rf"\b{word}\b", made) and word not in known] == []


def test_numbers_and_short_words_stay_different() -> None:
    redactor = Redactor(b"secret" * 5)
    made = [redactor.redact_text(str(number)) for number in range(10, 100)]
    assert len(set(made)) == 90
    assert redactor.redact_text("At 2026-11-02 09:03 it was calm.").startswith(redactor.redact_text("At"))
    assert "2026-11-02 09:03" in redactor.redact_text("At 2026-11-02 09:03 it was calm.")
