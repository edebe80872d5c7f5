"""Completions of each chat command, in a session with a vault, attachments and two turns."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamella.cli.chat.command import _make_output
from lamella.cli.chat.opening import ChatOptions, open_for_chat
from lamella.cli.chat.session import ChatSession
from lamella.cli.chat.slash import get_argument_completers
from lamella.conversation.turn import TurnRequest
from lamella.wiring import open_named_files


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ChatSession]:
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
        files = open_named_files(tmp_path)
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


def test_pinned_attachment_is_offered_for_unpin_only(session: ChatSession) -> None:
    session.store_commands(TurnRequest(text="", pin=("soil.md",)))
    session.send_message("And now?")
    assert "soil.md" in complete(session, "/unpin")
    assert "soil.md" not in complete(session, "/pin")


def test_message_commands_offer_the_turns_of_the_branch(session: ChatSession) -> None:
    first, second = (turn.message.id for turn in session.conversation_log.turns())
    for command in ("/edit", "/regenerate"):
        assert [one for one in complete(session, command) if one in (first, second)] == [second, first]
    assert {first, second} <= set(complete(session, "/delete"))


def test_model_completion_offers_the_model_in_use(session: ChatSession) -> None:
    assert session.model in complete(session, "/model")
