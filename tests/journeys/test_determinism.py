"""The same transcript replays to the same bytes with any hash seed, time zone, locale, folder and interface."""

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pictures import png

# Both layouts in one process, and the first of them twice.
REPLAYS = """
import sys
from lamella.cli import main
sys.exit(max(main(["replay", sys.argv[1], "--json", "--layout", layout]) for layout in sys.argv[2:]))
"""
LAYOUTS = ("library", "in_place", "library")
PICTURE = png(1_024, 768)
NOTES = {
    "İstanbul.md": "---\ntags: [I\u011fd\u0131r, project/\u0131]\n---\n# İ and \u0131\nDotted and dotless: #İstanbul\n",
    "Zebra.md": "# Zebra\nThe last one in ASCII order. #project/Beta\n",
    "ärger.md": "# Ärger\nSorted after z. #project\n",
    "docs/B.md": "second\r\nwith CRLF\r\n",
    "docs/a.md": "\ufefffirst, with a byte order mark",
    "docs/日本.md": "第三 😀\n" + "行\n" * 2_000,
    "open.md": "![[dot.png]]\nThe note that is open.\n",
}
TOOL = {"name": "search", "arguments": {"z": 1, "a": [True, None, 0.1], "ä": "ß"}, "output": "found “it”\n"}
DEFINED = {
    "name": "search",
    "description": "Searches.",
    "parameters": {"type": "object", "properties": {"b": 1, "a": 2}},
}
TURNS = [
    {
        "user": "What is in {docs}? {#project} {[[İstanbul]]}",
        "at": "2026-11-01T01:30:00-05:00",
        "attach": [{"kind": "folder", "path": "docs"}, {"kind": "active_note", "path": "open.md"}],
        "tools": [TOOL],
        "reply": "A lot: „this“ and «that».",
    },
    {
        "user": "And now? {}",
        "at": "2026-11-01T12:04:00+05:30",
        "attach": [
            {"kind": "selected_text", "path": "Zebra.md", "lines": [1, 2], "text": "picked ✓"},
            {"kind": "note", "path": "docs/B.md", "text": "second\nchanged", "policy": "pin"},
            {"kind": "image", "data": b64encode(PICTURE).decode(), "media_type": "image/png"},
            {"kind": "tag", "tag": "#project"},
        ],
        "tool_definitions": [DEFINED],
        "system": {"memory": "Likes tea ☕."},
    },
    {
        "user": "Away with it.",
        "drop": ["docs/日本.md", "nowhere.md"],
        "model": "openai:gpt-5",
        "reply": "\u202eok\u202c",
    },
    {
        "user": "{activeNote} } {",
        "attach": [{"kind": "unknown", "text": "</content>\x00\u2028"}],
        "tools": [TOOL, TOOL],
    },
]


def write_conversation(folder: Path, order: list[str]) -> Path:
    """A transcript and its vault, whose files are made in the order given."""
    (folder / "vault" / "docs").mkdir(parents=True)
    for name in order:
        (folder / "vault" / name).write_bytes(NOTES[name].encode())
    (folder / "vault" / "dot.png").write_bytes(PICTURE)
    transcript = {
        "lamella": 1,
        "conversation": "größer",
        "model": "anthropic:claude-opus-5-5",
        "system": {"base": "Be brief.", "instructions": "Always: {[[ärger]]}"},
        "vault": "vault",
        "carry_forward": "preview",
        "turns": TURNS,
    }
    (folder / "talk.json").write_text(json.dumps(transcript, ensure_ascii=False), encoding="utf-8")
    return folder


def replay(file: str, environment: Mapping[str, str], *, cwd: Path, layouts: tuple[str, ...] = LAYOUTS) -> bytes:
    """What the command prints, in an environment that holds nothing but what is given here."""
    done = subprocess.run(
        [sys.executable, "-c", REPLAYS, file, *layouts],
        cwd=cwd,
        env={**{name: os.environ.get(name, "") for name in ("PATH", "PYTHONPATH")}, **environment},
        input=(cwd / "talk.json").read_bytes() if file == "-" else b"",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_conversation(tmp_path_factory.mktemp("first"), list(NOTES))


@pytest.fixture(scope="module")
def replayed(folder: Path) -> bytes:
    return replay("talk.json", {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}, cwd=folder)


def _turkish() -> str:
    """Where upper and lower case differ from everywhere else; not every machine has it."""
    found = subprocess.run(["locale", "-a"], capture_output=True, check=False).stdout
    return "tr_TR.UTF-8" if b"tr_TR.utf8" in found else "C.UTF-8"


def split_replays(printed: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Each object that was printed, as its text and as what it says."""
    text, found = printed.decode("utf-8"), []
    while text:
        told, end = json.JSONDecoder().raw_decode(text)
        found.append((text[: end + 1], told))
        text = text[end + 1 :]
    return found


def test_replay_covers_sources_of_nondeterminism(replayed: bytes) -> None:
    text, told = split_replays(replayed)[0]
    first = [segment["id"] for segment in told["turns"][0]["envelope"]["layers"][2]["segments"]]
    assert first[2:6] == ["docs/B.md", "docs/a.md", "docs/日本.md", "open.md"]
    assert {"ärger.md", "Zebra.md", "İstanbul.md"} <= set(first)
    assert all(turn["cost"] is not None for turn in told["turns"])
    assert "größer" in text


def test_second_replay_in_process_gives_same_bytes(replayed: bytes) -> None:
    first, second, again = split_replays(replayed)
    assert [told["layout"] for _, told in (first, second, again)] == list(LAYOUTS)
    assert again == first


@pytest.mark.parametrize("seed", ["1", "4294967295", "random"])
def test_another_hash_seed_gives_the_same_bytes(seed: str, folder: Path, replayed: bytes) -> None:
    assert replay("talk.json", {"PYTHONHASHSEED": seed}, cwd=folder) == replayed


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/St_Johns", ":nowhere"])
def test_another_time_zone_gives_the_same_bytes(zone: str, folder: Path, replayed: bytes) -> None:
    assert replay("talk.json", {"TZ": zone}, cwd=folder) == replayed


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "C", "PYTHONUTF8": "1"},
        {"LC_ALL": _turkish(), "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LANG": "xx_XX.UTF-8", "COLUMNS": "20", "FORCE_COLOR": "1", "TERM": "xterm-256color"},
    ],
    ids=["c", "c-without-utf-8-mode", "c-in-utf-8-mode", "turkish", "latin-1", "unknown-and-coloured"],
)
def test_another_locale_gives_the_same_bytes(environment: dict[str, str], folder: Path, replayed: bytes) -> None:
    assert replay("talk.json", environment, cwd=folder) == replayed


def test_replay_from_other_folder_gives_same_bytes(folder: Path, tmp_path: Path, replayed: bytes) -> None:
    assert replay(str(folder / "talk.json"), {}, cwd=tmp_path) == replayed


def test_replay_from_stdin_gives_same_bytes(folder: Path, replayed: bytes) -> None:
    printed = replay("-", {}, cwd=folder, layouts=LAYOUTS[:1])
    assert replayed.startswith(printed)
    assert len(printed) > len(replayed) // 4


def test_vault_files_created_in_other_order_give_same_bytes(tmp_path: Path, replayed: bytes) -> None:
    copy = write_conversation(tmp_path / "copy", list(reversed(NOTES)))
    assert replay("talk.json", {}, cwd=copy) == replayed
