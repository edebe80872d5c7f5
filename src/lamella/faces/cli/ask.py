"""``lamella ask``: one question for scripts. The answer goes to stdout, everything else to stderr."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from lamella import Turn
from lamella.attach import Attachment, Unknown, find_policy
from lamella.engine.checks import check_text
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.job import find_runner
from lamella.errors import SourceTooLargeError, TextError, UsageError
from lamella.faces.cli.access import JsonOption, StoreOption
from lamella.faces.cli.chat.attaching import attach_named, find_active, with_policy
from lamella.faces.cli.chat.commands.setting import read_given
from lamella.faces.cli.chat.opening import UNKEPT, ChatOptions, OpenChat, opened_to_talk, tell_demo
from lamella.faces.cli.chat.options import (
    ActiveOption,
    AnswerOption,
    KeptOption,
    ModelOption,
    PreviewOption,
    RunnerOption,
    SettingOption,
    SystemOption,
    VaultOption,
)
from lamella.faces.cli.chat.output import PlainOutput, follow
from lamella.faces.cli.chat.status import tell_call, tell_end, tell_requests
from lamella.faces.cli.tables.replay import print_turn
from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.stopping import told_where_it_waits
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.runners.registry import RUNNERS
from lamella.views.turns import view_turn
from lamella.wiring import NamedFiles, open_files

_LARGEST = 50_000_000
View = Callable[[StoredChat], Mapping[str, object]]
_AttachOption = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="A file, page, folder, [[Note]] or #tag to attach; may be repeated."),
]
_SelectOption = Annotated[
    list[str] | None, typer.Option(metavar="PATH:10-20", help="Lines of a file to attach; may be repeated.")
]
_DetachOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Take this out of what is attached; may be repeated.")
]
_PolicyOption = Annotated[
    str | None,
    typer.Option(help="What becomes of what is attached: follow, snapshot or pin.", metavar="NAME", show_default=False),
]
_FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Read what is attached anew, whatever is kept of a page or a document.")
]


def ask(
    *,
    question: Annotated[str | None, typer.Argument(help="The question; else it is read from stdin.")] = None,
    attach: _AttachOption = None,
    select: _SelectOption = None,
    active_note: ActiveOption = None,
    detach: _DetachOption = None,
    vault: VaultOption = None,
    model: ModelOption = None,
    runner: RunnerOption = None,
    chat: KeptOption = None,
    system: SystemOption = None,
    settings: SettingOption = None,
    policy: _PolicyOption = None,
    fresh: _FreshOption = False,
    preview: PreviewOption = False,
    max_tokens: AnswerOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Ask one question: the answer goes to stdout, everything else to stderr.

    @path in it attaches a file, as in a chat; so is what is piped in. Nothing is kept, unless --chat names a chat.

    lamella ask "What is decided here?" --attach examples/vault/decisions/one-index.md
    """
    given = read_given(system, settings)
    options = for_one_question(
        ChatOptions(
            store=store, chat=chat, model=model, vault=vault, answer=max_tokens, sends=not preview, settings=given
        )
    )
    find_policy(policy)
    if runner is not None:
        find_runner(runner, RUNNERS)
    text, piped = _read_question(question)
    files = open_files(vault)
    active = [find_active(active_note, files)] if active_note else []
    named = [*active, *_find(attach, select, files), *attach_named(text, files)]
    attached = (*(with_policy(one, policy, fresh=fresh) for one in named), *piped)
    brought = tuple(one.attachment() for one in attached)
    asked = Ask(text=text, attach=brought, detach=tuple(detach or ()), runner=runner)
    ask_once(asked, options, as_json=as_json)


def ask_once(asked: Ask, options: ChatOptions, *, as_json: bool, view: View = lambda _chat: {}) -> None:
    """Ask it, or only show what that would send; ``view`` is what else the JSON tells of the conversation."""
    output = PlainOutput(quiet=as_json)
    with opened_to_talk(options, output.reading) as opened:
        if options.sends:
            with told_where_it_waits(opened, options):
                _answer(opened, asked, output, view=view if as_json else None)
        else:
            _print_preview(opened.preview(asked), as_json=as_json)


def for_one_question(options: ChatOptions) -> ChatOptions:
    """The options of a command that asks once: kept in the chat that it names, else nowhere.

    Refuses a store that nothing is kept in, and a name that is none.
    """
    chat = options.chat
    if chat is not None and not chat.strip():
        raise UsageError("--chat is empty.", hint="Name the conversation to keep it in, or leave --chat out.")
    if options.store is not None and chat is None:
        raise UsageError("--store needs --chat.", hint="Say which conversation to keep it in, with --chat NAME.")
    return replace(options, store=options.store if chat else UNKEPT, lasts=False)


def _answer(opened: OpenChat, asked: Ask, output: PlainOutput, *, view: View | None) -> None:
    tell_demo(opened.model)
    turn = asyncio.run(_send(opened, asked, output))
    call = turn.ledger.calls[-1]
    if view is not None:
        tell_json({**opened.view_answer(turn), **view(opened.stored)})
    for line in (tell_end(call), tell_call(call), tell_requests(opened.stored)):
        if line:
            tell(line, err=True)


async def _send(opened: OpenChat, asked: Ask, output: PlainOutput) -> Turn:
    try:
        turn = await follow(opened.run(asked), output)
    finally:
        await opened.pool.close()
    assert turn is not None
    return turn


def _print_preview(turn: Turn, *, as_json: bool) -> None:
    if as_json:
        tell_json(view_turn(turn))
    else:
        print_turn(make_console(), turn)


def _find(paths: Sequence[str] | None, lines: Sequence[str] | None, files: NamedFiles) -> list[Attachment]:
    whole = [found for path in paths or () for found in files.find(path)]
    return [*whole, *(files.select(name) for name in lines or ())]


def _read_question(question: str | None) -> tuple[str, list[Attachment]]:
    """The question, and what was piped in beside it."""
    given = None if question == "-" else question
    piped = read_piped()
    if given is None:
        given, piped = piped.strip(), ""
    if not given.strip():
        raise UsageError("There is no question.", hint='Ask one: lamella ask "…", or pipe it in.')
    return check_text(given, "the question"), [Unknown(text=piped, title="stdin")] if piped.strip() else []


def read_piped() -> str:
    """What was piped in; a terminal is not waited for."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise SourceTooLargeError(f"stdin has more than {_LARGEST:,} bytes.", hint="Attach a part of it.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TextError(
            f"stdin is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.", hint="Convert it to UTF-8."
        ) from error
