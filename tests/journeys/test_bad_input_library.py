"""Wrong arguments from Python raise a LamellaError and change nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pictures import png

from lamella import (
    ActiveNote,
    BadInputError,
    ContextBudgetExceededError,
    Conversation,
    Dataview,
    Folder,
    Image,
    LamellaError,
    Note,
    Pdf,
    Selection,
    Tag,
    Tool,
    ToolResult,
    Turn,
    Unknown,
    Url,
)
from lamella.attach import Attachment

HALF = "\ud83d"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
# What these programs give is wrong on purpose, so nothing here may be held to its type.
make: Any = Conversation
a_note: Any = Note
a_selection: Any = Selection
a_picture: Any = Image
a_result: Any = ToolResult
a_tool: Any = Tool


def nested(depth: int) -> dict[str, object]:
    inner: dict[str, object] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def circle() -> dict[str, object]:
    itself: dict[str, object] = {}
    itself["a"] = itself
    return itself


OPENED: dict[str, tuple[dict[str, object], str]] = {
    "a setting nobody knows": ({"layuot": "library"}, "bad_setting"),
    "a window in words": ({"window": "128000"}, "bad_setting"),
    "true for a number": ({"reserve": True}, "bad_setting"),
    "true for a share": ({"hard": True}, "bad_setting"),
    "a share in words": ({"warn": "0.5"}, "bad_setting"),
    "no number for a share": ({"warn": float("nan")}, "bad_setting"),
    "a number for a layout": ({"layout": 5}, "bad_setting"),
    "a word that is no choice": ({"image_notes": "yes"}, "bad_setting"),
    "a window past all numbers": ({"window": 10**400}, "bad_setting"),
    "a window past all digits": ({"window": 10**5_000}, "bad_setting"),
    "thresholds out of order": ({"warn": 0.9}, "bad_setting"),
    "a number for a name": ({"conversation_key": 5}, "bad_call"),
    "no name": ({"conversation_key": ""}, "bad_call"),
    "None for a name": ({"conversation_key": None}, "bad_call"),
    "half a character for a name": ({"conversation_key": HALF}, "bad_text"),
    "a number for the system prompt": ({"system": 5}, "bad_setting"),
    "a list for the system prompt": ({"system": ["a"]}, "bad_setting"),
    "a part nobody knows": ({"system": {"basis": ""}}, "bad_setting"),
    "a part with a number for a name": ({"system": {5: ""}}, "bad_setting"),
    "a part that is None": ({"system": {"base": None}}, "bad_call"),
    "half a character for a part": ({"system": {"memory": HALF}}, "bad_text"),
    "a number for a vault": ({"vault": 5}, "bad_call"),
    "bytes for a vault": ({"vault": b"."}, "bad_call"),
    "no path for a vault": ({"vault": ""}, "bad_call"),
    "a vault that is not there": ({"vault": "/nowhere/at/all"}, "source_missing"),
    "a zero in a vault": ({"vault": "a\0b"}, "source_missing"),
}


@pytest.mark.parametrize(("given", "code"), OPENED.values(), ids=OPENED)
def test_conversation_that_cannot_open_gives_reason(given: dict[str, object], code: str) -> None:
    with pytest.raises(BadInputError) as caught:
        make(**given)
    assert caught.value.code == code
    assert caught.value.message.endswith(".")
    assert caught.value.hint


ASKED: dict[str, tuple[dict[str, object], str]] = {
    "None for the text": ({"text": None}, "bad_call"),
    "a number for the text": ({"text": 5}, "bad_call"),
    "bytes for the text": ({"text": b"hi"}, "bad_call"),
    "half a character": ({"text": HALF}, "bad_text"),
    "half a character in the middle": ({"text": f"a{HALF}b"}, "bad_text"),
    "a note that is in no list": ({"attach": a_note(path="a.md", text="A")}, "bad_call"),
    "None for a list": ({"attach": None}, "bad_call"),
    "a word for a list": ({"attach": "a.md"}, "bad_call"),
    "words in the list": ({"attach": ["a.md"]}, "bad_call"),
    "a dict in the list": ({"attach": [{"kind": "note"}]}, "bad_call"),
    "a class in the list": ({"attach": [Note]}, "bad_call"),
    "a tool result among notes": ({"attach": [a_result(name="t", output="o")]}, "bad_call"),
    "a note among tool results": ({"results": [a_note(path="a.md", text="A")]}, "bad_call"),
    "None for results": ({"results": None}, "bad_call"),
    "a tool definition that is a dict": ({"tools": [{"name": "t"}]}, "bad_call"),
    "a number for a path": ({"attach": [a_note(path=5, text="A")]}, "bad_artifact"),
    "a Path for a path": ({"attach": [a_note(path=Path("a.md"), text="A")]}, "bad_artifact"),
    "no path": ({"attach": [Note(path="", text="A")]}, "bad_artifact"),
    "a number for a note": ({"attach": [a_note(path="a.md", text=5)]}, "bad_artifact"),
    "bytes for a note": ({"attach": [a_note(path="a.md", text=b"A")]}, "bad_artifact"),
    "None for a title": ({"attach": [a_note(path="a.md", text="A", title=None)]}, "bad_artifact"),
    "a policy nobody knows": ({"attach": [Note(path="a.md", text="A", policy="glue")]}, "bad_setting"),
    "a number for a policy": ({"attach": [a_note(path="a.md", text="A", policy=5)]}, "bad_artifact"),
    "half a character in a path": ({"attach": [Note(path=HALF, text="A")]}, "bad_text"),
    "half a character in a path to be read": ({"attach": [Note(path=HALF)]}, "bad_text"),
    "half a character in a title": ({"attach": [Note(path="a.md", text="A", title=HALF)]}, "bad_text"),
    "half a character in a note": ({"attach": [Note(path="a.md", text=HALF)]}, "bad_text"),
    "half a character in a URL": ({"attach": [Url(url=HALF, text="A")]}, "bad_text"),
    "half a character in a query": ({"attach": [Dataview(path="a", query=HALF, text="A")]}, "bad_text"),
    "half a character in a tag": ({"attach": [Tag(tag=HALF)]}, "bad_text"),
    "half a character in a block": ({"attach": [Unknown(text=HALF)]}, "bad_text"),
    "a file without a vault": ({"attach": [Note(path="a.md")]}, "source_missing"),
    "an active note without a vault": ({"attach": [ActiveNote(path="a.md")]}, "source_missing"),
    "a folder without a vault": ({"attach": [Folder(path="docs")]}, "source_missing"),
    "a tag without a vault": ({"attach": [Tag(tag="#a")]}, "source_missing"),
    "a folder without a path": ({"attach": [Folder(path="")]}, "bad_artifact"),
    "a tag without a name": ({"attach": [Tag(tag="")]}, "bad_artifact"),
    "a PDF without text or vault": ({"attach": [Pdf(path="a.pdf")]}, "source_missing"),
    "a selection from nowhere": ({"attach": [Selection(text="A")]}, "bad_artifact"),
    "lines that end before they start": ({"attach": [Selection(path="a", text="A", lines=(9, 2))]}, "bad_artifact"),
    "lines from zero": ({"attach": [Selection(path="a", text="A", lines=(0, 2))]}, "bad_artifact"),
    "one line": ({"attach": [a_selection(path="a", text="A", lines=(1,))]}, "bad_artifact"),
    "lines in words": ({"attach": [a_selection(path="a", text="A", lines=("1", "2"))]}, "bad_artifact"),
    "true for lines": ({"attach": [a_selection(path="a", text="A", lines=(True, True))]}, "bad_artifact"),
    "a picture of nothing": ({"attach": [Image()]}, "bad_artifact"),
    "a picture in words": ({"attach": [a_picture(data="png")]}, "bad_artifact"),
    "bytes that are no picture": ({"attach": [Image(data=b"png")]}, "source_unreadable"),
    "a picture of another type": ({"attach": [Image(data=png(2, 2), media_type="image/gif")]}, "source_unreadable"),
    "a picture file without a vault": ({"attach": [Image(path="a.png")]}, "source_missing"),
    "a tool result without a name": ({"results": [ToolResult(name="", output="o")]}, "bad_artifact"),
    "a tool result without output": ({"results": [a_result(name="t", output=None)]}, "bad_artifact"),
    "arguments that are a list": ({"results": [a_result(name="t", output="o", arguments=[1])]}, "bad_artifact"),
    "arguments that are no JSON": (
        {"results": [ToolResult(name="t", output="o", arguments={"a": {1}})]},
        "bad_artifact",
    ),
    "an argument that is no number": (
        {"results": [ToolResult(name="t", output="o", arguments={"a": float("nan")})]},
        "bad_artifact",
    ),
    "arguments in a circle": ({"results": [ToolResult(name="t", output="o", arguments=circle())]}, "bad_artifact"),
    "arguments without end": (
        {"results": [ToolResult(name="t", output="o", arguments=nested(50_000))]},
        "bad_artifact",
    ),
    "half a character in arguments": (
        {"results": [ToolResult(name="t", output="o", arguments={"a": HALF})]},
        "bad_text",
    ),
    "half a character in output": ({"results": [ToolResult(name="t", output=HALF)]}, "bad_text"),
    "a tool without a name": ({"tools": [Tool(name="")]}, "bad_artifact"),
    "a tool with a number for a name": ({"tools": [a_tool(name=5)]}, "bad_artifact"),
    "a schema without end": ({"tools": [Tool(name="t", parameters=nested(50_000))]}, "bad_artifact"),
    "half a character in a schema": ({"tools": [Tool(name="t", parameters={HALF: 1})]}, "bad_text"),
    "a number for the system prompt": ({"system": 5}, "bad_setting"),
    "a part nobody knows": ({"system": {"basis": "B"}}, "bad_setting"),
    "a number for a part": ({"system": {"memory": 5}}, "bad_call"),
    "half a character in a part": ({"system": HALF}, "bad_text"),
    "a number for a model": ({"model": 5}, "bad_call"),
    "no model": ({"model": ""}, "bad_call"),
    "half a character in a model": ({"model": HALF}, "bad_text"),
    "a word for what to drop": ({"drop": "first.md"}, "bad_call"),
    "numbers for what to drop": ({"drop": [5]}, "bad_call"),
    "half a character in what to drop": ({"drop": ["first.md", HALF]}, "bad_text"),
    "a time in words": ({"at": "2026-11-15T10:00:00Z"}, "bad_call"),
    "a time without a zone": ({"at": datetime(2026, 11, 15)}, "bad_call"),  # noqa: DTZ001 - that is what is wrong
    "a time past the calendar": ({"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, "bad_call"),
    "what does not fit": ({"text": "large " * 20_000}, "budget_exceeded"),
    "a note that does not fit": (
        {"attach": [Note(path="big.md", text="large " * 20_000, policy="pin")]},
        "budget_exceeded",
    ),
    "changes that do not fit": (
        {
            "text": "large " * 20_000,
            "system": {"memory": "M."},
            "model": "openai:gpt-5",
            "tools": [Tool(name="t")],
            "drop": ["first.md"],
            "fold": True,
            "attach": [Note(path="new.md", text="N."), Note(path="first.md", text="changed")],
        },
        "budget_exceeded",
    ),
}  # fmt: skip


def begun(layout: str) -> Conversation:
    """Two turns in, the second answered."""
    chat = Conversation(layout=layout, window=20_000, system={"base": "B.", "memory": "old"})
    chat.ask("one", attach=[Note(path="first.md", text="F."), Note(path="pinned.md", text="P.", policy="pin")], at=NOON)
    chat.reply("r1")
    chat.ask("two", results=[ToolResult(name="t", output="o")], at=NOON)
    chat.reply("r2")
    return chat


def continue_chat(chat: Conversation) -> list[Turn]:
    """Two more turns, so that what changed in secret would show."""
    third = chat.ask("three", attach=[Note(path="first.md", text="F.2"), Note(path="new.md", text="N.")], at=NOON)
    chat.reply("r3")
    return [third, chat.ask("four", drop=["first.md"], at=NOON)]


@pytest.fixture(scope="module", params=["library", "in_place"])
def undisturbed(request: pytest.FixtureRequest) -> tuple[str, list[Turn]]:
    """How the conversation goes on where nothing fails."""
    return request.param, continue_chat(begun(request.param))


@pytest.mark.parametrize("case", ASKED)
def test_failed_ask_gives_reason_and_leaves_no_trace(undisturbed: tuple[str, list[Turn]], case: str) -> None:
    given, code = ASKED[case]
    layout, expected = undisturbed
    chat: Any = begun(layout)
    with pytest.raises(LamellaError) as caught:
        chat.ask(**{"text": "three", **given})
    assert caught.value.code == code
    assert caught.value.hint
    assert isinstance(caught.value, BadInputError | ContextBudgetExceededError)
    assert continue_chat(chat) == expected


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_files_that_cannot_be_read_leave_no_trace_either(tmp_path: Path, layout: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "good.md").write_text("good #tag", encoding="utf-8")
    (tmp_path / "docs" / "odd.md").write_bytes(b"\xff")
    failing: list[Attachment] = [
        Note(path="gone.md"),
        Note(path="../x.md"),
        Note(path="docs"),
        Folder(path="gone"),
    ]
    chat, other = (Conversation(layout=layout, vault=tmp_path) for _ in range(2))
    for one in failing:
        with pytest.raises(BadInputError):
            chat.ask("one", attach=[Note(path="docs/good.md"), one])
    good = [Note(path="docs/good.md")]
    assert chat.ask("one", attach=good) == other.ask("one", attach=good)


@pytest.mark.parametrize("text", [None, 5, b"r", ["r"], HALF])
def test_reply_that_is_not_text_is_refused_and_turn_stays_open(text: object) -> None:
    chat: Any = Conversation()
    chat.ask("one")
    with pytest.raises(BadInputError):
        chat.reply(text)
    with pytest.raises(BadInputError):
        chat.reply("r", at=datetime(2026, 11, 15))  # noqa: DTZ001 - that is what is wrong
    chat.reply("r")
    other = Conversation()
    other.ask("one")
    other.reply("r")
    assert chat.ask("two") == other.ask("two")


def test_reply_without_open_turn_and_second_reply_are_refused() -> None:
    chat = Conversation()
    for _ in range(2):
        with pytest.raises(BadInputError, match="no open turn") as caught:
            chat.reply("r")
        assert caught.value.code == "bad_call"
    chat.ask("one")
    chat.reply("r")
    with pytest.raises(BadInputError, match="no open turn"):
        chat.reply("again")
    other = Conversation()
    other.ask("one")
    other.reply("r")
    assert chat.ask("two") == other.ask("two")


def test_failed_ask_keeps_previous_turn_open() -> None:
    chat = Conversation(window=6_000)
    chat.ask("one")
    with pytest.raises(ContextBudgetExceededError):
        chat.ask("large " * 9_000)
    chat.reply("late, and still of turn one")
    assert [message.text for message in chat.ask("two").messages] == ["one", "late, and still of turn one", "two"]


def test_failed_first_ask_keeps_the_system_prompt() -> None:
    chat = Conversation(window=6_000, system="Be brief.")
    for _ in range(2):
        with pytest.raises(ContextBudgetExceededError):
            chat.ask("large " * 9_000)
    assert chat.ask("one") == Conversation(window=6_000, system="Be brief.").ask("one")


def test_list_of_attachments_may_be_any_iterable() -> None:
    given: Callable[[], Any] = lambda: (note for note in [Note(path="a.md", text="A")])  # noqa: E731 - made again
    loose: Any = Conversation()
    assert loose.ask("one", attach=given()) == Conversation().ask("one", attach=list(given()))
