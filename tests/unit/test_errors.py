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


def test_budget_error_has_numbers_and_names_as_text_and_values() -> None:
    error = ContextBudgetExceededError(needed=12_345, hard=9_500, limit=10_000, protected=["a.md (9,000 tokens)"])
    assert str(error) == "The request needs 12,345 tokens; at most 9,500 of the 10,000 that fit may be used."
    assert "a.md (9,000 tokens)" in error.hint
    assert (error.needed, error.hard, error.limit) == (12_345, 9_500, 10_000)


def test_invariant_error_reports_a_bug() -> None:
    error = InvariantViolatedError(invariant="true_hashes", findings=["one", "two"])
    assert str(error) == "The envelope breaks the law 'true_hashes': one; two."
    assert "bug" in error.hint


def test_install_hints_name_existing_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    told = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    asked = set(
        re.findall(r'install_hint\("(\w+)"\)|SdkPackage\(.*extra="(\w+)"|FileFormat\.\w+: \(".+", "(\w+)"\)', told)
    )
    found = {name for pair in asked for name in pair if name}
    if 'PAPER_EXTRA = "paper"' in told:
        found.add("paper")
    # Who uses one of these has installed the framework, or the module itself cannot be imported.
    frameworks = {"langchain", "openai-agents", "pydantic-ai"}
    assert found == set(extras) - frameworks
    assert install_hint("local").endswith('pip install ".[local]"')
    assert "lamella[" not in told
