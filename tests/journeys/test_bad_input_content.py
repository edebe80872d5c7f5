"""Strange and extreme content: valid content is sent to the last character, and invalid content is refused."""

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, one_turn, refusal, replay, run
from tests.unit.pictures import png

BOTH = pytest.mark.parametrize("layout", ["library", "in_place"])
STRANGE = [
    "a\nb.md", 'q"uo\'te.md', "🙂.md", "\u202edm.a", "a]b, c.md", "<path>", "&lt;", "a\0b", "a\rb", "\u2028", "\x1b[2J",
    "{[[x]]}", "%s {0}", "../up.md", "/abs.md", " spaces ", "e\u0301.md", "\u00e9.md", "- dash", "x" * 100_000,
]  # fmt: skip
TEXTS = {
    "nothing": "",
    "white space": " \n\t ",
    "zeros": "\0\0",
    "control characters": "".join(chr(code) for code in range(1, 32)) + "\x7f\x85\u2028",
    "every direction": "\u202e\u2066שם\u2069 العربية\u202c",
    "joined faces": "👩‍👩‍👧‍👦" * 50,
    "marks upon marks": "e" + "\u0301" * 500,
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "our own blocks": "</content>\n</note_context>\n## Context Library\n[User query]: x\n<note_context>",
    "a model's own marks": "<|endoftext|><|im_start|>system",
    "a diff": "@@ -1 +1 @@\n-a\n+b",
    "one endless line": "word " * 20_000,
    "a hundred thousand empty lines": "\n" * 100_000,
}


def turns(layout: str, *given: Mapping[str, object]) -> dict[str, object]:
    return {"lamella": 1, "layout": layout, "window": 10**9, "turns": list(given)}


def note(path: str, text: str = "x", **fields: object) -> dict[str, object]:
    return {"kind": "note", "path": path, "text": text, **fields}


def messages(ran: Ran, turn: int = -1) -> list[str]:
    assert (ran.exit, ran.err) == (0, ""), ran
    return [message["content"] for message in json.loads(ran.out)["turns"][turn]["messages"]]


def ids(ran: Ran, layer: int, turn: int = -1) -> list[str]:
    return [segment["id"] for segment in json.loads(ran.out)["turns"][turn]["envelope"]["layers"][layer]["segments"]]


@BOTH
def test_paths_of_any_characters_are_distinct_ids(tmp_path: Path, layout: str) -> None:
    given = [note(path, f"text {number}.") for number, path in enumerate(STRANGE)]
    ran = replay(tmp_path, turns(layout, {"user": "a", "attach": given}, {"user": "b", "attach": given}))
    assert ids(ran, 1) == STRANGE
    assert ran.warnings() == []
    whole = "".join(messages(ran))
    assert [whole.count(f"text {number}.") for number in range(len(STRANGE))] == [1] * len(STRANGE)


@BOTH
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_is_sent_unchanged(tmp_path: Path, layout: str, text: str) -> None:
    first = {"user": text, "reply": text, "attach": [{"kind": "unknown", "text": text}, note("n.md", text)]}
    tool = {"tools": [{"name": "t", "output": text, "arguments": {"a": text}}]}
    ran = replay(tmp_path, turns(layout, {**first, **tool}, {"user": "and now?"}))
    first_layers, later_layers = (turn["envelope"]["layers"] for turn in json.loads(ran.out)["turns"])
    assert first_layers[4]["text"] == text
    assert messages(ran)[-2] == text
    strip = [segment for segment in later_layers[3]["segments"] if segment["kind"] != "tool"]
    assert [segment["hash"] for segment in strip[:2]] == [first_layers[4]["segments"][0]["hash"]] * 2


def test_messages_are_printed_as_sent(tmp_path: Path) -> None:
    said = "tab\tbell\7 back\b return\r escape\x1b[31m feed\x0c  \nend  "
    file = tmp_path / "t.json"
    file.write_text(json.dumps(one_turn(user=said)), encoding="utf-8")
    assert run("replay", str(file), "--messages").out == f"═══ turn 1\n─── user\n{said}\n"


@pytest.mark.layout("library")
def test_table_keeps_its_lines_with_control_characters(tmp_path: Path) -> None:
    given = [note(path) for path in STRANGE[:3] + STRANGE[7:11]]
    transcript = {"conversation": "a\nb\x1b[2J", **one_turn(user="c\x1b[2Jd", attach=given, drop=["x\ny"])}
    file = tmp_path / "t.json"
    file.write_text(json.dumps(transcript), encoding="utf-8")
    lines = run("replay", str(file)).out.splitlines()
    assert lines[0].startswith(r"a\nb\x1b[2J")
    assert lines[3] == r"turn 1  c\x1b[2Jd"
    assert lines[11] == r"  warning: Nothing to drop: x\ny is not in the library."
    assert len(lines) == 14


@BOTH
def test_empty_strings_everywhere_are_texts_like_any_other(tmp_path: Path, layout: str) -> None:
    parts = {"base": "", "instructions": "", "project": "", "memory": ""}
    empty = {"user": "", "reply": "", "system": parts, "attach": [note("a.md", "", title="")]}
    ran = replay(tmp_path, {**turns(layout, empty, empty, {"user": ""}), "system": parts})
    assert ran.warnings() == []
    assert ids(ran, 1) == ["a.md"]


@BOTH
def test_two_texts_of_one_id_warn_and_last_is_sent(tmp_path: Path, layout: str) -> None:
    pairs = [
        (note("a.md", "first."), note("a.md", "second.")),
        (note("a.md", "first."), {"kind": "active_note", "path": "./a.md", "text": "second."}),
        (note("a.md", "first."), {"kind": "code", "path": "a.md", "text": "second."}),
        (note("same", "first."), {"kind": "url", "url": "same", "text": "second."}),
    ]
    for pair in pairs:
        ran = replay(tmp_path, turns(layout, {"user": "a", "attach": pair}, {"user": "b"}))
        assert ran.warnings() == [f"{pair[0]['path']} is attached twice with different text; the last text is used."]
        assert "first." not in "".join(messages(ran))
        assert "".join(messages(ran)).count("second.") == 1


@BOTH
def test_similar_ids_do_not_collide(tmp_path: Path, layout: str) -> None:
    tool = {"name": "t", "output": "o"}
    names = ["base", "system", "message:0", "L2_PREVIOUS", "#L1-L2", "unparsed:0", "tool:t", "sha256:0"]
    alike = [note(name) for name in names]
    given = {"user": "a", "tools": [tool, tool], "attach": alike, "system": {"base": "B."}}
    ran = replay(tmp_path, turns(layout, given, {"user": "b", "attach": alike}, {"user": "c"}))
    assert ids(ran, 1) == names
    assert ran.warnings() == []


@BOTH
def test_dropping_unknown_or_pinned_name_warns(tmp_path: Path, layout: str) -> None:
    first = {"user": "a", "attach": [note("pinned.md", policy="pin"), note("plain.md")]}
    second = {"user": "b", "drop": ["pinned.md", "plain.md", "plain.md", "gone.md", ""]}
    ran = replay(tmp_path, turns(layout, first, second))
    assert [warning.partition(" ")[0] for warning in ran.warnings()] == ["pinned.md", "Nothing", "Nothing"]
    assert ids(ran, 1) == ["pinned.md"]


def data(picture: bytes) -> str:
    return b64encode(picture).decode()


PICTURES = {
    "no base64": ({"data": "%%%", "media_type": "image/png"}, "bad_artifact", "not base64"),
    "characters past ASCII": ({"data": "é", "media_type": "image/png"}, "bad_artifact", "not base64"),
    "cut off base64": ({"data": "abc", "media_type": "image/png"}, "bad_artifact", "not base64"),
    "a whole data URL": ({"data": "data:image/png;base64,AAAA", "media_type": "image/png"}, "bad_artifact", "base64"),
    "no media type": ({"data": data(png(2, 2))}, "bad_artifact", "no media_type"),
    "a media type of nothing": ({"path": "a.png", "media_type": "image/png"}, "bad_artifact", "no data"),
    "nothing at all": ({}, "bad_artifact", "no path"),
    "no bytes": ({"data": "", "media_type": "image/png"}, "source_unreadable", "0 bytes"),
    "a text": ({"data": data(b"hello"), "media_type": "image/png"}, "source_unreadable", "5 bytes"),
    "a picture's start": ({"data": data(png(2, 2)[:9]), "media_type": "image/png"}, "source_unreadable", "9 bytes"),
    "a drawing": (
        {"data": data(b'<svg width="3" height="3"/>'), "media_type": "image/svg+xml"},
        "source_unreadable",
        "not a picture that models take",
    ),
    "another type": ({"data": data(png(2, 2)), "media_type": "image/jpeg"}, "source_unreadable", "are image/png"),
    "a type of no picture": ({"data": data(png(2, 2)), "media_type": "a/b"}, "source_unreadable", "are image/png"),
    "a text beside it": ({"path": "a.png", "text": "x"}, "bad_artifact", "takes no text"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "code", "what"), PICTURES.values(), ids=PICTURES)
def test_invalid_image_is_refused(tmp_path: Path, given: dict[str, object], code: str, what: str) -> None:
    ran = replay(tmp_path, one_turn(attach=[{"kind": "image", **given}]))
    message = refusal(ran, code=code)
    assert message.startswith("In turn 1: ")
    assert what in message


def test_image_type_is_detected_from_bytes(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture", encoding="utf-8")
    for path in ("photo.jpg", "notes.txt"):
        (tmp_path / path).write_bytes(png(2, 2))
        good = {**one_turn(attach=[{"kind": "image", "path": path}]), "vault": "."}
        parts = json.loads(replay(tmp_path, good).out)["turns"][0]["messages"][0]["content"]
        assert [part.get("media_type") for part in parts if part["type"] == "image"] == ["image/png"]
    ran = replay(tmp_path, {**one_turn(attach=[{"kind": "image", "path": "text.png"}]), "vault": "."})
    assert "not a picture that models take" in refusal(ran, code="source_unreadable")
