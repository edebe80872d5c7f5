"""Fixtures of the journeys: a home folder of their own, and scripted models."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wire.openai_caching import KEY


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An empty home, one key for servers of one's own, nothing of whoever runs the tests."""
    folders = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG")}
    kept = {"HOME": str(tmp_path), "LAMELLA_CONFIG": os.devnull, "LAMELLA_API_KEY": KEY}
    kept["LAMELLA_MEMORY_FOLDER"] = str(tmp_path / "memory")
    return {**kept, "ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", **folders}


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """The name of a model that says these replies."""

    def write(*replies: object) -> str:
        file = tmp_path / "replies.json"
        file.write_text(json.dumps(replies), encoding="utf-8")
        return f"scripted:{file}"

    return write
