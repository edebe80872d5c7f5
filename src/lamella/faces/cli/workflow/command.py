"""``lamella workflow NAME …`` and ``lamella paper …``: work in stages, from the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.engine.checks import check_text
from lamella.errors import CallError, UsageError, WorkflowError
from lamella.faces.cli.access import JsonOption, StoreOption, list_names, name_command, opened_chat
from lamella.faces.cli.tables.workflow import print_data, print_progress
from lamella.faces.cli.terminal.telling import tell, tell_json, write_exactly
from lamella.faces.cli.workflow.fields import read_fields, read_object
from lamella.views.work.progress import view_data, view_progress, view_work
from lamella.wiring import find_workflow, is_workflow_path, list_workflows, open_backend, save_work

if TYPE_CHECKING:
    from lamella.engine.keeping.stored import StoredChat
    from lamella.holdings import WorkflowProgress

PAPER = "paper"
SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="The conversation that the work is done in: its name or title.",
        autocompletion=list_names,
    ),
]


def _list_workflows(incomplete: str) -> list[str]:
    return [name for name in list_workflows() if name.startswith(incomplete)]


NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A workflow: paper, rfc, one of your own by name, or the path of its file.",
        autocompletion=_list_workflows,
    ),
]


def _choose(context: typer.Context, name: NameArgument) -> None:
    """Work in stages: begin it, see where it stands, write down, submit, approve, go back, export."""
    context.obj = check_text(name, "name", may_be_empty=False)


def _choose_paper(context: typer.Context) -> None:
    """Write a paper in thirteen stages; short for `lamella workflow paper`."""
    context.obj = PAPER


def new(
    *,
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="A name for the conversation, or one to go on in.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Begin to work in the stages of a workflow, in a new conversation or in one that is there.

    lamella workflow paper new coffee
    """
    from lamella.engine.keeping.names import find_chat  # lists do without
    from lamella.engine.keeping.stored import StoredChat

    if session is not None and not session.strip():
        raise UsageError("The conversation's name is blank.", hint="Name it, or leave the name out for a new one.")
    workflow = find_workflow(context.obj)
    backend = open_backend(store or None)
    try:
        found = find_chat(backend.store, session, beginnings=False) if session else None
        taken = {listed.name for listed in backend.store.list_conversations()}
        name = found.name if found else session or _make_name(workflow.name, taken)
        stored = StoredChat(backend, name)
        stored.set({"runner": "staged"})
        work = stored.begin_workflow(context.obj)
    finally:
        backend.store.close()
    _tell(stored, work, store=store, as_json=as_json)


def status(
    *, context: typer.Context, session: SessionName, as_json: JsonOption = False, store: StoreOption = None
) -> None:
    """Show where work stands: every stage, what was decided, and what the current one still lacks.

    lamella workflow paper status coffee
    """
    with _opened(context, session, store) as (stored, work):
        _tell(stored, work, store=store, as_json=as_json)


def data(
    *,
    context: typer.Context,
    session: SessionName,
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIELD=TEXT",
            help="What to write down; FIELD:=JSON for anything but a text, FIELD+= for one more of a list.",
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", metavar="FILE", help="Fields as a JSON object; - is standard input.", show_default=False
        ),
    ] = None,
    reply: Annotated[
        str | None,
        typer.Option("--reply", metavar="FIELD", help="Write the last answer down as this field.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Write something down for the current stage; with nothing named, show what was written down.

    lamella workflow paper data coffee ideKasar="Coffee and sleep" analisis="It can be done" angle="Students"
    """
    with _opened(context, session, store) as (stored, work):
        held = next((stage.data for stage in work.stages if stage.id == work.current), {})
        given = read_object(file) if file is not None else {}
        given |= read_fields(fields or (), {**held, **given})
        given |= {} if reply is None else {reply: find_reply(stored)}
        if given:
            work = stored.write_stage(given)
        if as_json:
            tell_json(view_data(stored.id, stored.name, work))
        elif given:
            print_progress(stored.name, work, do=_write_deeds(stored, work, store=store))
        else:
            print_data(work)


def find_reply(stored: "StoredChat") -> str:
    """The last answer of a conversation, to be written down."""
    said = [told.reply.text for told in stored.turns() if told.reply is not None and told.reply.text.strip()]
    if not said:
        raise CallError("There is no answer to write down yet.", hint="Ask first, or write FIELD=TEXT.")
    return said[-1]


def submit(
    *, context: typer.Context, session: SessionName, as_json: JsonOption = False, store: StoreOption = None
) -> None:
    """Have the current stage wait for approval; what it lacks is named.

    lamella workflow paper submit coffee
    """
    with _opened(context, session, store) as (stored, _):
        _tell(stored, stored.submit_stage(), store=store, as_json=as_json)


def approve(
    *,
    context: typer.Context,
    session: SessionName,
    decision: Annotated[
        str,
        typer.Option(
            "--decision",
            metavar="TEXT",
            help="What was decided, in at most 200 characters; else what was written down.",
            show_default=False,
        ),
    ] = "",
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Approve the stage that was submitted: what was decided stands in every later prompt, and the next stage begins.

    lamella workflow paper approve coffee --decision "Coffee and sleep of students"
    """
    with _opened(context, session, store) as (stored, _):
        _tell(stored, stored.approve_stage(check_text(decision, "decision")), store=store, as_json=as_json)


def rewind(
    *,
    context: typer.Context,
    session: SessionName,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="The id of the stage to go back to.")],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Go back to an earlier stage: later decisions count no more, and everything is kept.

    lamella workflow paper rewind coffee gagasan
    """
    with _opened(context, session, store) as (stored, _):
        _tell(stored, stored.rewind_stage(check_text(stage, "stage")), store=store, as_json=as_json)


def export(
    *,
    context: typer.Context,
    session: SessionName,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="A new file for it; else it is printed.", show_default=False),
    ] = None,
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="Its title, if not as the stages say.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Write the work as markdown: every approved stage, and one bibliography in which each source stands once.

    lamella workflow paper export coffee
    """
    with _opened(context, session, store) as (stored, _):
        text = stored.export_work(check_text(title, "title"))
        if to is not None:
            save_work(text, to)
        if as_json:
            tell_json(view_work(stored.id, stored.name, text=text, file=None if to is None else str(to)))
        elif to is not None:
            tell(str(to))
        else:
            write_exactly(text)


@contextmanager
def _opened(
    context: typer.Context, session: str, store: str | None
) -> Iterator[tuple["StoredChat", "WorkflowProgress"]]:
    """The conversation that is meant, and where its work stands; an error if it works by another workflow."""
    named = find_workflow(context.obj).name if is_workflow_path(context.obj) else context.obj
    with opened_chat(store, session) as stored:
        work = stored.progress
        if work is None:
            again = name_command(f"workflow {named} new", stored.name, store=store)
            raise WorkflowError(f"{stored.name} has no workflow.", hint=f"Begin one there: {again}")
        if work.workflow != named:
            find_workflow(named)
            again = name_command(f"workflow {work.workflow} status", stored.name, store=store)
            raise WorkflowError(f"{stored.name} works by {work.workflow}, not by {named}.", hint=f"As in {again}")
        yield stored, work


def _make_name(workflow: str, taken: set[str]) -> str:
    """A name that nobody has, erased conversations included."""
    number = 1
    while (name := f"{workflow}-{number}") in taken:
        number += 1
    return name


def _tell(stored: "StoredChat", work: "WorkflowProgress", *, store: str | None, as_json: bool) -> None:
    if as_json:
        tell_json(view_progress(stored.id, stored.name, work))
        return
    print_progress(stored.name, work, do=_write_deeds(stored, work, store=store))
    if not stored.turns():
        tell(f"Talk about it: {name_command('chat', stored.name, store=store)}", err=True)


def _write_deeds(stored: "StoredChat", work: "WorkflowProgress", *, store: str | None) -> Callable[[str], str]:
    """What writes a deed about this work as a command to paste."""
    named = PAPER if work.workflow == PAPER else f"workflow {work.workflow}"
    return lambda deed: name_command(f"{named} {deed}", stored.name, store=store)


def _make_app(name: str, *, paper: bool) -> typer.Typer:
    """The same commands under a name of their own; the workflow is named first, unless it is the paper."""
    app = typer.Typer(name=name, help=(_choose_paper if paper else _choose).__doc__)
    app.callback()(_choose_paper if paper else _choose)
    for command in (new, status, data, submit, approve, rewind, export):
        app.command()(command)
    return app


workflow_app = _make_app("workflow", paper=False)
paper_app = _make_app(PAPER, paper=True)
