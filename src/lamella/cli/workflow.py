"""Parse typed fields: FIELD=TEXT, FIELD:=JSON, FIELD+=TEXT to append to a list, or a JSON object in a file."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lamella.cli.access import JsonOption, StoreOption, complete_chat_names, format_command, open_conversation
from lamella.cli.output import escape_to_short_line, print_json, print_text, write_unwrapped
from lamella.cli.tables import (
    print_diff,
    print_references,
    print_stage_data,
    print_stage_writes,
    print_workflow_progress,
    print_workflows,
)
from lamella.cli.workflow_phrases import get_command_phrases
from lamella.conversation.validation import check_text
from lamella.errors import InvalidOperationError, UsageError, WorkflowError
from lamella.schemas.workflows import (
    document_check_to_json,
    document_to_json,
    progress_to_json,
    stage_data_to_json,
    workflows_to_json,
)
from lamella.wiring import (
    get_system_language,
    get_workflow,
    is_workflow_path,
    list_workflows,
    open_backend,
    read_input_file,
    read_references,
    write_document,
)

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation
    from lamella.ports import WorkflowProgress
    from lamella.workflows import WorkflowDocument, WorkflowSpec

_FIELD_PATTERN = re.compile(r"(?P<name>[^=:+]+?)\s*(?P<sort>\+:=|:=|\+=|=)(?P<value>.*)", re.DOTALL)
_FIELD_START = re.compile(r"(?<=\s)[^\W\d][\w-]*(?:\+:=|:=|\+=|=)")
_QUOTED_TEXT = re.compile(r'(?<=[=\s\[{:,])"(?:[^"\\]|\\.)*"')
# A whole value in quotation marks, but not JSON.
_QUOTED_VALUE = re.compile(r'^([^=:+]+\+?=)\s*"([^"]*)"$', re.DOTALL)
_FIELD_HINT = "Write FIELD=TEXT, FIELD:=JSON, or FIELD+=TEXT to append to a list; FIELD:=null removes a field."


def parse_fields(words: Iterable[str], current: Mapping[str, object]) -> dict[str, object]:
    """Parse typed fields; ``current`` are the stage's current values, which ``+=`` appends to."""
    fields: dict[str, object] = {}
    for word in words:
        found = _FIELD_PATTERN.fullmatch(word)
        if found is None:
            raise UsageError(f"Invalid field: {word!r}", hint=_FIELD_HINT)
        name, sort = found["name"].strip(), found["sort"]
        value = parse_json_value(found["value"], name) if ":" in sort else found["value"]
        fields[name] = [*_as_list(fields.get(name, current.get(name))), value] if "+" in sort else value
    return fields


def split_assignments(line: str) -> list[str]:
    """Split a line into fields; a text with blanks extends to the next ``FIELD=``, or is in double quotation marks."""
    masked = _QUOTED_TEXT.sub(lambda quoted: '"' * len(quoted.group()), line)
    starts = [0, *(match.start() for match in _FIELD_START.finditer(masked))]
    fields = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    return [_QUOTED_VALUE.sub(r"\1\2", field) for field in fields if field]


def parse_json_value(text: str, name: str) -> object:
    """Parse a value as JSON; raise ``UsageError`` if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}.", hint=_FIELD_HINT) from error


def read_json_object(path: str) -> dict[str, object]:
    """Read a JSON object with fields from a file, or from stdin for ``-``."""
    try:
        text = read_input_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"{path} cannot be read: {why}.", hint="Give a file that contains a JSON object, or - for stdin."
        ) from error
    fields = parse_json_value(text, path)
    if not isinstance(fields, dict):
        raise UsageError(f"{path} does not contain a JSON object.", hint='Write {"field": "value"}.')
    return fields


def _as_list(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


# ``lamella workflow NAME …`` and ``lamella paper …``: work in stages from the command line.

PAPER_WORKFLOW = "paper"
# Problems of a document that a reader would see as broken references.
_BROKEN_REFERENCES = frozenset({"citation_unknown", "cross_reference_unknown", "image_missing"})
# Named in the help; listing the files would make every command slower.
_STYLES = ("apa", "ieee", "chicago", "chicago-notes", "harvard", "mla", "ama")
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Conversation name or title.",
        autocompletion=complete_chat_names,
    ),
]


def _list_workflows(incomplete: str) -> list[str]:
    return [name for name in list_workflows() if name.startswith(incomplete)]


WorkflowArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Workflow: paper, rfc, the name of your own, or the path of its file.",
        autocompletion=_list_workflows,
    ),
]


_LIST_COMMAND = "list"


class _WorkflowGroup(TyperGroup):
    """The group ``workflow``: every command but ``list`` has the name of a workflow before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - a class of typer's own copy of click
        if args[:1] == [_LIST_COMMAND] and (len(args) == 1 or args[1].startswith("-")):
            args = [_LIST_COMMAND, *args]
        return super().parse_args(ctx, args)


def _select_workflow(context: typer.Context, name: WorkflowArgument) -> None:
    """Work through the stages of a workflow, such as a paper."""
    context.obj = check_text(name, "name", may_be_empty=False)


def print_workflow_list(*, as_json: JsonOption = False) -> None:
    """List the workflows with their titles and numbers of stages.

    lamella workflow list
    """
    body = workflows_to_json({name: _find_workflow(name) for name in list_workflows()})
    if as_json:
        print_json(body)
    else:
        print_workflows(body.workflows)


def _find_workflow(name: str) -> "WorkflowSpec | None":
    """Return a workflow by its name, or None if its file is invalid."""
    try:
        return find_workflow_in_system_language(name)
    except WorkflowError:
        return None


def _select_paper_workflow(context: typer.Context) -> None:
    """Write a paper in thirteen stages (`lamella workflow paper`)."""
    context.obj = PAPER_WORKFLOW


def new(
    *,
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="New or existing conversation.", show_default="a new name"),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="CODE",
            help="Language of the work, such as en or id.",
            show_default="that of the system, if the workflow is there in it",
        ),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Start a workflow in a new or an existing conversation.

    lamella workflow paper new coffee --language en
    """
    from lamella.conversation.conversation import Conversation
    from lamella.conversation.names import find_conversation_by_name  # other commands do not need it

    if session is not None and not session.strip():
        raise UsageError(
            "The conversation name is blank.", hint="Give a name, or leave it out to start a new conversation."
        )
    workflow = (
        get_workflow(context.obj, language=language) if language else find_workflow_in_system_language(context.obj)
    )
    backend = open_backend(store or None)
    try:
        found = find_conversation_by_name(backend.store, session, match_prefix=False) if session else None
        used_names = {listed.name for listed in backend.store.list_conversations()}
        name = found.name if found else session or _make_unused_name(workflow.name, used_names)
        conversation_log = Conversation.open(backend, name)
        conversation_log.set(runner="staged")
        work = conversation_log.start_workflow(context.obj, language=workflow.language)
    finally:
        backend.store.close()
    _print_progress(conversation_log, work, store=store, as_json=as_json)


def find_workflow_in_system_language(name: str) -> "WorkflowSpec":
    """Return a workflow in the language of the system, or in its own if it is not there in that."""
    own = get_workflow(name)
    language = get_system_language()
    try:
        return get_workflow(name, language=language) if language else own
    except WorkflowError:
        return own


def status(
    *, context: typer.Context, session: SessionArgument, as_json: JsonOption = False, store: StoreOption = None
) -> None:
    """Show every stage, its decision and its missing fields.

    lamella workflow paper status coffee
    """
    with _open_workflow(context, session, store) as (conversation_log, work):
        _print_progress(conversation_log, work, store=store, as_json=as_json)


def data(
    *,
    context: typer.Context,
    session: SessionArgument,
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIELD=TEXT",
            help="Field to save; FIELD:=JSON for other types than text, FIELD+= to append to a list.",
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="JSON object with fields; - reads stdin.", show_default=False),
    ] = None,
    reply: Annotated[
        str | None,
        typer.Option("--reply", metavar="FIELD", help="Save the last answer as this field.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Save fields of the current stage; without fields, show them.

    lamella workflow paper data coffee ideKasar="Coffee and sleep" analisis="It can be done" angle="Students"
    """
    with _open_workflow(context, session, store) as (conversation_log, work):
        data = next((stage.data for stage in work.stages if stage.id == work.current), {})
        given = read_json_object(file) if file is not None else {}
        given |= parse_fields(fields or (), {**data, **given})
        given |= {} if reply is None else {reply: last_reply_text(conversation_log)}
        if given:
            work = conversation_log.write_stage(given)
        if as_json:
            print_json(stage_data_to_json(conversation_log.id, conversation_log.name, work))
        elif given:
            print_workflow_progress(
                conversation_log.name, work, format_action=_make_action_formatter(conversation_log, work, store=store)
            )
        else:
            print_stage_data(work)


def last_reply_text(conversation_log: "Conversation") -> str:
    """Return the text of a conversation's last answer; raise ``InvalidOperationError`` if there is none."""
    replies = [
        record.reply.text
        for record in conversation_log.turns()
        if record.reply is not None and record.reply.text.strip()
    ]
    if not replies:
        raise InvalidOperationError("No answer to save yet.", hint="Ask first, or write FIELD=TEXT.")
    return replies[-1]


def submit(
    *, context: typer.Context, session: SessionArgument, as_json: JsonOption = False, store: StoreOption = None
) -> None:
    """Submit the current stage for approval.

    lamella workflow paper submit coffee
    """
    with _open_workflow(context, session, store) as (conversation_log, _):
        _print_progress(conversation_log, conversation_log.submit_stage(), store=store, as_json=as_json)


def approve(
    *,
    context: typer.Context,
    session: SessionArgument,
    decision: Annotated[
        str,
        typer.Option(
            "--decision",
            metavar="TEXT",
            help="The decision, at most 200 characters.",
            show_default="from the saved fields",
        ),
    ] = "",
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Approve the submitted stage and start the next one.

    The decision is part of every later prompt.

    lamella workflow paper approve coffee --decision "Coffee and sleep of students"
    """
    with _open_workflow(context, session, store) as (conversation_log, _):
        _print_progress(
            conversation_log,
            conversation_log.approve_stage(check_text(decision, "decision")),
            store=store,
            as_json=as_json,
        )


def rewind(
    *,
    context: typer.Context,
    session: SessionArgument,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="Id of the stage to go back to.")],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Go back to an earlier stage.

    Later decisions no longer apply. Nothing is deleted.

    lamella workflow paper rewind coffee gagasan
    """
    with _open_workflow(context, session, store) as (conversation_log, _):
        _print_progress(
            conversation_log, conversation_log.rewind_to_stage(check_text(stage, "stage")), store=store, as_json=as_json
        )


def export(
    *,
    context: typer.Context,
    session: SessionArgument,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="New file to write.", show_default="stdout"),
    ] = None,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Title.", show_default="from the stages")] = "",
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="STYLE",
            help=f"Citation style: {', '.join(_STYLES)}, or a .csl file.",
            show_default="apa",
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            "--template",
            metavar="FILE",
            help="Word document (docx), Typst template (pdf), or Pandoc template (html, tex).",
            show_default="Lamella's own",
        ),
    ] = None,
    date: Annotated[
        str, typer.Option("--date", metavar="TEXT", help="Date below the title.", show_default="none")
    ] = "",
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Export the approved stages as a document: docx, pdf, html, tex or md.

    The ending of the file decides the format. What is missing is printed.

    lamella workflow paper export coffee --to coffee.docx --style ieee
    """
    with _open_workflow(context, session, store) as (conversation_log, work):
        document = conversation_log.document(check_text(title, "title"))
        text = conversation_log.export_approved_stages(title)
        if to is not None:
            write_document(document, to, style=style, template=template, date=date)
        if as_json:
            file = None if to is None else str(to)
            print_json(document_to_json(conversation_log.id, conversation_log.name, document, text, file=file))
            return
        if to is not None:
            print_text(str(to))
        else:
            write_unwrapped(text)
        _print_problems(document, work)


def _print_problems(document: "WorkflowDocument", progress: "WorkflowProgress") -> None:
    """Print what a document lacks."""
    phrases = get_command_phrases(progress.language)
    for problem in document.problems:
        print_text(phrases.missing_in_document.format(message=escape_to_short_line(problem.message)), err=True)


def check(
    *, context: typer.Context, session: SessionArgument, as_json: JsonOption = False, store: StoreOption = None
) -> int:
    """Show what the document lacks: stages, references, figures; exit code 1 if the text refers to something missing.

    lamella workflow paper check coffee
    """
    with _open_workflow(context, session, store) as (conversation_log, work):
        document = conversation_log.document()
        if as_json:
            print_json(document_check_to_json(conversation_log.id, conversation_log.name, document))
        else:
            _print_problems(document, work)
            if not document.problems:
                print_text(get_command_phrases(work.language).nothing_missing)
        return 1 if any(problem.code in _BROKEN_REFERENCES for problem in document.problems) else 0


def references(
    *,
    context: typer.Context,
    session: SessionArgument,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="BibTeX, RIS or CSL-JSON file, DOI, or a typed reference.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="KEY", help="Remove a reference, figure or table.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Add references, or show them with the keys that the text cites: [@doe2020, p. 3].

    lamella workflow paper references coffee library.bib 10.5664/jcsm.3170
    """
    with _open_workflow(context, session, store) as (conversation_log, work):
        if sources:
            work = conversation_log.add_references(read_references(*sources))
        if remove is not None:
            work = conversation_log.remove_from_work(remove)
        if as_json:
            print_json(progress_to_json(conversation_log.id, conversation_log.name, work))
        else:
            print_references(work)


def figure(
    *,
    context: typer.Context,
    session: SessionArgument,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Name by which the text refers to it: @fig:KEY.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="PNG or JPEG; for a table CSV.")],
    caption: Annotated[str, typer.Option("--caption", metavar="TEXT", help="Caption.", show_default=False)],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Add a figure, or a table from a CSV file; the text refers to it with @fig:KEY or @tbl:KEY.

    lamella workflow paper figure coffee sleep sleep.png --caption "Hours of sleep by cups"
    """
    with _open_workflow(context, session, store) as (conversation_log, _):
        data = _read_file(file)
        text = check_text(caption, "caption")
        if file.suffix.casefold() == ".csv":
            rows = list(csv.reader(io.StringIO(_decode(data, file))))
            rows = [row for row in rows if any(cell.strip() for cell in row)]
            work = conversation_log.add_table(key, text, rows[0] if rows else [], rows[1:])
        else:
            work = conversation_log.add_figure(key, text, data)
        if as_json:
            print_json(progress_to_json(conversation_log.id, conversation_log.name, work))
        else:
            print_references(work)


def _read_file(path: Path) -> bytes:
    try:
        return read_input_file(str(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", hint="Check the path.") from error


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error


def changes(
    *,
    context: typer.Context,
    session: SessionArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last one.", show_default=False)] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show what was written in the current stage, by whom, as diffs.

    lamella workflow paper changes coffee --undo
    """
    with _open_workflow(context, session, store) as (conversation_log, work):
        undone = work.writes[-1] if undo and work.writes else None
        if undo:
            work = conversation_log.undo_stage_write()
        if as_json:
            print_json(progress_to_json(conversation_log.id, conversation_log.name, work))
        elif undone is not None:
            print_text(get_command_phrases(work.language).undone)
            print_diff(undone.diff)
        else:
            print_stage_writes(work)


def revise(
    *,
    context: typer.Context,
    session: SessionArgument,
    note: Annotated[str, typer.Argument(metavar="NOTE", help="What is to change; the model reads it.")],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Send the submitted stage back with what is to change.

    lamella workflow paper revise tea "Shorten the background"
    """
    with _open_workflow(context, session, store) as (conversation_log, _):
        _print_progress(conversation_log, conversation_log.request_stage_changes(note), store=store, as_json=as_json)


@contextmanager
def _open_workflow(
    context: typer.Context, session: str, store: str | None
) -> Iterator[tuple["Conversation", "WorkflowProgress"]]:
    """Open the conversation and yield it with its progress; raise ``WorkflowError`` if it uses another workflow."""
    named = get_workflow(context.obj).name if is_workflow_path(context.obj) else context.obj
    with open_conversation(store, session) as conversation_log:
        work = conversation_log.workflow
        if work is None:
            again = format_command(f"workflow {named} new", conversation_log.name, store=store)
            raise WorkflowError(f"{conversation_log.name} has no workflow.", hint=f"Start one: {again}")
        if work.workflow != named:
            # Raises first if no workflow has this name: that is the more useful error.
            get_workflow(named)
            again = format_command(f"workflow {work.workflow} status", conversation_log.name, store=store)
            raise WorkflowError(
                f"{conversation_log.name} uses the workflow {work.workflow}, not {named}.", hint=f"Run: {again}"
            )
        yield conversation_log, work


def _make_unused_name(workflow: str, used_names: set[str]) -> str:
    """Return an unused name; names of erased conversations count as used."""
    number = 1
    while (name := f"{workflow}-{number}") in used_names:
        number += 1
    return name


def _print_progress(
    conversation_log: "Conversation", progress: "WorkflowProgress", *, store: str | None, as_json: bool
) -> None:
    if as_json:
        print_json(progress_to_json(conversation_log.id, conversation_log.name, progress))
        return
    print_workflow_progress(
        conversation_log.name, progress, format_action=_make_action_formatter(conversation_log, progress, store=store)
    )
    if not conversation_log.turns():
        command = format_command("chat", conversation_log.name, store=store)
        print_text(get_command_phrases(progress.language).talk.format(command=command), err=True)


def _make_action_formatter(
    conversation_log: "Conversation", progress: "WorkflowProgress", *, store: str | None
) -> Callable[[str], str]:
    """Return a function that formats an action on this work as a command to paste."""
    named = PAPER_WORKFLOW if progress.workflow == PAPER_WORKFLOW else f"workflow {progress.workflow}"
    return lambda deed: format_command(f"{named} {deed}", conversation_log.name, store=store)


def _build_app(name: str, *, is_paper: bool) -> typer.Typer:
    """Build the group of commands; the group ``workflow`` takes a workflow's name first, ``is_paper`` does not."""
    description = (_select_paper_workflow if is_paper else _select_workflow).__doc__
    app = typer.Typer(name=name, cls=TyperGroup if is_paper else _WorkflowGroup, help=description)
    app.callback()(_select_paper_workflow if is_paper else _select_workflow)
    if not is_paper:
        app.command(_LIST_COMMAND)(print_workflow_list)
    commands = (
        new,
        status,
        data,
        references,
        figure,
        changes,
        submit,
        approve,
        revise,
        rewind,
        check,
        export,
    )
    for command in commands:
        app.command()(command)
    return app


workflow_app = _build_app("workflow", is_paper=False)
paper_app = _build_app(PAPER_WORKFLOW, is_paper=True)
