"""Messages pinned at the terminal: no compaction takes them out, until they are let go."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.journeys.running import Ran, run, spawn

SECRET = "The boat is called Luna."


def chat(url: str, *lines: str, script: Path, environment: Mapping[str, str]) -> Ran:
    typed = "\n".join(lines).encode()
    return spawn(
        "chat", "harbour", "--model", f"scripted:{script}", "--store", url, stdin=typed, environment=environment
    )


def test_pinned_message_is_kept_until_unpinned(tmp_path: Path, home: Mapping[str, str]) -> None:
    url, script = f"sqlite:///{tmp_path / 'chats.db'}", tmp_path / "script.json"
    script.write_text(json.dumps(["Yes. " + "word " * 60] * 12), encoding="utf-8")
    questions = [f"Question {number}? " + "word " * 60 for number in range(6)]
    ran = chat(url, SECRET, *questions, "/pin turn:1", "Remember it.", "And?", script=script, environment=home)
    assert ran.exit == 0, ran.err
    assert "turn:1 is pinned from the next message on" in ran.out
    assert run("compact", "harbour", "--to", "0.001", "--store", url).exit == 0
    first = json.loads(run("why", "harbour", _first(url), "--json", "--store", url).out)
    assert (first["in_prompt"], first["why"]) == (True, "It is a pinned message; no compaction removes it.")
    ran = chat(url, "/unpin turn:1", "Let it go.", "And?", script=script, environment=home)
    assert "is no longer pinned" in ran.out
    assert run("compact", "harbour", "--to", "0.0005", "--store", url).exit == 0
    assert not json.loads(run("why", "harbour", _first(url), "--json", "--store", url).out)["in_prompt"]


def _first(url: str) -> str:
    told = json.loads(run("ledger", "harbour", "--json", "--store", url).out)
    return str(told["turns"][0]["message"])
