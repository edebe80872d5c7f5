"""Progress: a slow task draws a line on a terminal; a quick one and a file get none."""

import re
import time
from contextlib import redirect_stderr
from io import StringIO

import pytest

from lamella.cli.output import show_if_slow, with_progress


class Screen(StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def fail_slowly() -> None:
    with show_if_slow("Planning", delay=0.01):
        time.sleep(0.2)
        raise ValueError("bad")


def test_progress_line_is_cleared_before_error() -> None:
    with redirect_stderr(Screen()) as screen, pytest.raises(ValueError, match="bad"):
        fail_slowly()
    assert "Planning" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")


def test_terminal_progress_is_drawn_and_cleared() -> None:
    with redirect_stderr(Screen()) as screen, show_if_slow("Exporting", delay=0.01) as waiting:
        waiting.set_count(3, 1_200)
        time.sleep(0.2)
        with waiting.hidden():
            screen.write("one.md\n")
    drawn = r"(\r\x1b\[2KExporting … 3 of 1,200 \(\d+ s\))+\r\x1b\[2Kone\.md\n"
    assert re.fullmatch(drawn, screen.getvalue())


def test_quick_task_prints_no_progress() -> None:
    with redirect_stderr(Screen()) as screen:
        assert list(with_progress("abc", "Replaying", total=3)) == ["a", "b", "c"]
    assert screen.getvalue() == ""


def test_progress_is_drawn_on_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    with show_if_slow("Exporting", delay=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
