"""Completions of each chat command, in a session with a vault, attachments and two turns."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamella.cli.chat.command import _make_output
from lamella.cli.chat.conversation_commands import start_conversation, start_workflow
from lamella.cli.chat.opening import ChatOptions, open_for_chat
from lamella.cli.chat.session import ChatSession
from lamella.cli.chat.slash import get_argument_completers
from lamella.conversation.turn import TurnRequest
from lamella.errors import WorkflowError
from lamella.wiring import open_attachment_resolver, open_memory


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatSession]:
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    (tmp_path / "soil.md").write_text("# Soil\n\nSandy.\n", encoding="utf-8")
    (tmp_path / "seeds.md").write_text("# Seeds\n\nPeas.\n", encoding="utf-8")
    (tmp_path / "replies.json").write_text(json.dumps(["Peas.", "Garlic."]), encoding="utf-8")
    options = ChatOptions(
        store=f"sqlite:///{tmp_path}/chats.db",
        chat="garden",
        model=f"scripted:{tmp_path}/replies.json",
        vault=tmp_path,
        sticky_attachments=True,
    )
    output = _make_output(can_redraw=False)
    with open_for_chat(options, output) as opened, asyncio.Runner() as loop:
        files = open_attachment_resolver(tmp_path)
        session = ChatSession(opened, loop, output=output, files=files, shows_strata=False, is_interactive=False)
        session.send_message("What is in @soil.md?")
        session.send_message("And in autumn?")
        yield session


def complete(session: ChatSession, command: str, prefix: str = "") -> list[str]:
    return list(get_argument_completers(session)[command](prefix))


@pytest.mark.parametrize(
    ("command", "prefix", "names"),
    [
        ("/detach", "", ["soil.md"]),
        ("/detach", "OIL", ["soil.md"]),
        ("/detach", "nothing", []),
        ("/drop", "", ["soil.md"]),
        ("/pin", "soil", ["soil.md"]),
        ("/unpin", "", []),
        ("/refresh", "", ["soil.md"]),
        ("/attach", "se", ["seeds.md"]),
        ("/active", "so", ["soil.md"]),
        ("/rules", "rem", ["remove"]),
        ("/memory", "re", ["remove", "refresh"]),
        ("/stage", "sub", ["submit"]),
        ("/tools", "", ["refresh"]),
        ("/runner", "vault", ["vault_qa"]),
        ("/set", "layo", ["layout"]),
        ("/set", "layout ", ["layout library", "layout in_place", "layout auto"]),
    ],
)
def test_command_completes_accepted_arguments(
    session: ChatSession, command: str, prefix: str, names: list[str]
) -> None:
    assert complete(session, command, prefix) == names


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("", {"from": "", "to": ""}),
        ("fr", {"from": ""}),
        ("from ", {"from turn:1": "What is in @soil.md?", "from turn:2": "And in autumn?"}),
        ("from turn:1 ", {"from turn:1 to": ""}),
        ("from turn:1 to and", {"from turn:1 to turn:2": "And in autumn?"}),
        ("0.3 to turn:2", {"0.3 to turn:2": "And in autumn?"}),
    ],
)
def test_compact_offers_its_words_and_the_turns(session: ChatSession, prefix: str, found: dict[str, str]) -> None:
    assert get_argument_completers(session)["/compact"](prefix) == found


def test_stage_offers_the_stages_and_fields_of_the_workflow(session: ChatSession) -> None:
    completer = get_argument_completers(session)["/stage"]
    assert completer("data ti") == {}
    assert {"new paper", "new rfc"} <= set(completer("new "))
    start_workflow(session, "rfc")
    assert completer("data ") == {"data problem=": "", "data goals=": ""}
    assert completer("rewind ") == {"rewind problem": "Problem"}
    assert completer("rewind prob") == {"rewind problem": "Problem"}
    with pytest.raises(WorkflowError, match="garden uses the workflow rfc, not paper") as refused:
        start_workflow(session, "paper")
    assert "lamella chat garden --workflow rfc" in refused.value.hint
    start_workflow(session, "rfc")


def test_branches_titles_and_chats_are_offered(session: ChatSession) -> None:
    log = session.conversation
    old = log.head
    session.send_message("Third?")
    log.switch(log.turns()[0].message.id)
    assert get_argument_completers(session)["/switch"]("") != {}
    assert old not in get_argument_completers(session)["/switch"]("zzz")
    log.rename("Beds and soil")
    assert get_argument_completers(session)["/rename"]("") == {"Beds and soil": ""}
    start_conversation(session, "seeds")
    session.send_message("Which seeds?")
    for prefix in ("gar", "beds"):
        assert get_argument_completers(session)["/chats"](prefix) == {"garden": "Beds and soil"}


def test_memory_offers_the_numbers_of_facts(session: ChatSession) -> None:
    open_memory().add("Likes tea.")
    completer = get_argument_completers(session)["/memory"]
    assert completer("remove ") == {"remove 1": "Likes tea."}
    assert completer("edit likes") == {"edit 1": "Likes tea."}
    assert completer("add ") == {}


def test_pinned_attachment_is_offered_for_unpin_only(session: ChatSession) -> None:
    session.store_commands(TurnRequest(text="", pin=("soil.md",)))
    session.send_message("And now?")
    assert "soil.md" in complete(session, "/unpin")
    assert "soil.md" not in complete(session, "/pin")


def test_message_commands_offer_the_turns_of_the_branch(session: ChatSession) -> None:
    first, second = (turn.message.id for turn in session.conversation.turns())
    for command in ("/edit", "/regenerate"):
        assert [one for one in complete(session, command) if one in (first, second)] == [second, first]
    assert {first, second} <= set(complete(session, "/delete"))


def test_model_completion_offers_the_model_in_use(session: ChatSession) -> None:
    assert session.model in complete(session, "/model")
