"""``lamella code solve``, ``filter`` and ``state``: the documented endpoints without a server."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from lamella.attach import Attachment, Unknown
from lamella.cli.access import ChatArgument, JsonOption, StoreOption, open_conversation
from lamella.cli.ask import MakeBody, ask_once, read_piped_text, resolve_single_question_options
from lamella.cli.chat.opening import ChatOptions
from lamella.cli.chat.setting_commands import parse_setting_options
from lamella.cli.code_fix import ChangeOffer, read_named_files, run_check
from lamella.cli.options import (
    ChatOption,
    MaxTokensOption,
    ModelOption,
    PreviewOption,
    SettingOption,
    SystemOption,
    VaultOption,
)
from lamella.cli.output import escape_lines, escape_to_short_line, print_json, print_text, show_if_slow, write_unwrapped
from lamella.cli.tables import print_left_out, print_selection
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn import TurnRequest
from lamella.conversation.validation import check_text
from lamella.errors import UsageError
from lamella.hints import quote_for_shell
from lamella.runners.code_questions import (
    CHANGE_INSTRUCTION,
    TASKS_WITH_REQUEST,
    CodeTask,
    CodeTaskTurn,
    build_task_turn,
    state_from_prompt,
)
from lamella.schemas.answers import CodeAnswerJson, CodeFixJson, TurnAnswerJson
from lamella.schemas.code import CodeStateJson, SolutionJson, selection_to_json
from lamella.wiring import (
    DEFAULT_CODE_BUDGET,
    MAX_CODE_BUDGET,
    list_conversations,
    open_attachment_resolver,
    open_engine_for_request,
    read_files_from_json,
    read_json_request,
    select_code,
    select_files,
    select_files_for_request,
    selection_to_attachments,
    solve_request,
    with_configured_model,
)

if TYPE_CHECKING:
    from lamella.ports import CodeSelection

_STDIN = Path("-")
# Ends of an answer that was not cut off.
_COMPLETE_STOPS = ("end", "sequence")
_RequestArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="JSON request; - reads stdin.", show_default=False)
]


def print_code_state(*, chat: ChatArgument, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """List the task instructions in the prompt of a conversation."""
    with open_conversation(store, chat) as conversation_log:
        found = state_from_prompt(conversation_log.preview(TurnRequest(text="")).envelope.prompt)
        if as_json:
            print_json(CodeStateJson(conversation=conversation_log.id, chat_state=found.to_dict()))
            return
    print_text(
        f"In the prompt: {', '.join(found.task_names)}." if found.task_names else "No task instructions in the prompt."
    )


def solve(
    *,
    file: _RequestArgument = _STDIN,
    vault: VaultOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Answer a JSON request with prompt, messages, code and state.

    --json prints the reply with the whole history and the new state. If the request names a conversation, the turn is
    stored there.
    """
    body = read_json_request(file)
    body, warnings = with_configured_model(body, model)

    async def answer() -> SolutionJson:
        async with open_engine_for_request(body, store=store, vault=vault, model=model) as engine:
            return await solve_request(engine, body, warnings=warnings)

    found = asyncio.run(answer())
    if as_json:
        print_json(found)
    else:
        for warning in warnings:
            print_text(escape_to_short_line(warning), err=True)
        print_text(escape_lines(found.data))


def filter_files(*, file: _RequestArgument = _STDIN, as_json: JsonOption = False) -> None:
    """Select from the files in a JSON request, and print them as a model reads them."""
    found = select_files_for_request(read_json_request(file))
    if as_json:
        print_json(found)
    else:
        write_unwrapped(found.text)


# Find the files of a folder that a conversation already uses, as a hint for selecting more.


def list_conversation_files(chat: str | None, folder: Path | None, *, store: str | None) -> tuple[str, ...]:
    """Return the paths, relative to the folder, of files that a conversation has; empty for a new conversation."""
    if chat is None or folder is None:
        return ()
    if not any(
        chat in (one.name, one.conversation, one.title) for one in list_conversations(store, missing_is_empty=True)
    ):
        return ()
    with open_conversation(store, chat) as conversation_log:
        return tuple(_iter_attached_files(conversation_log, folder))


def _iter_attached_files(chat: "Conversation", folder: Path) -> Iterator[str]:
    """Yield the files that the user attached.

    Files of an earlier selection are skipped, or each selection would confirm itself.
    """
    root = folder.resolve()
    for one in chat.library():
        path = Path(one.id.partition("#")[0]).absolute()
        if one.via is None and path.is_relative_to(root):
            yield path.relative_to(root).as_posix()


# ``lamella code explain``, its sibling tasks and ``analyse``: ask about code, answered as ``lamella ask`` does.

_TASK_DESCRIPTIONS = {
    CodeTask.EXPLAIN: "Explain code: its purpose, how it works and common mistakes.",
    CodeTask.PROBLEMS: "Find problems in code, worst first, each with a fix.",
    CodeTask.TESTS: "Write tests for code.",
    CodeTask.OPTIMISE: "Optimise code and explain what was slow.",
    CodeTask.COMMENT: "Add comments to code and change nothing else.",
    CodeTask.COMPLETE: "Complete unfinished code.",
}
_FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE[:LINES]", help="Files, or lines such as main.py:10-20. Piped input is attached too."),
]
_CheckOption = Annotated[
    str | None,
    typer.Option(
        metavar="CMD",
        help="Command to run before and after the change. Without piped input, its output is the error.",
        show_default=False,
    ),
]
_YesOption = Annotated[bool, typer.Option("--yes", help="Apply the change without asking.")]
_SayOption = Annotated[str, typer.Option("--say", metavar="TEXT", help="Additional instructions.", show_default=False)]


def add_task_commands(app: typer.Typer) -> None:
    """Add one command per built-in code task."""
    for kind in TASKS_WITH_REQUEST:
        if kind is CodeTask.FIX:
            app.command(kind.value)(fix)
        else:
            app.command(kind.value, help=_TASK_DESCRIPTIONS[kind])(_make_task_command(kind))


def _make_task_command(task: CodeTask) -> Callable[..., None]:
    def run(
        *,
        files: _FilesArgument = None,
        say: _SayOption = "",
        vault: VaultOption = None,
        model: ModelOption = None,
        chat: ChatOption = None,
        system: SystemOption = None,
        settings: SettingOption = None,
        preview: PreviewOption = False,
        max_tokens: MaxTokensOption = None,
        as_json: JsonOption = False,
        store: StoreOption = None,
    ) -> None:
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
        about = _resolve_code(task, files or (), vault, piped=read_piped_text(), model=model, text=say)
        _send_task(build_task_turn(task, *about, text=say), options, as_json=as_json)

    return run


def fix(
    *,
    files: _FilesArgument = None,
    say: _SayOption = "",
    check: _CheckOption = None,
    yes: _YesOption = False,
    vault: VaultOption = None,
    model: ModelOption = None,
    chat: ChatOption = None,
    system: SystemOption = None,
    settings: SettingOption = None,
    preview: PreviewOption = False,
    max_tokens: MaxTokensOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Fix a piped-in error: `make 2>&1 | lamella code fix`.

    Files that the error names are attached. If the answer changes files, the diff is shown and applied after a yes.
    """
    options = resolve_single_question_options(
        ChatOptions(
            store=store,
            chat=chat,
            model=model,
            vault=vault,
            max_answer_tokens=max_tokens,
            sends_request=not preview,
            settings=parse_setting_options(system, settings),
        )
    )
    piped, checked = read_piped_text(), None
    if check is not None:
        checked = run_check(check)
        print_text(f"check: {checked.outcome}", err=True)
        if checked.exit_code == 0 and not piped.strip() and not say.strip():
            raise UsageError("The check passes, so there is no error to fix.", hint="Describe one with --say TEXT.")
        if checked.exit_code and not piped.strip():
            piped = checked.output if checked.output.strip() else f"{checked.command}: {checked.outcome}\n"
    about = _resolve_code(CodeTask.FIX, files or (), vault, piped=piped, model=model, text=say)
    turn = build_task_turn(CodeTask.FIX, *about, text=say)
    turn = turn._replace(attach=(*turn.attach, CHANGE_INSTRUCTION))
    offer = ChangeOffer(folder=vault, check=checked, applies_without_asking=yes)

    def add_change(answer: TurnAnswerJson, conversation: Conversation) -> CodeFixJson:
        offer.apply_if_confirmed(answer.answer, is_complete=_is_complete(answer), asks=False)
        return offer.add_to_json(_with_chat_state(answer, conversation))

    answer = _send_task(turn, options, as_json=as_json, make_body=add_change)
    if answer is not None and as_json:
        offer.exit_if_unsuccessful()
    elif answer is not None:
        offer.apply_if_confirmed(answer.answer, is_complete=_is_complete(answer), asks=True)
        offer.raise_if_unsuccessful()


def _is_complete(answer: TurnAnswerJson) -> bool:
    return answer.call.stop in _COMPLETE_STOPS


def analyse(
    *,
    path: Annotated[Path, typer.Argument(help="Folder with the code.")],
    question: Annotated[str, typer.Option("--question", metavar="TEXT", help="Question about the code.")],
    budget: Annotated[
        int, typer.Option(min=1, max=MAX_CODE_BUDGET, help="Maximum tokens of the selected files.")
    ] = DEFAULT_CODE_BUDGET,
    model: ModelOption = None,
    chat: ChatOption = None,
    system: SystemOption = None,
    settings: SettingOption = None,
    preview: PreviewOption = False,
    max_tokens: MaxTokensOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Ask about a codebase, with the files that `code select` selects.

    lamella code analyse . --question "Where are retries decided?"
    """
    given = parse_setting_options(system, settings)
    options = resolve_single_question_options(
        ChatOptions(
            store=store, chat=chat, model=model, max_answer_tokens=max_tokens, sends_request=not preview, settings=given
        )
    )
    asked = check_text(question, "question")
    if not asked.strip():
        raise UsageError("Missing question.", hint='Example: --question "Where is it?"')
    touched = list_conversation_files(chat, path, store=store)
    with show_if_slow(f"Reading {path}") as waiting:
        chosen = select_code(
            path, asked, budget=budget, recent_paths=touched, model=model, on_progress=waiting.set_count
        )
    for one in chosen.warnings:
        print_text(escape_to_short_line(one), err=True)
    _send_task(
        build_task_turn(CodeTask.CODEBASE, *selection_to_attachments(chosen), text=asked), options, as_json=as_json
    )


def _send_task(
    turn: CodeTaskTurn, options: ChatOptions, *, as_json: bool, make_body: MakeBody | None = None
) -> TurnAnswerJson | None:
    brought = tuple(one.to_artifact() for one in turn.attach)
    # Verbatim: braces in a text about code must not be expanded as template variables.
    return ask_once(
        TurnRequest(text=turn.text, attach=brought, is_verbatim=True),
        options,
        as_json=as_json,
        make_body=make_body or _with_chat_state,
    )


def _with_chat_state(answer: TurnAnswerJson, chat: Conversation) -> CodeAnswerJson:
    state = state_from_prompt(chat.preview(TurnRequest(text="")).envelope.prompt)
    return CodeAnswerJson(**asdict(answer), chat_state=state.to_dict())


def _resolve_code(
    task: CodeTask, names: Sequence[str], vault: Path | None, *, piped: str, model: str | None, text: str
) -> list[Attachment]:
    """Return the code that a task is about: the named files, piped input, and files that the user's words name.

    ``fix`` also attaches the files that the error names, and accepts an error that is only described in words
    (``text``).
    """
    files = open_attachment_resolver(vault)
    for name in names:
        if not name.strip():
            raise UsageError("A file name is blank.", hint=f"Example: lamella code {task} main.py:10-20")
        if Path(vault or "", name).is_dir():
            raise UsageError(
                f"{name} is a folder.",
                hint=f"Give files, or run: lamella code analyse {quote_for_shell(name)} --question …",
            )
    found = [one for name in names for one in files.resolve(name)]
    naming = f"{text}\n{piped}" if task is CodeTask.FIX else text
    if naming.strip():
        found += read_named_files(naming, found, folder=vault, model=model)
    if piped.strip():
        found.append(Unknown(text=piped, title="terminal" if task is CodeTask.FIX else "stdin"))
    if task is CodeTask.FIX:
        if not piped.strip() and not text.strip():
            raise UsageError("Missing error on stdin.", hint="Example: make 2>&1 | lamella code fix")
    elif not found:
        raise UsageError("Missing code.", hint=f"Example: lamella code {task} main.py:10-20")
    return found


# ``lamella code select``: choose files of a repository for a question within a token budget.


def select(
    *,
    path: Annotated[
        Path | None, typer.Argument(help="Folder to select from, unless --files is given.", show_default=False)
    ] = None,
    question: Annotated[str, typer.Option("--question", metavar="TEXT", help="Question that the files should answer.")],
    budget: Annotated[
        int, typer.Option(min=1, max=MAX_CODE_BUDGET, help="Maximum tokens of the rendered selection.")
    ] = DEFAULT_CODE_BUDGET,
    touched: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="File already in use; related files rank higher. Repeatable."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON with file paths and contents; - reads stdin.", show_default=False),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model whose tokenizer counts.", show_default=False)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the parts of each score and why files are left out.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Print the selection as a model reads it.")] = False,
    chat: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Attach the selection to the next turn of this conversation.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Select files for a question within a token budget.

    Each file is included in full, as a skeleton (signatures only) or by name.

    lamella code select . --question "Where are retries decided?" --explain
    """
    asked = check_text(question, "question")
    if not asked.strip():
        raise UsageError("Missing question.", hint='Example: --question "Where is it?"')
    if (path is None) == (files is None):
        raise UsageError("Give either a folder or --files.", hint="Example: lamella code select . --question TEXT")
    known = (*(touched or ()), *list_conversation_files(chat, path, store=store))
    if files is not None:
        selection = select_files(read_files_from_json(files), asked, budget=budget, recent_paths=known, model=model)
    elif path is not None:
        with show_if_slow(f"Reading {path}") as waiting:
            selection = select_code(
                path, asked, budget=budget, recent_paths=known, model=model, on_progress=waiting.set_count
            )
    if chat is not None:
        _attach_selection(selection, chat, store=store, as_json=as_json)
        return
    _print_result(selection, as_json=as_json, text=text, explain=explain)


def _print_result(selection: "CodeSelection", *, as_json: bool, text: bool, explain: bool) -> None:
    if as_json:
        print_json(selection_to_json(selection, explain=explain))
        return
    if text:
        write_unwrapped(selection.text)
    else:
        print_selection(selection, explain=explain)
        if explain:
            print_left_out(selection)
    _print_warnings(selection)


def _print_warnings(selection: "CodeSelection") -> None:
    for one in selection.warnings:
        print_text(escape_to_short_line(one), err=True)


def _attach_selection(selection: "CodeSelection", chat: str, *, store: str | None, as_json: bool) -> None:
    # Imported here: conversations are slow to import, and only attaching needs them.
    from lamella.cli.library import run_library_command
    from lamella.conversation.turn import TurnRequest

    _print_warnings(selection)
    attached = tuple(one.to_artifact() for one in selection_to_attachments(selection))
    run_library_command(chat, TurnRequest(text="", attach=attached), store=store, as_json=as_json, create=True)


# ``lamella code``: the group of commands about code.

code_app = typer.Typer(name="code", help="Select files of a repository; explain, test or fix code.")


@code_app.callback()
def code() -> None:
    """Select files of a repository; explain, test or fix code."""


code_app.command()(select)
add_task_commands(code_app)
code_app.command()(analyse)
code_app.command("state")(print_code_state)
code_app.command()(solve)
code_app.command("filter")(filter_files)
