"""Print conversations as a table, the last changed first."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from lamella.cli.console import make_console, print_table
from lamella.cli.output import (
    escape_to_short_line,
    format_count,
    format_time,
    get_terminal_width,
    is_terminal,
    print_text,
    wrap_line,
)
from lamella.ports import CodeFile, CodeSelection, NoteHit, StageProgress, WorkflowProgress
from lamella.schemas.conversations import ConversationSummaryJson
from lamella.schemas.formatting import truncate_words
from lamella.schemas.workflows import WorkflowJson


def print_chats(rows: Sequence[ConversationSummaryJson], *, utc: bool = False) -> None:
    """Print each conversation with its name, title, time of change (local or UTC) and number of events."""
    table = Table("name", "title", "changed (UTC)" if utc else "changed", "events", box=None, pad_edge=False)
    for row in rows:
        changed = format_time(row.updated, utc=utc)
        table.add_row(escape_to_short_line(row.name), escape_to_short_line(row.title), changed, f"{row.events:,}")
    print_table(table)


# Print passages that a search in a vault found, the best first.

_INDENT = " " * 4


def print_note_hits(hits: Sequence[NoteHit]) -> None:
    """Print each passage with its path, the excerpt that contains the words, and why it was found."""
    console = make_console()
    columns = get_terminal_width() - len(_INDENT) if is_terminal(sys.stdout) else None
    for number, hit in enumerate(hits, start=1):
        if number > 1:
            console.print()
        rank = Text(f"{number:>2}. ", style="dim").append(escape_to_short_line(hit.path), style="bold")
        console.print(rank.append(f"  {escape_to_short_line(hit.heading)}" if hit.heading else "", style="cyan"))
        for line in _wrap_excerpt(hit.excerpt, columns):
            console.print(Text(_INDENT + line))
        console.print(Text(f"{_INDENT}score {hit.score:.2f} · {escape_to_short_line(hit.why)}", style="dim"))


def _wrap_excerpt(text: str, columns: int | None) -> Iterator[str]:
    for line in filter(str.strip, text.splitlines()):
        shown = escape_to_short_line(line)
        yield from (shown if columns is None else wrap_line(shown, columns)).split("\n")


# one row per file, and why the other files are left out.

_FORM_LABELS = {"full": "full", "skeleton": "skeleton", "name": "by name"}


def print_selection(selection: CodeSelection, *, explain: bool) -> None:
    """Print the selected files, the best first, and the total number of tokens."""
    table = Table(*("file", "form", "tokens", "score", *(["reasons"] if explain else [])), box=None, pad_edge=False)
    for one in selection.files:
        row = (escape_to_short_line(one.path), _FORM_LABELS[one.form], f"{one.tokens:,}", f"{one.score:.2f}")
        table.add_row(*row, *([_format_score_parts(one)] if explain else []))
    print_table(table)
    print_text(
        f"{format_count(len(selection.files), 'file')}, {selection.tokens:,} of {selection.budget:,} tokens; "
        f"{len(selection.left_out):,} left out."
    )


def print_left_out(selection: CodeSelection) -> None:
    """Print why each of the other files was left out."""
    for path, why in selection.left_out:
        print_text(f"left out: {escape_to_short_line(path)}: {escape_to_short_line(why)}")


def _format_score_parts(one: CodeFile) -> str:
    parts = sorted(one.score_parts.items(), key=lambda part: (-part[1], part[0]))
    return ", ".join(f"{name} {value:.2f}" for name, value in parts)


# Format runners for a list.


def format_runner(name: str, description: str, *, is_current: bool = False) -> str:
    """Return a runner's name and description on one line; the ``is_current`` one has a star."""
    return f"{'*' if is_current else ' '} {name:<10}{description}"


# Print the progress of work in stages.

_STATUS_SYMBOLS = {"approved": "✓", "pending": "?", "revision": "~", "drafting": "▸"}
_PENDING_STATUS = "pending"
_MAX_DECISION_LENGTH = 72
_MAX_VALUE_LENGTH = 400


def format_current_stage(progress: WorkflowProgress) -> str:
    """Return the current stage and its status in a few words."""
    position = f"{progress.workflow} {progress.number}/{len(progress.stages)}"
    return f"{position} done" if progress.current is None else f"{position} {progress.current} ({progress.status})"


def print_workflow_progress(name: str, progress: WorkflowProgress, *, format_action: Callable[[str], str]) -> None:
    """Print every stage with its status and decision, then the next step; ``format_action`` formats an action as typed."""
    console = make_console()
    console.print(
        Text(escape_to_short_line(name), style="bold").append(
            f"  {escape_to_short_line(progress.title)}  {format_current_stage(progress)}", style="dim"
        )
    )
    for number, stage in enumerate(progress.stages, start=1):
        console.print(_render_stage(number, stage, is_current=stage.id == progress.current))
    current = next((stage for stage in progress.stages if stage.id == progress.current), None)
    if current is None:
        print_text(f"All stages are approved. Export the work: {format_action('export')}", err=True)
    elif current.missing:
        print_text(f"Missing in {current.id}: {', '.join(map(escape_to_short_line, current.missing))}.", err=True)
    elif progress.status == _PENDING_STATUS:
        print_text(f"{current.id} is pending approval. Approve it: {format_action('approve')}", err=True)
    else:
        print_text(f"{current.id} is complete. Submit it for approval: {format_action('submit')}", err=True)


def _render_stage(number: int, stage: StageProgress, *, is_current: bool) -> Text:
    mark = _STATUS_SYMBOLS.get(stage.status or "", " ")
    line = Text(f" {mark} {number:>2}. {stage.id:<20}", style="bold" if is_current else "")
    line.append(f" {stage.status or '-':<9}", style="cyan" if is_current else "dim")
    details = [f"attempt {stage.attempt}"] if stage.attempt > 1 else []
    details += [format_count(len(stage.messages), "message")] if stage.messages else []
    details += [truncate_words(escape_to_short_line(stage.digest), _MAX_DECISION_LENGTH)] if stage.digest else []
    return line.append("  " + " · ".join(details) if details else f"  {escape_to_short_line(stage.label)}", style="dim")


def print_stage_data(progress: WorkflowProgress) -> None:
    """Print the data that was written for each stage."""
    console = make_console()
    for stage in progress.stages:
        if not stage.data:
            continue
        console.print(Text(f"{stage.id}  {escape_to_short_line(stage.label)}", style="bold"))
        for name, value in stage.data.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            console.print(
                Text(f"  {escape_to_short_line(name)}: {truncate_words(escape_to_short_line(text), _MAX_VALUE_LENGTH)}")
            )
    if not any(stage.data for stage in progress.stages):
        print_text("No data yet.", err=True)


def print_workflows(workflows: Sequence[WorkflowJson]) -> None:
    """Print workflows with their titles and numbers of stages."""
    table = Table("name", "title", "stages", box=None, pad_edge=False)
    for one in workflows:
        stages = "its file is invalid" if one.broken else f"{len(one.stages):,}"
        table.add_row(escape_to_short_line(one.name), escape_to_short_line(one.title), stages)
    print_table(table)
