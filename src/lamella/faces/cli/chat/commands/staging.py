"""Commands of a chat about the stages of its work: begin it, see where it stands, and everything else about a stage."""

from pathlib import Path

from lamella.errors import UsageError, WorkflowError
from lamella.faces.cli.access import name_command
from lamella.faces.cli.chat.input import choose_begun, choose_further
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.tables.workflow import print_data, print_progress
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.faces.cli.workflow.command import find_reply
from lamella.faces.cli.workflow.fields import read_fields
from lamella.holdings import WorkflowProgress
from lamella.wiring import find_workflow, is_workflow_path, list_workflows, save_work

STAGED = "staged"
# Between a field and its text.
_GIVEN = "="
_DEEDS = {
    "status": "show every stage, and what is missing",
    "data": "FIELD=TEXT …, or FIELD alone for the last answer: write it down",
    "submit": "have this stage wait for approval",
    "approve": "[DECISION]: approve it, and go on to the next",
    "rewind": "STAGE: go back to an earlier one",
    "export": "[FILE]: write the work as markdown",
    "new": "NAME: begin to work in the stages of a workflow",
}


def take_up(talk: TerminalChat, workflow: str) -> None:
    """Work in the stages of a workflow from now on; where that was begun already, it goes on."""
    stored = talk.stored
    work = stored.progress
    named = find_workflow(workflow).name if is_workflow_path(workflow) or work is None else workflow
    if work is not None and work.workflow != named:
        again = name_command("chat", stored.name, workflow=work.workflow, store=talk.opened.store)
        raise WorkflowError(f"{stored.name} works by {work.workflow}, not by {named}.", hint=f"Go on with {again}")
    stored.set({"runner": STAGED})
    if work is None:
        stored.begin_workflow(workflow)


def stage(talk: TerminalChat, rest: str) -> None:
    """Do something about the stage that is worked on; by default show where the work stands."""
    deed, _, given = rest.partition(" ")
    do = _RUNS.get(deed or "status")
    if do is None:
        raise UsageError(f"/stage knows no {deed!r}.", hint=f"It takes one of: {', '.join(_DEEDS)}.")
    work = do(talk, given.strip())
    if work is not None:
        print_progress(talk.stored.name, work, do=lambda deed: f"/stage {deed}")


def list_deeds(talk: TerminalChat, begun: str) -> dict[str, str]:
    """What can be done about stages; after `data`, `rewind` and `new` what there is."""
    deed, space, name = begun.partition(" ")
    if not space:
        return choose_begun(_DEEDS, begun)
    work = talk.stored.progress
    stages = {} if work is None else {one.id: one.label for one in work.stages[: work.number]}
    known = {"rewind": stages, "new": dict.fromkeys(list_workflows(), ""), "data": _list_fields(work)}
    return choose_further(deed, known.get(deed, {}), name)


def _list_fields(work: WorkflowProgress | None) -> dict[str, str]:
    """The fields of the stage that is worked on, each as it is given a text."""
    stage = None if work is None else next((one for one in work.stages if one.id == work.current), None)
    return {} if stage is None else {name + _GIVEN: "" for name in dict.fromkeys((*stage.required, *stage.data))}


def _show(talk: TerminalChat, _rest: str) -> WorkflowProgress | None:
    work = talk.stored.progress
    if work is None:
        tell("No workflow was begun here; /stage new paper begins one.", err=True)
    return work


def _begin(talk: TerminalChat, rest: str) -> WorkflowProgress | None:
    if not rest:
        raise UsageError("/stage new names no workflow.", hint=f"There are: {', '.join(list_workflows())}.")
    take_up(talk, rest)
    return talk.stored.progress


def _write(talk: TerminalChat, rest: str) -> WorkflowProgress | None:
    work = talk.stored.progress
    if not rest:
        if work is not None:
            print_data(work)
        return work
    held = {} if work is None else next((one.data for one in work.stages if one.id == work.current), {})
    given = read_fields((rest,), held) if "=" in rest else {rest: find_reply(talk.stored)}
    return talk.stored.write_stage(given)


def _submit(talk: TerminalChat, _rest: str) -> WorkflowProgress:
    return talk.stored.submit_stage()


def _approve(talk: TerminalChat, rest: str) -> WorkflowProgress:
    return talk.stored.approve_stage(rest)


def _rewind(talk: TerminalChat, rest: str) -> WorkflowProgress:
    return talk.stored.rewind_stage(rest)


def _export(talk: TerminalChat, rest: str) -> None:
    text = talk.stored.export_work()
    if rest:
        save_work(text, Path(rest))
        tell(f"Saved: {show_line(rest)}")
    else:
        tell(text)


_RUNS = {
    "status": _show,
    "data": _write,
    "submit": _submit,
    "approve": _approve,
    "rewind": _rewind,
    "export": _export,
    "new": _begin,
}
