"""Consent: only a yes is one."""

import asyncio

import pytest

from lamella.adapters.tools.consent import seek_yes
from lamella.errors import WriteRefusedError
from lamella.holdings import NoteChange

CHANGE = NoteChange(path="a.md", before=None, after="x\n", diff="")


@pytest.mark.parametrize("answer", [False, None, 1, "yes"])
def test_whatever_is_no_yes_is_a_no(answer: object) -> None:
    with pytest.raises(WriteRefusedError, match="said no"):
        asyncio.run(seek_yes(CHANGE, lambda _change: answer))  # type: ignore[arg-type, return-value]


def test_a_yes_goes_on_and_nobody_is_no_yes() -> None:
    asyncio.run(seek_yes(CHANGE, lambda _change: True))
    with pytest.raises(WriteRefusedError, match="nobody can be asked"):
        asyncio.run(seek_yes(CHANGE, None))
