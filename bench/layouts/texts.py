"""Texts to talk about: real notes with their edits and real talk beside the checkout, or made ones, always the same."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from bench.text import make_text

_NEAR = [folder / "shared" / "data" for folder in Path(__file__).resolve().parents]
_LONGEST_SAID = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Notes by path, each with its versions from the oldest on; talk in pairs; agents' trajectories; tool outputs."""

    real: bool
    notes: dict[str, tuple[str, ...]]
    talk: tuple[tuple[tuple[str, str], ...], ...]
    trajectories: tuple[tuple[str, tuple[dict[str, Any], ...]], ...]
    outputs: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every question with its answer."""
        return [pair for chat in self.talk for pair in chat]


@cache
def load_texts() -> Texts:
    """The texts of this machine."""
    folder = next((near for near in _NEAR if (near / "edits.jsonl").is_file()), None)
    return make_texts() if folder is None else _read(folder)


def _read(folder: Path) -> Texts:
    edits = {one["path"]: tuple(one["versions"]) for one in _lines(folder / "edits.jsonl")}
    vault = folder / "vault"
    notes: dict[str, tuple[str, ...]] = {}
    for file in sorted(vault.rglob("*.md")):
        path = file.relative_to(vault).as_posix()
        versions = next((edits[name] for name in edits if name.endswith(path)), None)
        notes[path] = versions or (file.read_text(encoding="utf-8"),)
    tool_chats = list(_lines(folder / "tool-chats.jsonl"))
    return Texts(
        real=True,
        notes=notes,
        talk=tuple(filter(None, (_pair(one["messages"]) for one in _lines(folder / "plain-chats.jsonl")))),
        trajectories=tuple((one["system"], tuple(one["messages"])) for one in tool_chats),
        outputs=tuple(str(said["content"]) for one in tool_chats for said in one["messages"] if said["role"] == "tool"),
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def _pair(messages: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    pairs = zip(messages[::2], messages[1::2], strict=False)
    return tuple((str(asked["content"])[:_LONGEST_SAID], str(said["content"])[:_LONGEST_SAID]) for asked, said in pairs)


def make_texts() -> Texts:
    """Made ones, for where nothing is beside the checkout."""
    words = Random(16)
    notes = {f"notes/{number:03}.md": _make_versions(words, number) for number in range(150)}
    talk = tuple(
        tuple((make_text(9_000 + 10 * chat + at, 240), make_text(19_000 + 10 * chat + at, 1_200)) for at in range(4))
        for chat in range(150)
    )
    outputs = tuple(make_text(40_000 + number, words.randrange(300, 3_000)) for number in range(200))
    return Texts(real=False, notes=notes, talk=talk, trajectories=_make_trajectories(outputs), outputs=outputs)


def _make_versions(words: Random, number: int) -> tuple[str, ...]:
    lines = make_text(number, int(words.lognormvariate(9.0, 0.8)) + 400).split("\n")
    versions = ["\n".join(lines)]
    for version in range(7):
        at = words.randrange(len(lines))
        lines[at : at + 1 + words.randrange(2)] = [f"In version {version + 2} this line says {words.random():.6f}."]
        versions.append("\n".join(lines))
    return tuple(versions)


def _make_trajectories(outputs: tuple[str, ...]) -> tuple[tuple[str, tuple[dict[str, Any], ...]], ...]:
    made: list[tuple[str, tuple[dict[str, Any], ...]]] = []
    for number in range(20):
        messages: list[dict[str, Any]] = []
        for at in range(6):
            call = {"id": f"c{number}-{at}", "function": {"name": "look_up", "arguments": json.dumps({"page": at})}}
            messages += [
                {"role": "user", "content": make_text(60_000 + 10 * number + at, 200)},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": outputs[10 * number + at]},
                {"role": "assistant", "content": make_text(70_000 + 10 * number + at, 400)},
            ]
        made.append((make_text(80_000, 6_000), tuple(messages)))
    return tuple(made)
