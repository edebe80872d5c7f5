"""``lamella code solve`` and ``filter``: requests of the documented endpoints, without a server; and ``state``."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamella.engine.dialogue.ask import Ask
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.chat.options import ModelOption, VaultOption
from lamella.faces.cli.terminal.lines import show_lines
from lamella.faces.cli.terminal.telling import tell, tell_json, write_exactly
from lamella.runners.kinds.state import read_state
from lamella.views.code.solutions import view_state
from lamella.wiring import filter_request, open_solver, read_body, solve_request

_STDIN = Path("-")
_RequestArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A request as JSON; - is standard input.", show_default=False)
]


def state(*, chat: ChatName, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Tell which instructions stand in the prompt of a conversation."""
    with opened_chat(store, chat) as stored:
        found = read_state(stored.preview(Ask(text="")).envelope.prompt)
        if as_json:
            tell_json(view_state(stored.id, found))
            return
    tell(f"In the prompt: {', '.join(found.given)}." if found.given else "No instructions are in the prompt.")


def solve(
    *,
    file: _RequestArgument = _STDIN,
    vault: VaultOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Answer a request with prompt, messages, code and state: the reply, as JSON with the whole history and the state.

    It is kept where the request names a conversation.
    """
    body = read_body(file)

    async def answer() -> dict[str, object]:
        async with open_solver(body, store=store, vault=vault, model=model) as engine:
            return await solve_request(engine, body)

    found = asyncio.run(answer())
    if as_json:
        tell_json(found)
    else:
        tell(show_lines(str(found["data"])))


def filter_files(*, file: _RequestArgument = _STDIN, as_json: JsonOption = False) -> None:
    """Choose from files that a request has with their contents, for its question; as a model would read it."""
    found = filter_request(read_body(file))
    if as_json:
        tell_json(found)
    else:
        write_exactly(str(found["text"]))
