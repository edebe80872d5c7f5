"""``lamella chat``: talk with a model, at a terminal or through a pipe. Every message is kept as it is sent."""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from lamella.faces.cli.chat.attaching import Desktop
from lamella.faces.cli.chat_commands import COMMANDS, Leaving, run_command
from lamella.faces.cli.chat_opening import (
    UNKEPT,
    AnswerOption,
    ModelOption,
    Session,
    VaultOption,
    Wish,
    opened_session,
    tell_demo,
)
from lamella.faces.cli.chat_showing import PlainShow, Show
from lamella.faces.cli.chat_talking import Talking
from lamella.faces.cli.chat_typing import PROMPT, PipedTyping, Typing
from lamella.faces.cli.lines import show_line, show_lines
from lamella.faces.cli.opened import StoreOption
from lamella.faces.cli.streams import discard_stdout

_GLANCE = 8


def chat(
    *,
    chat: Annotated[
        str | None, typer.Argument(help="A conversation to go on with, or a name for a new one.", show_default=False)
    ] = None,
    vault: VaultOption = None,
    model: ModelOption = None,
    last: Annotated[bool, typer.Option("--last", help="Go on with the conversation that changed last.")] = False,
    strata: Annotated[
        bool, typer.Option("--strata", help="Show the layers of each turn, and what was cached.")
    ] = False,
    max_tokens: AnswerOption = 1_024,
    store: StoreOption = None,
) -> int:
    """Talk with a model. Without --model that is a small demo model in this process, which needs no key.

    @path in a message attaches a file, /help shows what else there is. What is piped in is taken line by line.

    lamella chat garden --vault examples/vault
    """
    by_hand = sys.stdin is not None and sys.stdin.isatty()
    at_terminal = by_hand and sys.stdout.isatty()
    show = _make_show(at_terminal=at_terminal)
    wish = Wish(store=store, chat=chat, model=model, vault=vault, last=last, answer=max_tokens)
    with opened_session(wish, show.reading) as session, asyncio.Runner() as runner:
        desktop = Desktop(vault)
        talking = Talking(session, runner, show=show, desktop=desktop, strata=strata, by_hand=by_hand)
        _greet(session)
        try:
            typing = _make_typing(talking, runner) if at_terminal else PipedTyping()
            _talk(talking, typing, at_terminal=at_terminal)
        except (BrokenPipeError, SystemExit):
            # Nobody reads the answers any more: what is left is not sent. Rich leaves a closed pipe with SystemExit.
            discard_stdout()
            talking.failed = True
        finally:
            talking.leave()
            runner.run(session.office.close())
            _part(session, wish)
    return 1 if talking.failed and not at_terminal else 0


def _make_show(*, at_terminal: bool) -> Show:
    if not at_terminal or os.environ.get("TERM") == "dumb":
        return PlainShow()
    from lamella.faces.cli.chat_markdown import MarkdownShow  # only a terminal needs it

    return MarkdownShow()


def _make_typing(talking: Talking, runner: asyncio.Runner) -> Typing:
    from lamella.faces.cli.chat_prompt import PromptTyping, Told  # only a terminal needs it

    told = Told(standing=talking.tell_standing, meanwhile=talking.tell_meanwhile)
    return PromptTyping(runner, commands=tuple(COMMANDS), desktop=talking.desktop, told=told)


def _talk(talking: Talking, typing: Typing, *, at_terminal: bool) -> None:
    while True:
        try:
            line = typing.read()
        except KeyboardInterrupt:
            if not at_terminal:
                raise
            typer.echo("Ctrl-D or /quit leaves.", err=True)
            continue
        if line is None:
            return
        try:
            _take(talking, line, at_terminal=at_terminal)
        except Leaving:
            return


def _take(talking: Talking, line: str, *, at_terminal: bool) -> None:
    if line.startswith("/") and not line.startswith("//"):
        run_command(talking, line)
    elif line.strip():
        talking.say(line[1:] if line.startswith("//") else line)
        if not at_terminal:
            typer.echo(f"[{talking.tell_standing()}]", err=True)


def _greet(session: Session) -> None:
    tell_demo(session.model)
    turns = len(session.stored.turns())
    stands = f"goes on after {turns:,} {'turn' if turns == 1 else 'turns'}" if turns else "is new"
    told = f"{show_line(session.stored.id)} {stands}, with {show_line(session.model)}."
    typer.echo(f"{told} /help shows what else there is.", err=True)
    if turns:
        typer.echo(_tell_last(session), err=True)


def _tell_last(session: Session) -> str:
    """The last exchange, as far as it fits a glance."""
    last = session.stored.turns()[-1]
    lines = show_lines(last.reply.text if last.reply else "").strip().splitlines()
    more = ["…"] if len(lines) > _GLANCE else []
    return "\n".join((f"{PROMPT}{show_line(last.message.text)}", *lines[:_GLANCE], *more))


def _part(session: Session, wish: Wish) -> None:
    if session.stored.turns() and wish.store != UNKEPT:
        with suppress(OSError):
            typer.echo(f"Kept. Go on with: lamella chat {show_line(session.stored.id)}", err=True)
