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
from lamella.cli.workflow_phrases import CommandPhrases, get_command_phrases
from lamella.ports import CodeFile, CodeSelection, NoteHit, StageProgress, WorkflowProgress
from lamella.schemas.conversations import ConversationSummaryJson
from lamella.schemas.formatting import truncate_words
from lamella.schemas.workflows import WorkflowJson, format_reference


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
    phrases = get_command_phrases(progress.language)
    position = f"{progress.workflow} {progress.number}/{len(progress.stages)}"
    if progress.current is None:
        return f"{position} {phrases.done}"
    return f"{position} {progress.current} ({phrases.statuses.get(progress.status, progress.status)})"


def print_workflow_progress(name: str, progress: WorkflowProgress, *, format_action: Callable[[str], str]) -> None:
    """Print every stage with its status and decision, then the next step; ``format_action`` formats an action as typed."""
    console = make_console()
    console.print(
        Text(escape_to_short_line(name), style="bold").append(
            f"  {escape_to_short_line(progress.title)}  {format_current_stage(progress)}", style="dim"
        )
    )
    phrases = get_command_phrases(progress.language)
    for number, stage in enumerate(progress.stages, start=1):
        console.print(_render_stage(number, stage, phrases, is_current=stage.id == progress.current))
    print_next_step(progress, format_action=format_action)


def print_next_step(progress: WorkflowProgress, *, format_action: Callable[[str], str]) -> None:
    """Print what the current stage lacks, or what to do next."""
    phrases = get_command_phrases(progress.language)
    current = next((stage for stage in progress.stages if stage.id == progress.current), None)
    if progress.change_request:
        print_text(phrases.changes_requested.format(note=escape_to_short_line(progress.change_request)), err=True)
    if progress.proposed_decision:
        print_text(phrases.proposed.format(decision=escape_to_short_line(progress.proposed_decision)), err=True)
    if current is None:
        print_text(phrases.all_approved.format(command=format_action("export")), err=True)
    elif current.missing:
        fields = ", ".join(format_field_name(current, name) for name in current.missing)
        print_text(phrases.missing.format(stage=current.id, fields=fields), err=True)
    elif progress.status == _PENDING_STATUS:
        print_text(phrases.pending.format(stage=current.id, command=format_action("approve")), err=True)
    else:
        print_text(phrases.complete.format(stage=current.id, command=format_action("submit")), err=True)


def format_field_name(stage: StageProgress, name: str) -> str:
    """Return the name of a field as it is typed, with its label in parentheses if that says more."""
    label = stage.field_labels.get(name, "")
    shown = escape_to_short_line(name)
    return shown if label.casefold() in ("", name.casefold()) else f"{shown} ({escape_to_short_line(label)})"


def _render_stage(number: int, stage: StageProgress, phrases: CommandPhrases, *, is_current: bool) -> Text:
    mark = _STATUS_SYMBOLS.get(stage.status or "", " ")
    status = phrases.statuses.get(stage.status or "", stage.status or "-")
    line = Text(f" {mark} {number:>2}. {stage.id:<20}", style="bold" if is_current else "")
    line.append(f" {status:<9}", style="cyan" if is_current else "dim")
    details = [phrases.attempt.format(number=stage.attempt)] if stage.attempt > 1 else []
    if stage.messages:
        count = len(stage.messages)
        details.append(phrases.one_message if count == 1 else phrases.message_count.format(count=f"{count:,}"))
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
            shown = truncate_words(escape_to_short_line(text), _MAX_VALUE_LENGTH)
            console.print(Text(f"  {format_field_name(stage, name)}: {shown}"))
    if not any(stage.data for stage in progress.stages):
        print_text(get_command_phrases(progress.language).no_data, err=True)


def print_stage_writes(progress: WorkflowProgress) -> None:
    """Print what was written in the current stage, oldest first, as diffs."""
    phrases = get_command_phrases(progress.language)
    for number, write in enumerate(progress.writes, start=1):
        print_text(f"{number}. {phrases.by_model if write.by_model else phrases.by_user}")
        print_diff(write.diff)
    if not progress.writes:
        print_text(phrases.no_writes, err=True)


def print_diff(diff: str) -> None:
    """Print the lines of a diff."""
    console = make_console()
    styles = {"+": "green", "-": "red"}
    for line in diff.splitlines():
        console.print(Text(f"   {escape_to_short_line(line)}", style=styles.get(line[:1], "")))


def print_references(progress: WorkflowProgress) -> None:
    """Print the references and the figures and tables with the keys that the text cites them by."""
    for item in progress.reference_items:
        print_text(f"@{item.get('id')}  {escape_to_short_line(format_reference(item))}")
    for key, caption in progress.exhibits.items():
        print_text(f"@{key}  {escape_to_short_line(caption)}")
    if not progress.reference_items and not progress.exhibits:
        print_text(get_command_phrases(progress.language).no_references, err=True)


def print_workflows(workflows: Sequence[WorkflowJson]) -> None:
    """Print workflows with their titles and numbers of stages."""
    table = Table("name", "title", "stages", box=None, pad_edge=False)
    for one in workflows:
        stages = "its file is invalid" if one.broken else f"{len(one.stages):,}"
        table.add_row(escape_to_short_line(one.name), escape_to_short_line(one.title), stages)
    print_table(table)
