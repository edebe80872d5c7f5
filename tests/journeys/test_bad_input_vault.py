"""A vault full of traps: nothing outside it is read, nothing in it is left out silently, and nothing hangs."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, one_turn, refusal, replay, spawn
from tests.unit.pictures import png

from lamella.sources.vault import MAX_FILE_BYTES

DEEP = 18
SECRET = "what no one may read"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault beside the transcript, with a folder of secrets beside it."""
    root = tmp_path / "vault"
    for path, text in {
        "vault/a.md": "A",
        "vault/docs/b.md": "B #tagged",
        "vault/docs/same.md": "one of two",
        "vault/notes/same.md": "two of two",
        "vault/.hidden/c.md": "C",
        "outside.md": SECRET,
        "elsewhere/d.md": f"{SECRET} #tagged",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (root / "empty").mkdir()
    return root


def attach(vault: Path, *attached: Mapping[str, object], user: str = "hi") -> Ran:
    return replay(vault.parent, {**one_turn(user=user, attach=list(attached)), "vault": "vault"})


def note(path: str) -> Mapping[str, object]:
    return {"kind": "note", "path": path}


def contents(ran: Ran) -> str:
    assert (ran.exit, ran.err) == (0, ""), ran
    return "".join(message["content"] for turn in json.loads(ran.out)["turns"] for message in turn["messages"])


def layer_ids(ran: Ran, layer: int) -> list[str]:
    return [segment["id"] for segment in json.loads(ran.out)["turns"][0]["envelope"]["layers"][layer]["segments"]]


OUTSIDE = ["../outside.md", "docs/../../outside.md", "/etc/hostname", "..", "link.md", "folder/d.md", "null.md"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_path_outside_vault_is_refused_also_through_link(vault: Path, path: str) -> None:
    (vault / "link.md").symlink_to("../outside.md")
    (vault / "folder").symlink_to("../elsewhere")
    (vault / "null.md").symlink_to("/dev/null")
    for kind in ("note", "folder", "code"):
        ran = attach(vault, {"kind": kind, "path": path})
        assert "is outside the vault" in refusal(ran, code="source_outside")
        assert SECRET not in ran.out


def test_absolute_path_is_refused_even_within_vault(vault: Path) -> None:
    assert "is outside the vault" in refusal(attach(vault, note(str(vault / "a.md"))), code="source_outside")


def test_image_outside_the_vault_is_refused(vault: Path) -> None:
    (vault.parent / "x.png").write_bytes(png(2, 2))
    ran = attach(vault, {"kind": "image", "path": "../x.png"})
    assert "is outside the vault" in refusal(ran, code="source_outside")


def test_vault_that_is_itself_a_link_is_a_vault(vault: Path) -> None:
    (vault.parent / "linked").symlink_to(vault)
    transcript = one_turn(attach=[note("a.md"), note("docs/b.md")])
    direct = replay(vault.parent, {**transcript, "vault": "vault"})
    assert replay(vault.parent, {**transcript, "vault": "linked"}).out == direct.out


MISSING = {
    "a file that is not there": ("c.md", "There is no file c.md in the vault"),
    "a file below a file": ("a.md/b.md", "There is no file a.md/b.md"),
    "a folder": ("docs", "docs is not a file"),
    "a folder named like a note": ("folder.md", "folder.md is not a file"),
    "a link to nothing": ("dangling.md", "dangling.md is a link to nothing"),
    "a link to itself": ("loop.md", "a link to"),
    "two links to each other": ("there.md", "a link to"),
    "a socket": ("socket.md", "socket.md is not a file"),
    "a zero character": ("a\0b", r"'a\x00b' is not a usable path"),
    "white space": (" ", "There is no file"),
    "a home": ("~/a.md", "There is no file ~/a.md"),
    "backslashes": ("docs\\b.md", "There is no file"),
    "another case": ("A.md", "There is no file A.md"),
    "a line break": ("a\nb.md", r"There is no file a\nb.md in the vault"),
    "an escape sequence": ("\x1b[2J.md", r"There is no file \x1b[2J.md"),
    "the other direction": ("\u202edm.a", r"There is no file \u202edm.a"),
    "a hundred thousand characters": ("x" * 100_000, "characters …"),
    "a hundred thousand folders": ("x/" * 50_000 + "a.md", "characters …"),
}


@pytest.mark.parametrize(("path", "what"), MISSING.values(), ids=MISSING)
def test_path_that_is_not_a_file_is_reported_on_one_line(
    vault: Path, monkeypatch: pytest.MonkeyPatch, path: str, what: str
) -> None:
    (vault / "folder.md").mkdir()
    (vault / "dangling.md").symlink_to("nothing.md")
    (vault / "loop.md").symlink_to("loop.md")
    (vault / "here.md").symlink_to("there.md")
    (vault / "there.md").symlink_to("here.md")
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(vault)  # an address has to be short
    listener.bind("socket.md")
    listener.close()
    message = refusal(attach(vault, note(path)), code="source_missing")
    assert message.startswith("In turn 1: ")
    assert what in message
    assert len(message) < 3_000


@pytest.mark.parametrize("kind", ["note", "image"])
def test_pipe_that_no_one_writes_to_is_refused_and_not_waited_for(vault: Path, kind: str) -> None:
    for name in ("pipe.md", "pipe.png"):
        os.mkfifo(vault / "docs" / name)
    ran = attach_spawned(vault, {"kind": kind, "path": "docs/pipe.png" if kind == "image" else "docs/pipe.md"})
    assert "is not a file" in refusal(ran, code="source_missing")


def test_pipe_among_notes_is_skipped(vault: Path) -> None:
    os.mkfifo(vault / "docs" / "pipe.md")
    ran = attach_spawned(vault, {"kind": "tag", "tag": "tagged"})
    assert ran.warnings() == ["Not searched for tags: docs/pipe.md is not a file."]
    ran = attach_spawned(vault, {"kind": "folder", "path": "docs"})
    assert ran.warnings() == ["Left out: docs/pipe.md is not a file."]
    assert layer_ids(ran, 2) == ["docs/b.md", "docs/same.md"]


def attach_spawned(vault: Path, attached: dict[str, object]) -> Ran:
    """The same in a process that would be ended if it waited."""
    transcript = {**one_turn(attach=[attached]), "vault": "vault"}
    (vault.parent / "t.json").write_text(json.dumps(transcript), encoding="utf-8")
    return spawn("replay", str(vault.parent / "t.json"), "--json")


def test_missing_vault_is_reported(vault: Path) -> None:
    for name in ("gone", "outside.md", "vault/a.md"):
        ran = replay(vault.parent, {**one_turn(), "vault": name})
        assert "There is no vault folder at" in refusal(ran, code="source_missing")


@pytest.mark.parametrize("kind", ["note", "active_note", "folder", "tag", "image", "canvas", "code"])
def test_file_without_vault_is_refused(tmp_path: Path, kind: str) -> None:
    given = {"kind": kind, "tag" if kind == "tag" else "path": "x.png"}
    assert "there is no vault" in refusal(replay(tmp_path, one_turn(attach=[given])), code="source_missing")


BYTES = {
    "Latin-1": ("café".encode("latin-1"), "byte 4 is 0xe9"),
    "UTF-16": ("café".encode("utf-16"), "byte 1 is 0xff"),
    "a picture": (png(2, 2), "byte 1 is 0x89"),
    "half of a surrogate pair": (b"ab\xed\xa0\x80", "byte 3 is 0xed"),
    "a cut off character": ("é".encode()[:1], "byte 1 is 0xc3"),
}


@pytest.mark.parametrize(("data", "what"), BYTES.values(), ids=BYTES)
def test_non_utf8_note_is_refused_and_others_are_read(vault: Path, data: bytes, what: str) -> None:
    (vault / "docs" / "odd.md").write_bytes(data)
    message = refusal(attach(vault, note("docs/odd.md")), code="source_unreadable")
    assert f"docs/odd.md is not UTF-8: {what}" in message
    ran = attach(vault, {"kind": "folder", "path": "docs"})
    assert ran.warnings() == [f"Left out: docs/odd.md is not UTF-8: {what}."]
    assert layer_ids(ran, 2) == ["docs/b.md", "docs/same.md"]
    ran = attach(vault, {"kind": "tag", "tag": "tagged"})
    assert ran.warnings() == [f"Not searched for tags: docs/odd.md is not UTF-8: {what}."]
    assert layer_ids(ran, 2) == ["docs/b.md"]


def test_note_of_200_mb_is_refused_before_reading(vault: Path) -> None:
    with (vault / "docs" / "huge.md").open("wb") as file:
        file.truncate(200_000_000)
    why = f"docs/huge.md has 200,000,000 bytes; Lamella reads files of up to {MAX_FILE_BYTES:,} bytes."
    assert why in refusal(attach(vault, note("docs/huge.md")), code="source_too_large")
    assert attach(vault, {"kind": "folder", "path": "docs"}).warnings() == [f"Left out: {why}"]


def test_file_with_non_utf8_name_is_reported_and_others_are_read(vault: Path) -> None:
    (vault / "docs" / os.fsdecode(b"caf\xe9.md")).write_text("x", encoding="utf-8")
    ran = attach(vault, {"kind": "folder", "path": "docs"})
    assert ran.warnings() == [r"Left out: The name of the file b'docs/caf\xe9.md' is not UTF-8."]
    assert layer_ids(ran, 2) == ["docs/b.md", "docs/same.md"]


def test_folder_too_deep_is_reported_and_others_are_read(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(vault / "docs")
    for _ in range(DEEP):
        Path("x" * 250).mkdir()
        os.chdir("x" * 250)
    os.chdir(vault)
    ran = attach(vault, {"kind": "folder", "path": "docs"})
    assert [warning.endswith("cannot be read: File name too long.") for warning in ran.warnings()] == [True]
    assert layer_ids(ran, 2) == ["docs/b.md", "docs/same.md"]


def test_broken_link_is_reported_and_others_are_read(vault: Path) -> None:
    (vault / "docs" / "dangling.md").symlink_to("nothing.md")
    (vault / "docs" / "loop.md").symlink_to("loop.md")
    ran = attach(vault, {"kind": "folder", "path": "docs"})
    assert ran.warnings() == [
        "Left out: docs/dangling.md is a link to nothing.",
        "Left out: docs/loop.md is a link to itself.",
    ]
    assert attach(vault, {"kind": "tag", "tag": "tagged"}).warnings() == [
        "Not searched for tags: docs/dangling.md is a link to nothing.",
        "Not searched for tags: docs/loop.md is a link to itself.",
    ]


def test_missing_folder_is_refused_and_an_empty_one_is_a_warning(vault: Path) -> None:
    for path in ("gone", "a.md"):
        ran = attach(vault, {"kind": "folder", "path": path})
        assert f"There is no folder {path} in the vault" in refusal(ran, code="source_missing")
    ran = attach(vault, {"kind": "folder", "path": "empty"})
    assert ran.warnings() == ["The folder empty holds no notes; nothing was attached for it."]


@pytest.mark.parametrize("tag", ["nothing", "#nothing", "#", "##", "a b", "x" * 10_000])
def test_tag_that_no_note_carries_is_a_warning(vault: Path, tag: str) -> None:
    ran = attach(vault, {"kind": "tag", "tag": tag})
    assert ran.warnings() == [f"The tag {tag} holds no notes; nothing was attached for it."]


FRONT = {
    "a date that does not exist": "date: 2026-13-45\ntags: [wanted]",
    "a number without end": f"n: {'9' * 5_000}\ntags: wanted",
    "other types among the tags": "tags: [1, 2.5, true, null, {a: b}, [c], 2026-01-01, wanted]",
    "lists that hold each other": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{name}: &{name} [{', '.join(['*' + chr(ord(name) - 1)] * 9)}]\n" for name in "bcdefghi")
    + "tags: [*i, wanted]",
    "broken front matter, and the tag in the text": "tags: [a\n: :",
    "lists without end, and the tag in the text": f"tags: {'[' * 2_000}",
}


@pytest.mark.parametrize("front", FRONT.values(), ids=FRONT)
def test_tag_is_found_with_any_front_matter(vault: Path, front: str) -> None:
    in_text = "" if "wanted" in front else "#wanted"
    (vault / "odd.md").write_text(f"---\n{front}\n---\n{in_text}\n", encoding="utf-8")
    assert layer_ids(attach(vault, {"kind": "tag", "tag": "wanted"}), 2) == ["odd.md"]


def test_note_attached_by_several_paths_is_attached_once(vault: Path) -> None:
    ran = attach(vault, note("a.md"), note("./a.md"), note("docs/../a.md"), note("docs/..//a.md"), note("a.md/"))
    assert layer_ids(ran, 2) == ["a.md"]


LITERAL = [
    "{../elsewhere}", "{/etc}", "{..}", "{.}", "{ }", "{}", "{gone/path}", "{a.md}", "{[[]]}", "{#}", "{\0}",
    "{" * 20_000, "{}" * 5_000, "{" + "x" * 100_000 + "}", "{docs", "}docs{", "{do\ncs}", "{away}",
]  # fmt: skip


@pytest.mark.parametrize("typed", LITERAL, ids=lambda typed: typed[:12])
def test_braces_without_match_are_literal(vault: Path, typed: str) -> None:
    (vault / "away").symlink_to("../elsewhere")
    ran = attach(vault, user=typed)
    assert contents(ran) == typed
    assert ran.warnings() == []


UNCLEAR = {
    "{activeNote}": "no active note is attached.",
    "{[[Gone]]}": "no note is called Gone.",
    "{[[../outside]]}": "no note is called ../outside.",
    "{[[same]]}": "2 notes are called same: docs/same.md, notes/same.md. Name one by its path.",
    "{#gone}": "no note carries #gone.",
    "{empty}": "the folder holds no notes.",
}


@pytest.mark.parametrize(("typed", "why"), UNCLEAR.items(), ids=UNCLEAR)
def test_ambiguous_template_is_literal_with_warning(vault: Path, typed: str, why: str) -> None:
    ran = attach(vault, user=typed)
    assert contents(ran) == typed
    assert ran.warnings() == [f"{typed} was left as typed: {why}"]
    inlined = {**one_turn(), "vault": "vault", "system": {"instructions": typed}}
    assert replay(vault.parent, inlined).warnings() == ran.warnings()


def test_unsendable_images_are_reported_singly(vault: Path) -> None:
    (vault / "good.png").write_bytes(png(2, 2))
    (vault / "bad.png").write_bytes(b"no picture")
    (vault / "drawing.svg").write_text("<svg/>", encoding="utf-8")
    names = ["good.png", "gone.png", "bad.png", "drawing.svg", "../x.png", "/etc/x.png", "x" * 300 + ".png"]
    text = "".join(f"![[{name}]]\n" for name in names) + "![](https://example.org/x.png) ![](data:image/png;base64,AA)"
    ran = attach(vault, {"kind": "active_note", "path": "n.md", "text": text})
    assert len(ran.warnings()) == len(names) - 1 + 2
    assert all("is not sent" in warning for warning in ran.warnings())
    parts = json.loads(ran.out)["turns"][0]["messages"][0]["content"]
    assert [part["type"] for part in parts].count("image") == 1
