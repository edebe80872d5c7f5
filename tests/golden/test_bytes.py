"""Every byte of every golden conversation is as it was when it was last read and approved."""

import pytest
from tests.golden.cases import EXPECTED, OUTPUTS, Case, every_case, run_case


@pytest.mark.parametrize("case", list(every_case()), ids=str)
@pytest.mark.parametrize("ending", list(OUTPUTS))
def test_replay_prints_the_same_bytes_as_ever(case: Case, ending: str) -> None:
    assert run_case(case, OUTPUTS[ending]).encode() == case.expected(ending).read_bytes()


def test_every_golden_file_belongs_to_a_case() -> None:
    belonging = {case.expected(ending) for case in every_case() for ending in OUTPUTS}
    assert set(EXPECTED.iterdir()) == belonging
