"""Where staged work stands, for people."""

import json
from collections.abc import Callable

from rich.text import Text

from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import tell
from lamella.holdings import StageProgress, WorkflowProgress
from lamella.views.words import cut_words

_MARKS = {"approved": "✓", "pending": "?", "revision": "~", "drafting": "▸"}
_WAITS = "pending"
_DECISION = 72
_VALUE = 400


def tell_stage(work: WorkflowProgress) -> str:
    """The stage that is worked on, in a few words."""
    place = f"{work.workflow} {work.number}/{len(work.stages)}"
    return f"{place} done" if work.current is None else f"{place} {work.current} ({work.status})"


def print_progress(name: str, work: WorkflowProgress, *, do: Callable[[str], str]) -> None:
    """Every stage with its status and what was decided, then what to do next: ``do`` writes a deed as it is typed."""
    console = make_console()
    console.print(
        Text(show_line(name), style="bold").append(f"  {show_line(work.title)}  {tell_stage(work)}", style="dim")
    )
    for number, stage in enumerate(work.stages, start=1):
        console.print(_draw(number, stage, current=stage.id == work.current))
    current = next((stage for stage in work.stages if stage.id == work.current), None)
    if current is None:
        tell(f"All stages are approved. Write it down: {do('export')}", err=True)
    elif current.missing:
        tell(f"Still missing in {current.id}: {', '.join(map(show_line, current.missing))}.", err=True)
    elif work.status == _WAITS:
        tell(f"{current.id} waits for your yes: {do('approve')}", err=True)
    else:
        tell(f"Nothing is missing in {current.id}. Have it wait for approval: {do('submit')}", err=True)


def _draw(number: int, stage: StageProgress, *, current: bool) -> Text:
    mark = _MARKS.get(stage.status or "", " ")
    line = Text(f" {mark} {number:>2}. {stage.id:<20}", style="bold" if current else "")
    line.append(f" {stage.status or '-':<9}", style="cyan" if current else "dim")
    told = [f"attempt {stage.attempt}"] if stage.attempt > 1 else []
    told += [tell_count(len(stage.messages), "message")] if stage.messages else []
    told += [cut_words(show_line(stage.digest), _DECISION)] if stage.digest else []
    return line.append("  " + " · ".join(told) if told else f"  {show_line(stage.label)}", style="dim")


def print_data(work: WorkflowProgress) -> None:
    """What was written down for each stage."""
    console = make_console()
    for stage in work.stages:
        if not stage.data:
            continue
        console.print(Text(f"{stage.id}  {show_line(stage.label)}", style="bold"))
        for name, value in stage.data.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            console.print(Text(f"  {show_line(name)}: {cut_words(show_line(text), _VALUE)}"))
    if not any(stage.data for stage in work.stages):
        tell("Nothing was written down yet.", err=True)
