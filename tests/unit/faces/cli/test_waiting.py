"""Waiting: what is slow says so once, on stderr; what is quick says nothing."""

import time

import pytest

from lamella.faces.cli.waiting import told_if_slow


def test_what_takes_longer_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with told_if_slow("Planning", after=0.01):
        time.sleep(0.2)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Planning …\n")


def test_what_is_quick_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with told_if_slow("Planning", after=0.2):
        pass
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_an_error_on_the_way_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="bad"), told_if_slow("Planning", after=0.2):
        raise ValueError("bad")
    assert capsys.readouterr().err == ""
