"""Consent: only a yes is one."""

import asyncio

import pytest

from lamella.errors import WriteDeniedError
from lamella.ports import FileChange
from lamella.tools.schema import require_consent

CHANGE = FileChange(path="a.md", before=None, after="x\n", diff="")


@pytest.mark.parametrize("answer", [False, None, 1, "yes"])
def test_any_answer_but_true_is_denied(answer: object) -> None:
    with pytest.raises(WriteDeniedError, match="said no"):
        asyncio.run(require_consent(CHANGE, lambda _change: answer))  # type: ignore[arg-type, return-value]


def test_true_is_consent_and_missing_function_is_denied() -> None:
    asyncio.run(require_consent(CHANGE, lambda _change: True))
    with pytest.raises(WriteDeniedError, match="nobody can be asked"):
        asyncio.run(require_consent(CHANGE, None))
