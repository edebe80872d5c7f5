"""``lamella ask``: ask one question from a script.

The answer goes to stdout, everything else to stderr.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from lamella import Turn
from lamella.attach import Attachment, Unknown, parse_policy
from lamella.cli.access import JsonOption, StoreOption
from lamella.cli.chat.opening import (
    MEMORY_STORE_URL,
    ChatOptions,
    OpenedConversation,
    open_for_chat,
    print_demo_model_notice,
)
from lamella.cli.chat.output import PlainOutput, show_events
from lamella.cli.chat.setting_commands import parse_setting_options
from lamella.cli.chat.status import describe_stop_reason, format_model_call, format_requests_total
from lamella.cli.console import make_console
from lamella.cli.interrupts import raise_resume_hint_on_interrupt
from lamella.cli.mentions import get_active_note, resolve_and_print_mentions, with_policy
from lamella.cli.options import (
    ActiveNoteOption,
    ChatOption,
    MaxTokensOption,
    ModelOption,
    PreviewOption,
    RunnerOption,
    SettingOption,
    SystemOption,
    VaultOption,
)
from lamella.cli.output import print_json, print_text
from lamella.cli.replay_tables import print_turn
from lamella.conversation.conversation import Conversation
from lamella.conversation.runner_context import get_runner
from lamella.conversation.turn import TurnRequest
from lamella.conversation.validation import check_text
from lamella.errors import SourceTooLargeError, TextError, UsageError
from lamella.runners.registry import RUNNERS
from lamella.schemas.answers import TurnAnswerJson
from lamella.schemas.prompts import turn_prompt_to_json
from lamella.wiring import AttachmentResolver, open_attachment_resolver

_MAX_STDIN_BYTES = 50_000_000
MakeBody = Callable[[TurnAnswerJson, Conversation], TurnAnswerJson]
_AttachOption = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="File, URL, folder, [[Note]] or #tag to attach. Repeatable."),
]
_SelectOption = Annotated[
    list[str] | None, typer.Option(metavar="PATH:10-20", help="Lines of a file to attach. Repeatable.")
]
_DetachOption = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Attachment to remove. Repeatable.")]
_PolicyOption = Annotated[
    str | None,
    typer.Option(
        help="follow: send changes to the file; snapshot: keep the first version; pin: never shorten.",
        metavar="NAME",
        show_default="follow",
    ),
]
_FreshOption = Annotated[bool, typer.Option("--fresh", help="Ignore the cache and read attachments again.")]


def ask(
    *,
    question: Annotated[str | None, typer.Argument(help="The question.", show_default="read from stdin")] = None,
    attach: _AttachOption = None,
    select: _SelectOption = None,
    active_note: ActiveNoteOption = None,
    detach: _DetachOption = None,
    vault: VaultOption = None,
    model: ModelOption = None,
    runner: RunnerOption = None,
    chat: ChatOption = None,
    system: SystemOption = None,
    policy: _PolicyOption = None,
    fresh: _FreshOption = False,
    preview: PreviewOption = False,
    max_tokens: MaxTokensOption = None,
    settings: SettingOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Ask one question. The answer goes to stdout, everything else to stderr.

    @path in the question attaches a file. Piped input is attached too. --chat NAME stores the question and the answer.

    lamella ask "What is decided here?" --attach examples/vault/decisions/one-index.md
    """
    given = parse_setting_options(system, settings)
    options = resolve_single_question_options(
        ChatOptions(
            store=store,
            chat=chat,
            model=model,
            vault=vault,
            max_answer_tokens=max_tokens,
            sends_request=not preview,
            settings=given,
        )
    )
    parse_policy(policy)
    if runner is not None:
        get_runner(runner, RUNNERS)
    text, piped = _read_question(question)
    files = open_attachment_resolver(vault)
    active = [get_active_note(active_note, files)] if active_note else []
    named = [*active, *_resolve_attachments(attach, select, files), *resolve_and_print_mentions(text, files)]
    attached = (*(with_policy(one, policy, fresh=fresh) for one in named), *piped)
    brought = tuple(one.to_artifact() for one in attached)
    turn_request = TurnRequest(text=text, attach=brought, detach=tuple(detach or ()), runner=runner)
    ask_once(turn_request, options, as_json=as_json)


def ask_once(
    turn_request: TurnRequest,
    options: ChatOptions,
    *,
    as_json: bool,
    make_body: MakeBody = lambda answer, _chat: answer,
) -> TurnAnswerJson | None:
    """Ask the question and return the answer, or only show the request that would be sent.

    ``make_body`` may add fields about the conversation to the JSON output.
    """
    output = PlainOutput(quiet=as_json)
    with open_for_chat(options, output) as opened:
        if options.sends_request:
            with raise_resume_hint_on_interrupt(opened, options):
                return _send_and_print(opened, turn_request, output, make_body=make_body if as_json else None)
        _print_preview(opened.preview(turn_request), as_json=as_json)
        return None


def resolve_single_question_options(options: ChatOptions) -> ChatOptions:
    """Check and complete the options of a command that asks once: only ``--chat NAME`` stores the conversation.

    Raises:
        UsageError: ``--chat`` is blank, or ``--store`` is given without ``--chat``.
    """
    chat = options.chat
    if chat is not None and not chat.strip():
        raise UsageError("--chat is empty.", hint="Give the name of a conversation, or leave --chat out.")
    if options.store is not None and chat is None:
        raise UsageError("--store needs --chat.", hint="Add --chat NAME to say which conversation stores the answer.")
    return replace(options, store=options.store if chat else MEMORY_STORE_URL, expects_more_turns=False)


def _send_and_print(
    opened: OpenedConversation,
    turn_request: TurnRequest,
    output: PlainOutput,
    *,
    make_body: MakeBody | None,
) -> TurnAnswerJson:
    print_demo_model_notice(opened.model)
    turn = asyncio.run(_run_turn(opened, turn_request, output))
    call, answer = turn.ledger.calls[-1], opened.answer_to_json(turn)
    if make_body is not None:
        print_json(make_body(answer, opened.conversation))
    for line in (describe_stop_reason(call), format_model_call(call), format_requests_total(opened.conversation)):
        if line:
            print_text(line, err=True)
    return answer


async def _run_turn(opened: OpenedConversation, turn_request: TurnRequest, output: PlainOutput) -> Turn:
    try:
        turn = await show_events(opened.run(turn_request), output)
    finally:
        await opened.pool.close()
    assert turn is not None
    return turn


def _print_preview(turn: Turn, *, as_json: bool) -> None:
    if as_json:
        print_json(turn_prompt_to_json(turn))
    else:
        print_turn(make_console(), turn)


def _resolve_attachments(
    paths: Sequence[str] | None, selections: Sequence[str] | None, files: AttachmentResolver
) -> list[Attachment]:
    whole = [found for path in paths or () for found in files.resolve(path)]
    return [*whole, *(files.select_lines(name) for name in selections or ())]


def _read_question(question: str | None) -> tuple[str, list[Attachment]]:
    """Return the question, and piped input as an attachment.

    Without a question argument, or with ``-``, the piped input is the question.
    """
    given = None if question == "-" else question
    piped = read_piped_text()
    if given is None:
        given, piped = piped.strip(), ""
    if not given.strip():
        raise UsageError("Missing question.", hint='Example: lamella ask "…", or pipe the question in.')
    return check_text(given, "the question"), [Unknown(text=piped, title="stdin")] if piped.strip() else []


def read_piped_text() -> str:
    """Return piped input as text, or an empty text if stdin is a terminal.

    Raises:
        SourceTooLargeError: There are more than 50,000,000 bytes.
        TextError: The input is not UTF-8.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read(_MAX_STDIN_BYTES + 1)
    if len(data) > _MAX_STDIN_BYTES:
        raise SourceTooLargeError(f"stdin has more than {_MAX_STDIN_BYTES:,} bytes.", hint="Attach only a part of it.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TextError(
            f"stdin is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.", hint="Convert it to UTF-8."
        ) from error
