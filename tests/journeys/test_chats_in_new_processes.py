"""A conversation carried on by one process after another sends what a single process sends that never stops.

Each sitting is a process of its own, started as ``python -m tests.journeys.test_chats_in_new_processes``; all it has
of the sittings before it is the store.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests import servers
from tests.unit.pictures import png

import lamella
from lamella import (
    ActiveNote,
    Chat,
    Dataview,
    Folder,
    Note,
    Pdf,
    Picture,
    Selection,
    Tool,
    ToolResult,
    Turn,
    Unknown,
    Url,
)
from lamella.views.turns import view_turn

ROOT = Path(__file__).parents[2]
DOT = png(1, 1)
LONG = "".join(f"## Part {part}\n\n" + "Words to leave out. " * 40 + "\n\n" for part in range(12))
Deed = Callable[[Chat], Turn | None]


def fill(vault: Path) -> None:
    """The notes that the conversation reads."""
    (vault / "docs").mkdir(parents=True)
    (vault / "spec.md").write_text("# Spec\n\n#red\n" + LONG, encoding="utf-8")
    (vault / "docs" / "api.md").write_text("# API\r\n- } { ]]>\r\n", encoding="utf-8", newline="")
    (vault / "active.md").write_text("Look: ![[dot.png]]\n", encoding="utf-8")
    (vault / "dot.png").write_bytes(DOT)


def name(chat: Chat, turn: int, *, reply: bool = False) -> str:
    told = chat.turns()[turn]
    return told.reply.id if reply and told.reply else told.message.id


def ask(text: str, **given: object) -> Deed:
    return lambda chat: chat.ask(text, **given)  # type: ignore[arg-type]


def reply(text: str) -> Deed:
    def replying(chat: Chat) -> None:
        chat.reply(text)

    return replying


def fork(chat: Chat) -> None:
    chat.fork(name(chat, 1, reply=True))


def delete(chat: Chat) -> None:
    chat.delete(name(chat, 0))


def switch(chat: Chat) -> None:
    chat.switch(chat.branches()[0])


SITTINGS: tuple[tuple[Deed, ...], ...] = (
    (
        ask(
            "Compare {[[spec]]} and {docs}.",
            attach=[ActiveNote(path="active.md"), Url(url="https://example.org/x", text="A page.")],
            results=[ToolResult(name="search", arguments={"q": "x"}, output="</output> found")],
            tools=[Tool(name="search", parameters={"type": "object"})],
            system={"base": "You are terse.", "instructions": "Follow {[[api]]}."},
        ),
        reply("They differ."),
    ),
    (ask("More.", attach=[Folder(path="docs"), Selection(path="spec.md", lines=(1, 2), text="# Spec")]),),
    (
        ask("Unanswered before.", attach=[Pdf(path="p.pdf", text=LONG, policy="pin"), Note(path="spec.md")]),
        reply("Noted.\r\n"),
    ),
    (
        lambda chat: chat.regenerate(),
        reply("Noted again."),
        ask("Changed.", attach=[Note(path="spec.md", text="# Spec, edited\n" + LONG), Unknown(text="<x>")]),
        reply(""),
    ),
    (fork, ask("Elsewhere.", attach=[Picture(data=DOT)], drop=["p.pdf"], model="anthropic:claude-opus-5-5")),
    (
        lambda chat: chat.edit(name(chat, 1), "Edited {[[spec]]}."),
        reply("Better."),
        ask("On.", attach=[Dataview(path="spec.md", query="LIST", text="- a")], fold=True),
        reply("Yes."),
    ),
    (delete, ask("Without the first.", system={"memory": "Likes tea."}), reply("Fine.")),
    (switch, ask("Back again.", attach=[Note(path="docs/api.md")])),
)


def sit(chat: Chat, deeds: Sequence[Deed]) -> list[dict[str, object]]:
    """Do one thing after another; every turn that comes of it, without what a ledger says of caches and money."""
    turns = [view_turn(turn) for deed in deeds if (turn := deed(chat)) is not None]
    return [{key: turn[key] for key in ("turn", "envelope", "messages", "tokens", "prefix")} for turn in turns]


def run_sitting(url: str, vault: Path, number: int, settings: dict[str, object]) -> list[dict[str, object]]:
    with lamella.open(url, vault=vault) as engine:
        return sit(engine.chat("long", **settings), SITTINGS[number])


def start_sitting(url: str, vault: Path, number: int, settings: dict[str, object]) -> list[dict[str, object]]:
    words = [url, str(vault), str(number), json.dumps(settings)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.journeys.test_chats_in_new_processes", *words],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    turns: list[dict[str, object]] = json.loads(done.stdout)
    return turns


def mask_ids(turns: Sequence[Mapping[str, object]]) -> str:
    """Turns without ids that follow from the conversation's key, which is another one in each store; hashes stay."""
    return re.sub(r'"([0-9a-f]{16}|[0-9a-f]{20})"', '"an id"', json.dumps(turns))


@pytest.mark.parametrize(
    ("kind", "layout", "carry_forward"),
    [
        ("sqlite", "in_place", "full"),
        ("sqlite", "library", "preview"),
        ("postgresql", "in_place", "preview"),
        ("postgresql", "library", "full"),
    ],
)
def test_a_new_process_goes_on_exactly_where_the_last_one_stopped(
    tmp_path: Path, kind: str, layout: str, carry_forward: str
) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}" if kind == "sqlite" else servers.shared().make_store_url()
    settings: dict[str, object] = {"layout": layout, "carry_forward": carry_forward, "model": "openai:gpt-5"}
    vault = tmp_path / "vault"
    fill(vault)
    with lamella.open("memory:", vault=vault) as engine:
        chat = engine.chat("long", **settings)
        for number, deeds in enumerate(SITTINGS):
            # The settings are written down at the first sitting, and hold for the others.
            gone_on = start_sitting(url, vault, number, settings if number == 0 else {})
            assert mask_ids(gone_on) == mask_ids(sit(chat, deeds))


def main() -> None:
    url, vault, number, settings = sys.argv[1:]
    turns = run_sitting(url, Path(vault), int(number), json.loads(settings))
    sys.stdout.buffer.write(json.dumps(turns).encode())


if __name__ == "__main__":
    main()
