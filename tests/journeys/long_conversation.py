"""A long conversation in sittings: what is done in each, and what its turns send.

``python -m tests.journeys.long_conversation`` does one of them on a store and prints what was sent.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bodies import as_json
from tests.unit.pictures import png

import lamella
from lamella import (
    ActiveNote,
    Conversation,
    Dataview,
    Folder,
    Image,
    Note,
    Pdf,
    Selection,
    Tool,
    ToolResult,
    Turn,
    Unknown,
    Url,
)
from lamella.schemas.prompts import turn_prompt_to_json

DOT = png(1, 1)
LONG = "".join(f"## Part {part}\n\n" + "Words to leave out. " * 40 + "\n\n" for part in range(12))
Deed = Callable[[Conversation], Turn | None]


def fill(vault: Path) -> None:
    """The notes that the conversation reads."""
    (vault / "docs").mkdir(parents=True)
    (vault / "spec.md").write_text("# Spec\n\n#red\n" + LONG, encoding="utf-8")
    (vault / "docs" / "api.md").write_text("# API\r\n- } { ]]>\r\n", encoding="utf-8", newline="")
    (vault / "active.md").write_text("Look: ![[dot.png]]\n", encoding="utf-8")
    (vault / "dot.png").write_bytes(DOT)


def name(chat: Conversation, turn: int, *, reply: bool = False) -> str:
    record = chat.turns()[turn]
    return record.reply.id if reply and record.reply else record.message.id


def ask(text: str, **given: object) -> Deed:
    return lambda chat: chat.ask(text, **given)  # type: ignore[arg-type]


def reply(text: str) -> Deed:
    def replying(chat: Conversation) -> None:
        chat.reply(text)

    return replying


def fork(chat: Conversation) -> None:
    chat.fork(name(chat, 1, reply=True))


def delete(chat: Conversation) -> None:
    chat.delete(name(chat, 0))


def switch(chat: Conversation) -> None:
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
    (fork, ask("Elsewhere.", attach=[Image(data=DOT)], drop=["p.pdf"], model="anthropic:claude-opus-5-5")),
    (
        lambda chat: chat.edit(name(chat, 1), "Edited {[[spec]]}."),
        reply("Better."),
        ask("On.", attach=[Dataview(path="spec.md", query="LIST", text="- a")], fold=True),
        reply("Yes."),
    ),
    (delete, ask("Without the first.", system={"memory": "Likes tea."}), reply("Fine.")),
    (switch, ask("Back again.", attach=[Note(path="docs/api.md")])),
)


def sit(chat: Conversation, deeds: Sequence[Deed]) -> list[dict[str, object]]:
    """Do one thing after another; every turn that comes of it, without what a ledger says of caches and money."""
    turns = [as_json(turn_prompt_to_json(turn)) for deed in deeds if (turn := deed(chat)) is not None]
    return [{key: turn[key] for key in ("turn", "envelope", "messages", "tokens", "prefix")} for turn in turns]


def run_sitting(url: str, vault: Path, number: int, settings: dict[str, object]) -> list[dict[str, object]]:
    with lamella.open(url, vault=vault) as engine:
        return sit(engine.chat("long", **settings), SITTINGS[number])


def main() -> None:
    url, vault, number, settings = sys.argv[1:]
    turns = run_sitting(url, Path(vault), int(number), json.loads(settings))
    sys.stdout.buffer.write(json.dumps(turns).encode())


if __name__ == "__main__":
    main()
