"""Every byte of every golden conversation is as it was when it was last read and approved."""

import pytest
from tests.golden.cases import CONVERSATIONS, EXPECTED, OUTPUTS, Case, every_case, naive_file, run_case, run_naive


@pytest.mark.parametrize("case", list(every_case()), ids=str)
@pytest.mark.parametrize("ending", list(OUTPUTS))
def test_replay_matches_golden_bytes(case: Case, ending: str) -> None:
    assert run_case(case, OUTPUTS[ending]).encode() == case.expected(ending).read_bytes()


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_naive_requests_match_golden_files(conversation: str) -> None:
    assert run_naive(conversation).encode() == naive_file(conversation).read_bytes()


def test_every_golden_file_belongs_to_a_case() -> None:
    belonging = {case.expected(ending) for case in every_case() for ending in OUTPUTS}
    assert set(EXPECTED.iterdir()) == belonging | {naive_file(conversation) for conversation in CONVERSATIONS}
