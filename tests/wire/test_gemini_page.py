"""The page's example of caches of their own, run against a server: what it says about them is what happens."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.console import blocks
from tests.wire.gemini_server import KEY, gemini_server

from lamella import Note

PAGE = Path("docs/providers.md")


def load_example() -> dict[str, Any]:
    """The names that the page's blocks leave behind, up to the example."""
    names: dict[str, Any] = {}
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.language == "python":
            exec(block.body, names)
        if "study" in names:
            return names
    pytest.fail("the page has no such example")


def test_the_pages_caches_are_made_read_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    study = load_example()["study"]
    book = Note(path="book.md", text="A long book about tides. " * 2_000)
    with gemini_server() as server:
        asyncio.run(study(KEY, server.url, book))
    calls = [call.method for call in server.calls if "cachedContents" in call.path]
    sent = [call.body for call in server.calls if "streamGenerateContent" in call.path]
    assert calls == ["POST", "DELETE"]
    assert server.stored == {}
    # The first request brings the book in its message; from the second on it is in the library, which is stored.
    assert ["cachedContent" in body for body in sent] == [False, True, True]
    assert "Certainly." in capsys.readouterr().out
