"""Asking again from a script: another question in place of one that was asked, or another answer to it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

from lamella import Turn
from lamella.engine.checks import check_text
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.events import Event
from lamella.errors import UntrustedError
from lamella.faces.cli.access import opened_chat
from lamella.faces.cli.chat.opening import ChatOptions, OpenChat, find_waiting, opened_to_talk, tell_demo
from lamella.faces.cli.chat.output import PlainOutput, follow
from lamella.faces.cli.chat.status import tell_call, tell_end, tell_requests
from lamella.faces.cli.terminal.stopping import told_where_it_waits
from lamella.faces.cli.terminal.telling import tell, tell_json


def ask_instead(
    chat: str,
    message: str,
    text: str,
    *,
    model: str | None,
    answer_tokens: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Ask a text in place of a message; the answer goes to stdout, everything else to stderr."""
    asked = check_text(text, "the question")
    options = ChatOptions(store=store, chat=chat, model=model, answer=answer_tokens, lasts=False)
    _send(options, lambda stored: stored.edit(message, asked), as_json=as_json)


def answer_again(
    chat: str, message: str | None, *, model: str | None, answer_tokens: int | None, store: str | None, as_json: bool
) -> None:
    """Have a question answered again, by default the last, by another model if one is named."""
    options = ChatOptions(store=store, chat=chat, model=model, answer=answer_tokens, lasts=False)
    _send(options, lambda stored: stored.regenerate(message, model=model), as_json=as_json)


def go_on(
    chat: str,
    *,
    vault: Path | None,
    model: str | None,
    answer_tokens: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Have the question answered that waits, from where it was left; another model is asked it from its start."""
    options = ChatOptions(store=store, chat=chat, model=model, vault=vault, answer=answer_tokens, lasts=False)
    _send(options, lambda stored: find_waiting(stored, model), as_json=as_json)


def _send(options: ChatOptions, open_turn: Callable[[StoredChat], Turn], *, as_json: bool) -> None:
    assert options.chat is not None
    # A conversation that is not there is not begun by asking again in it.
    with opened_chat(options.store, options.chat) as stored:
        output, named = PlainOutput(quiet=as_json), replace(options, chat=stored.name)
    with opened_to_talk(named, output.reading) as opened:
        tell_demo(opened.model)
        with told_where_it_waits(opened, options):
            turn = asyncio.run(_follow(opened, open_turn, output))
        if as_json:
            tell_json(opened.view_answer(turn))
        call = turn.ledger.calls[-1]
        for line in (tell_end(call), tell_call(call), tell_requests(opened.stored)):
            if line:
                tell(line, err=True)


async def _follow(opened: OpenChat, open_turn: Callable[[StoredChat], Turn], output: PlainOutput) -> Turn:
    before = opened.stored.head
    turn = open_turn(opened.stored)
    try:
        done = await follow(_find_answer(opened, turn, before), output)
    finally:
        await opened.pool.close()
    assert done is not None
    return done


def _find_answer(opened: OpenChat, turn: Turn, before: str) -> AsyncGenerator[Event, None]:
    """The answer to the turn; a model of its own that nobody trusts leaves the conversation where it was."""
    try:
        return opened.run(turn)
    except UntrustedError:
        opened.stored.switch(before)
        raise
