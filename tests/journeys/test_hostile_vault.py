"""A vault that was made to do harm: nothing leaves it, nothing hangs, and what can be read is read."""

import json
import os
from pathlib import Path
from time import process_time

import pytest
from tests.journeys.running import Ran, one_turn, replay

SECRET = "what no one may read"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    (tmp_path / "secret.md").write_text(SECRET, encoding="utf-8")
    (root / "good.md").write_text("good #wanted", encoding="utf-8")
    return root


def attach(vault: Path, kind: str, name: str) -> Ran:
    given = {"kind": kind, "tag" if kind == "tag" else "path": name}
    return replay(vault.parent, {**one_turn(attach=[given]), "vault": "vault"})


def text(ran: Ran) -> str:
    assert ran.exit == 0, ran.err
    found = json.loads(ran.out)["turns"][0]["messages"][0]["content"]
    assert isinstance(found, str)
    return found


HOSTILE = {
    "embeds of each other without end": {f"n{n}.md": f"![[n{(n + 1) % 9}]] ![[n{(n + 2) % 9}]]" for n in range(9)},
    "ten thousand embeds": {"n0.md": "".join(f"![[n{n % 50}#H{n}]]\n![[gone {n}]]\n" for n in range(5_000))}
    | {f"n{n}.md": "# H\n![[n0]]" for n in range(1, 50)},
    "embeds that double at each step": {f"n{n}.md": f"![[n{n + 1}#A]]\n![[n{n + 1}#B]]\n# A\n# B\n" for n in range(40)},
    "links out of the vault": {
        "n0.md": "![[../secret]] ![](../secret.md) ![[/secret]] ![[link]] ![[loop]] [[../secret]]"
    },
    "front matter without end": {"n0.md": "---\n" + "a: &a [*a]\n" * 50_000},
    "front matter as a bomb": {"n0.md": "---\na: " + "[" * 90_000 + "\n---\n"},
    "brackets without end": {"n0.md": "![[" * 50_000 + "]]" * 50_000 + "[[" * 50_000},
    "zero bytes": {"n0.md": "\x00" * 1_000 + "![[good]]\x00"},
    "a rule without end": {"n0.md": "N", ".lamellaignore": "*a" * 50 + "b\n"},
    "settings that are none": {"n0.md": "N", ".obsidian/app.json": '{"userIgnoreFilters": ["/(a|a)*$/", 1, null]}'},
}


@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE)
def test_hostile_note_is_read_in_bounded_time_and_size(vault: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        (vault / path).parent.mkdir(exist_ok=True)
        (vault / path).write_text(content, encoding="utf-8")
    (vault / "link.md").symlink_to("../secret.md")
    (vault / "loop.md").symlink_to("loop.md")
    began = process_time()
    for kind, name in (("note", "n0.md"), ("active_note", "n0.md"), ("tag", "wanted")):
        ran = attach(vault, kind, name)
        assert SECRET not in ran.out
        if kind == "tag":
            assert "good #wanted" in text(ran)
    assert process_time() - began < 20


def test_bad_notes_are_reported_once_and_others_are_read(vault: Path) -> None:
    (vault / "latin.md").write_bytes("café #wanted".encode("latin-1"))
    (vault / "wide.md").write_bytes("wide #wanted".encode("utf-16"))
    (vault / "zero.md").write_bytes(b"\x00\x00 zero #wanted")
    (vault / "gone.md").symlink_to("nowhere.md")
    os.mkfifo(vault / "pipe.md")
    (vault / os.fsdecode(b"n\xe9.md")).write_text("#wanted", encoding="utf-8")
    folder = attach(vault, "folder", ".")
    assert "good #wanted" in text(folder)
    assert "zero #wanted" in text(folder)
    assert sorted(folder.warnings()) == [
        "Left out: The name of the file b'n\\xe9.md' is not UTF-8.",
        "Left out: gone.md is a link to nothing.",
        "Left out: latin.md is not UTF-8: byte 4 is 0xe9.",
        "Left out: pipe.md is not a file.",
        "Left out: wide.md is not UTF-8: byte 1 is 0xff.",
    ]
    tagged = attach(vault, "tag", "wanted")
    assert "good #wanted" in text(tagged)
    assert len(tagged.warnings()) == len(set(tagged.warnings())) == 5


def test_broken_canvas_is_refused_with_position(vault: Path) -> None:
    (vault / "c.canvas").write_text('{"nodes": [', encoding="utf-8")
    ran = attach(vault, "canvas", "c.canvas")
    assert ran.exit == 2
    assert "c.canvas is not a canvas: line 1, column 12" in ran.err
