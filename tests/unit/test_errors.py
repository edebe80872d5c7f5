"""The error tree: each error has a code of its own, a message and a hint."""

import inspect
import re
import tomllib
from pathlib import Path

from lamella import errors
from lamella.errors import ContextBudgetExceededError, InvariantViolatedError, LamellaError, install_hint

ROOT = Path(__file__).parents[2]

CLASSES = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, LamellaError)]


def test_no_two_errors_share_a_code() -> None:
    assert len({one.code for one in CLASSES}) == len(CLASSES)


def test_a_budget_error_has_its_numbers_and_names_in_words_and_as_values() -> None:
    error = ContextBudgetExceededError(needed=12_345, hard=9_500, limit=10_000, protected=["a.md (9,000 tokens)"])
    assert str(error) == "The request needs 12,345 tokens; at most 9,500 of the 10,000 that fit may be used."
    assert "a.md (9,000 tokens)" in error.hint
    assert (error.needed, error.hard, error.limit) == (12_345, 9_500, 10_000)


def test_a_broken_law_says_that_it_is_a_bug() -> None:
    error = InvariantViolatedError(invariant="true_hashes", findings=["one", "two"])
    assert str(error) == "The envelope breaks the law 'true_hashes': one; two."
    assert "bug" in error.hint


def test_what_a_hint_installs_is_an_extra_of_the_clone_and_is_named_by_its_path() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    told = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    asked = set(
        re.findall(r'install_hint\("(\w+)"\)|SdkPackage\(.*extra="(\w+)"|FileFormat\.\w+: \(".+", "(\w+)"\)', told)
    )
    assert {name for pair in asked for name in pair if name} == set(extras)
    assert install_hint("local").endswith('pip install ".[local]"')
    assert "lamella[" not in told
