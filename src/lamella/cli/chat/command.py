"""``lamella chat``: talk with a model at a terminal or through a pipe; each message is stored when it is sent."""

import asyncio
import sys
from contextlib import nullcontext, redirect_stdout, suppress
from typing import Annotated

import typer

from lamella.cli.access import StoreOption, complete_chat_names, format_command
from lamella.cli.chat import conversation_commands
from lamella.cli.chat.input import LineInput, MessageInput, PipedInput
from lamella.cli.chat.opening import MEMORY_STORE_URL, ChatOptions, open_for_chat
from lamella.cli.chat.output import AnswerDisplay, JsonOutput, PlainOutput
from lamella.cli.chat.session import ChatSession
from lamella.cli.chat.setting_commands import parse_setting_options
from lamella.cli.chat.slash import ExitChat, get_argument_completers, run_slash_command
from lamella.cli.interrupts import ignore_interrupts, ignore_interrupts_until_exit, raise_on_interrupt
from lamella.cli.mentions import get_active_note
from lamella.cli.options import (
    ActiveNoteOption,
    MaxTokensOption,
    ModelOption,
    RunnerOption,
    SettingOption,
    SystemOption,
    VaultOption,
)
from lamella.cli.output import is_dumb_terminal, print_text
from lamella.cli.streams import discard_stdout
from lamella.wiring import open_attachment_resolver

_NameArgument = Annotated[
    str | None,
    typer.Argument(
        help="Conversation to continue, or a name for a new one.",
        show_default="a new conversation",
        autocompletion=complete_chat_names,
    ),
]
_LastOption = Annotated[bool, typer.Option("--last", help="Continue the conversation that changed last.")]
_JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per event and line.")]
_WorkflowOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Workflow to work through: a name such as paper, or the path of its file.",
        show_default=False,
    ),
]
_StrataOption = Annotated[bool, typer.Option("--strata", help="Show the layers of each prompt and what was cached.")]


def chat(
    *,
    chat: _NameArgument = None,
    vault: VaultOption = None,
    model: ModelOption = None,
    runner: RunnerOption = None,
    workflow: _WorkflowOption = None,
    active_note: ActiveNoteOption = None,
    last: _LastOption = False,
    strata: _StrataOption = False,
    system: SystemOption = None,
    settings: SettingOption = None,
    max_tokens: MaxTokensOption = None,
    store: StoreOption = None,
    as_json: _JsonLinesOption = False,
) -> int:
    """Talk with a model.

    Without --model a small demo model runs in this process; it needs no API key. @path in a message attaches a file,
    and /help lists all commands of the chat. Piped input is read line by line, one message per line.

    lamella chat garden --vault examples/vault

    lamella chat --last
    """
    by_hand = sys.stdin is not None and sys.stdin.isatty()
    at_terminal = by_hand and sys.stdout.isatty()
    drawn = at_terminal and not is_dumb_terminal() and not as_json
    out = sys.stdout
    output = JsonOutput(out) if as_json else _make_output(can_redraw=drawn)
    given = parse_setting_options(system, settings, runner=runner)
    options = ChatOptions(
        store=store,
        chat=chat,
        model=model,
        vault=vault,
        opens_last=last,
        max_answer_tokens=max_tokens,
        sticky_attachments=True,
        settings=given,
    )
    # With --json all of stdout is JSON lines, so text for people goes to stderr.
    words = redirect_stdout(sys.stderr) if as_json else nullcontext()
    with words, open_for_chat(options, output) as opened, asyncio.Runner() as loop:
        files = open_attachment_resolver(vault)
        session = ChatSession(opened, loop, output=output, files=files, shows_strata=strata, is_interactive=by_hand)
        session.active_note = get_active_note(active_note, files).path if active_note else ""
        if workflow is not None:
            conversation_commands.start_workflow(session, workflow)
        session.print_introduction()
        try:
            plain = LineInput(session.attached_status) if at_terminal else PipedInput()
            _run_chat_loop(
                session, _make_input(session, loop) if drawn else plain, is_interactive=at_terminal, can_redraw=drawn
            )
        except (BrokenPipeError, SystemExit):
            # The reader closed the pipe, so the remaining messages are not sent. Rich turns this into SystemExit.
            discard_stdout(out)
            session.failed = True
        finally:
            _finish_session(session, loop, options)
    return 1 if session.failed and not at_terminal else 0


def _make_output(*, can_redraw: bool) -> AnswerDisplay:
    if not can_redraw:
        return PlainOutput()
    from lamella.cli.chat.output import MarkdownOutput  # only needed at a terminal

    return MarkdownOutput()


def _make_input(session: ChatSession, runner: asyncio.Runner) -> MessageInput:
    from lamella.cli.chat.prompt import InputLineStatus, PromptInput  # only needed at a terminal

    status = InputLineStatus(
        get_attachments=session.attached_status,
        get_status=session.status_line,
        get_background_status=session.background_status,
    )
    return PromptInput(runner, commands=get_argument_completers(session), files=session.files, status=status)


def _run_chat_loop(session: ChatSession, source: MessageInput, *, is_interactive: bool, can_redraw: bool) -> None:
    # Ctrl-C only counts while a line is read or handled. At any other moment, many in a row would end the chat.
    with ignore_interrupts() if is_interactive else nullcontext():
        while True:
            try:
                with raise_on_interrupt() if is_interactive else nullcontext():
                    session.start_keep_alive()
                    line = source.read()
                    session.stop_keep_alive()
                    if line is None:
                        return
                    _handle_line(session, line, can_redraw=can_redraw)
            except ExitChat:
                return
            except KeyboardInterrupt:
                # Also one that comes just before or after what a command or an answer handles itself.
                if not is_interactive:
                    raise
                ignore_interrupts_until_exit()
                print_text("Press Ctrl-D or type /quit to leave.", err=True)


def _handle_line(session: ChatSession, line: str, *, can_redraw: bool) -> None:
    # A message that begins with a slash is typed with two, and the first one is removed.
    if line.startswith("/") and not line.startswith("//"):
        asked = run_slash_command(session, line)
    elif asked := bool(line.strip()):
        session.send_message(line[1:] if line.startswith("//") else line)
    if asked and not can_redraw:
        print_text(f"{session.attached_status()}[{session.status_line()}]", err=True)


def _finish_session(session: ChatSession, runner: asyncio.Runner, options: ChatOptions) -> None:
    session.stop_background()
    opened = session.opened_conversation
    runner.run(opened.pool.close())
    if opened.conversation.turns() and options.store != MEMORY_STORE_URL:
        with suppress(OSError):
            model = opened.model_option_value()
            again = format_command(
                "chat", opened.conversation.name, model=model, store=options.store, vault=options.vault
            )
            print_text(f"Saved. Continue with: {again}", err=True)
