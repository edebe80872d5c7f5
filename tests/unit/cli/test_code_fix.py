"""``cli.code_fix``: changes of answers that were cut off, and the user's check."""

from pathlib import Path

import pytest

from lamella.cli.code_fix import ChangeOffer, run_check
from lamella.errors import UsageError, WriteDeniedError

ANSWER = "a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMELLA_NOTE_BACKUPS", str(tmp_path / "backups"))
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/a.py").write_text("x = 1\n")
    return tmp_path / "repo"


@pytest.mark.parametrize(("is_complete", "text"), [(True, "x = 2\n"), (False, "x = 1\n")])
def test_change_of_answer_that_was_cut_off_is_refused(folder: Path, *, is_complete: bool, text: str) -> None:
    offer = ChangeOffer(folder=folder, check=None, applies_without_asking=True)
    offer.apply_if_confirmed(ANSWER, is_complete=is_complete, asks=True)
    if is_complete:
        offer.raise_if_unsuccessful()
    else:
        with pytest.raises(WriteDeniedError, match="cut off"):
            offer.raise_if_unsuccessful()
    assert (folder / "a.py").read_text() == text


def test_check_gives_its_exit_code_and_end_of_its_output() -> None:
    result = run_check("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.output) == (3, "out\nerr\n")
    long = run_check("head -c 300000 /dev/zero | tr '\\0' 'x'; echo end")
    assert (len(long.output), long.output[-5:]) == (100_000, "xend\n")
    with pytest.raises(UsageError, match="has no command"):
        run_check(" ")
