"""``lamella chat``: talk with a model, at a terminal or through a pipe. Every message is kept as it is sent."""

import asyncio
import sys
from contextlib import nullcontext, redirect_stdout, suppress
from typing import Annotated

import typer

from lamella.faces.cli.access import StoreOption, list_names, name_command
from lamella.faces.cli.chat.attaching import find_active
from lamella.faces.cli.chat.commands import staging
from lamella.faces.cli.chat.commands.setting import read_given
from lamella.faces.cli.chat.input import Input, LineInput, PipedInput
from lamella.faces.cli.chat.opening import UNKEPT, ChatOptions, opened_to_talk
from lamella.faces.cli.chat.options import (
    ActiveOption,
    AnswerOption,
    ModelOption,
    RunnerOption,
    SettingOption,
    SystemOption,
    VaultOption,
)
from lamella.faces.cli.chat.output import JsonOutput, Output, PlainOutput
from lamella.faces.cli.chat.slash import ChatEnd, list_arguments, run_command
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.terminal.streams import discard_stdout
from lamella.faces.cli.terminal.telling import is_dumb, tell
from lamella.wiring import open_files

_NameArgument = Annotated[
    str | None,
    typer.Argument(
        help="A conversation to go on with, or a name for a new one.", show_default=False, autocompletion=list_names
    ),
]
_LastOption = Annotated[bool, typer.Option("--last", help="Go on with the conversation that changed last.")]
_LinesOption = Annotated[bool, typer.Option("--json", help="Print JSON lines: an object per event, as it happens.")]
_WorkflowOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Work in the stages of this workflow, such as paper: its name, or the path of its file.",
        show_default=False,
    ),
]
_StrataOption = Annotated[bool, typer.Option("--strata", help="Show the layers of each turn, and what was cached.")]


def chat(
    *,
    chat: _NameArgument = None,
    vault: VaultOption = None,
    model: ModelOption = None,
    runner: RunnerOption = None,
    workflow: _WorkflowOption = None,
    active_note: ActiveOption = None,
    last: _LastOption = False,
    strata: _StrataOption = False,
    system: SystemOption = None,
    settings: SettingOption = None,
    max_tokens: AnswerOption = None,
    store: StoreOption = None,
    as_json: _LinesOption = False,
) -> int:
    """Talk with a model. Without --model that is a small demo model in this process, which needs no key.

    @path in a message attaches a file, /help shows what else there is. What is piped in is taken line by line.

    lamella chat garden --vault examples/vault
    """
    by_hand = sys.stdin is not None and sys.stdin.isatty()
    at_terminal = by_hand and sys.stdout.isatty()
    drawn = at_terminal and not is_dumb() and not as_json
    out = sys.stdout
    output = JsonOutput(out) if as_json else _make_output(drawn=drawn)
    given = read_given(system, settings, runner=runner)
    options = ChatOptions(
        store=store, chat=chat, model=model, vault=vault, last=last, answer=max_tokens, sticky=True, settings=given
    )
    # What programs read is all of stdout.
    words = redirect_stdout(sys.stderr) if as_json else nullcontext()
    with words, opened_to_talk(options, output.reading) as opened, asyncio.Runner() as loop:
        files = open_files(vault)
        talk = TerminalChat(opened, loop, output=output, files=files, strata=strata, by_hand=by_hand)
        talk.active = find_active(active_note, files).path if active_note else ""
        if workflow is not None:
            staging.take_up(talk, workflow)
        talk.introduce()
        try:
            plain = LineInput(talk.tell_attached) if at_terminal else PipedInput()
            _talk(talk, _make_input(talk, loop) if drawn else plain, at_terminal=at_terminal, drawn=drawn)
        except (BrokenPipeError, SystemExit):
            # Nobody reads the answers any more: what is left is not sent. Rich leaves a closed pipe with SystemExit.
            discard_stdout(out)
            talk.failed = True
        finally:
            _leave(talk, loop, options)
    return 1 if talk.failed and not at_terminal else 0


def _make_output(*, drawn: bool) -> Output:
    if not drawn:
        return PlainOutput()
    from lamella.faces.cli.chat.markdown import MarkdownOutput  # only a terminal needs it

    return MarkdownOutput()


def _make_input(talk: TerminalChat, runner: asyncio.Runner) -> Input:
    from lamella.faces.cli.chat.prompt import PromptInput, PromptStatus  # only a terminal needs it

    told = PromptStatus(attached=talk.tell_attached, standing=talk.tell_standing, meanwhile=talk.tell_meanwhile)
    return PromptInput(runner, commands=list_arguments(talk), files=talk.files, told=told)


def _talk(talk: TerminalChat, source: Input, *, at_terminal: bool, drawn: bool) -> None:
    while True:
        talk.wait()
        try:
            line = source.read()
        except KeyboardInterrupt:
            if not at_terminal:
                raise
            tell("Ctrl-D or /quit leaves.", err=True)
            continue
        talk.wake()
        if line is None:
            return
        try:
            _take(talk, line, drawn=drawn)
        except ChatEnd:
            return


def _take(talk: TerminalChat, line: str, *, drawn: bool) -> None:
    if line.startswith("/") and not line.startswith("//"):
        asked = run_command(talk, line)
    elif asked := bool(line.strip()):
        talk.say(line[1:] if line.startswith("//") else line)
    if asked and not drawn:
        tell(f"{talk.tell_attached()}[{talk.tell_standing()}]", err=True)


def _leave(talk: TerminalChat, runner: asyncio.Runner, options: ChatOptions) -> None:
    talk.leave()
    opened = talk.opened
    runner.run(opened.pool.close())
    if opened.stored.turns() and options.store != UNKEPT:
        with suppress(OSError):
            model = opened.name_again()
            again = name_command("chat", opened.stored.name, model=model, store=options.store, vault=options.vault)
            tell(f"Kept. Go on with: {again}", err=True)
