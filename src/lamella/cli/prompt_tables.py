"""Format compaction receipts and markers on one line."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from rich.table import Table

from lamella import CompactionReceipt, Turn, TurnRecord
from lamella.cli.access import format_command
from lamella.cli.console import print_table
from lamella.cli.output import (
    escape_lines,
    escape_to_short_line,
    format_cache_miss,
    format_count,
    format_time,
    print_text,
)
from lamella.conversation.commands import PendingCommands
from lamella.conversation.conversation import Conversation
from lamella.conversation.library import LibraryItem, display_name, droppable_names
from lamella.conversation.log import CompactionMarker
from lamella.conversation.reasons import PromptExplanation, SuggestedAction, SuggestedActionKind
from lamella.hints import format_pending_python_tools
from lamella.schemas.formatting import format_decimal, truncate_words
from lamella.schemas.library import cost_difference, estimated_cost
from lamella.schemas.messages import BranchJson, CitedSourceJson, ToolCallRecordJson, ToolRoundJson, TurnJson


def format_receipt(receipt: CompactionReceipt) -> str:
    """Return a receipt on one line: tokens before and after, and how many items each step removed."""
    removed_counts: Counter[str] = Counter()
    for step in receipt.steps:
        removed_counts[step.name.value] += len(step.removed)
    steps = ", ".join(f"{name} {number:,}" for name, number in removed_counts.items()) or "folding only"
    skipped = "".join(f"; {one.name} skipped: {escape_to_short_line(one.why)}" for one in receipt.skipped)
    tokens = f"{receipt.tokens_before:,} → {receipt.tokens_after:,} tokens"
    return f"{tokens} by {steps} (receipt {receipt.id}{skipped})"


def format_compaction_marker(marker: CompactionMarker) -> str:
    """Return the line below a message after which a compaction or an undo happened."""
    if marker.receipt is None:
        return f"undone: {', '.join(marker.voided)}"
    return f"compacted: {format_receipt(marker.receipt)}{', undone later' if marker.undone else ''}"


# Format the turns of a conversation, with message ids to fork at and compaction markers.

_INDENT = " " * 18
# The name of a tool from a tool server has this between the names of the server and the tool.
_SERVER_TOOL_MARK = "__"
# How many characters of a call's arguments and of its output are shown.
_MAX_CALL_TEXT_LENGTH = 100


def format_unanswered_question_hint(resume_command: str, record: TurnRecord) -> str:
    """Return the line that says how to continue an unanswered question: with the command ``resume_command``.

    The command line lacks the functions of a Python program, so a question that waits for one continues in Python.
    """
    names = _pending_program_tools(record)
    if not names:
        return f"`{resume_command}` continues it; a new message abandons it."
    return format_pending_python_tools([escape_to_short_line(name) for name in names])


def _pending_program_tools(record: TurnRecord) -> list[str]:
    """Return the names of called tools without a result that neither Lamella nor a tool server provides."""
    waiting = record.pending_round
    if waiting is None:
        return []
    from lamella.tools.registry import TOOL_FACTORIES  # only an interrupted question needs it

    done = {result.call for result in waiting.early_results}
    called = (call.name for call in waiting.calls if call.id not in done)
    return [name for name in dict.fromkeys(called) if name not in TOOL_FACTORIES and _SERVER_TOOL_MARK not in name]


def format_cut_answer(resume_command: str) -> str:
    """Return the line about an answer that was cut off; the command ``resume_command`` continues it."""
    return f"The answer was cut off; `{resume_command}` continues it."


def format_turn(turn: TurnJson, markers: Sequence[CompactionMarker], rounds: Sequence[ToolRoundJson] = ()) -> list[str]:
    """Return a turn as lines: question, attachments, tool rounds and reply, with markers below each message."""
    lines = [f"{turn.message}  user: {escape_lines(turn.text)}"]
    lines += [f"{_INDENT}+ {escape_to_short_line(name)}" for name in turn.attached]
    lines += _format_markers(turn.message, markers)
    lines += [f"{_INDENT}{line}" for one in rounds for line in format_tool_round(one)]
    reply = turn.reply
    if reply is not None:
        lines.append(f"{reply.message}  reply: {escape_lines(reply.text)}")
        lines += [f"{_INDENT}(cut off: {reply.cut})"] if reply.cut else []
        lines += _format_markers(reply.message, markers)
    return lines


def format_tool_round(tool_round: ToolRoundJson) -> list[str]:
    """Return a tool round as lines: the model's text, then each call with its output."""
    lines = [f"… {line}" for line in escape_lines(tool_round.text).splitlines()]
    return [*lines, *(f"> {_format_call_with_output(call)}" for call in tool_round.calls)]


def format_source_lines(source: CitedSourceJson) -> list[str]:
    """Return a cited source as lines: its number and position, then the passage itself."""
    location = " > ".join(filter(None, (source.path or source.id, source.place.replace("#", " > "))))
    text = "deleted" if source.text is None else source.text
    passage = [f"{_INDENT}  | {line}".rstrip() for line in escape_lines(text).splitlines()]
    return [f"{_INDENT}[^{source.number}] {escape_to_short_line(location)}", *passage]


def _format_call_with_output(call: ToolCallRecordJson) -> str:
    called = format_tool_call(call.name, call.arguments)
    if call.output is None:
        return f"{called} (result pending)"
    return f"{called} {format_tool_output(call.output, failed=call.failed)}"


def format_tool_call(name: str, arguments: str) -> str:
    """Return a tool call on one line."""
    return escape_to_short_line(f"{name}({truncate_words(arguments, _MAX_CALL_TEXT_LENGTH)})")


def format_tool_output(output: str, *, failed: bool) -> str:
    """Return the output of a tool call, shortened to one line."""
    return (
        f"{'failed' if failed else 'returned'}: {escape_to_short_line(truncate_words(output, _MAX_CALL_TEXT_LENGTH))}"
    )


def _format_markers(message: str, markers: Sequence[CompactionMarker]) -> list[str]:
    return [f"{_INDENT}~ {format_compaction_marker(mark)}" for mark in markers if mark.message == message]


def print_if_no_sources(*, requested: bool, has_sources: bool) -> None:
    """Print that there are no sources, if the user asked for them."""
    if requested and not has_sources:
        print_text("No answer cites a source.")


# Format branches for a list.

_MAX_BRANCH_TEXT_LENGTH = 50


def format_branch(branch: BranchJson) -> str:
    """Return a branch on one line: last message, length, time of the last message, last question and answer."""
    mark = "*" if branch.active else " "
    last = branch.last
    if last is None:
        return f"{mark} {branch.branch}  empty"
    reply = last.reply
    when = format_time((reply or last).at)[:16]
    length = format_count(branch.turns, "turn")
    answer = truncate_words(reply.text, _MAX_BRANCH_TEXT_LENGTH) if reply else "no answer"
    return escape_to_short_line(
        f"{mark} {branch.branch}  {length}  {when}  {truncate_words(last.text, _MAX_BRANCH_TEXT_LENGTH)} → {answer}"
    )


# one row per artifact, then the pending commands.

_MAX_LEFT_OUT_SHOWN = 12
_COST_DIGITS = 6
_PIN_POLICY = "pin"
_TOO_LARGE_NOTE = (
    "This does not fit into the context window. Lamella shortens what it can with the next question; if that is not "
    "enough, the question is refused. Detach something, or attach only lines or a heading."
)


def print_library(conversation_log: Conversation, rows: Sequence[LibraryItem]) -> None:
    """Print every artifact, the notes that do not fit from attached folders, and the pending commands."""
    pending = conversation_log.pending_commands
    if not rows and not pending:
        print_text(f"No attachments in {escape_to_short_line(conversation_log.name)}.")
        return
    headings = ("artifact", "kind", "form", "tokens", "age", "working set", "cached", "detaching saves")
    table = Table(*headings, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            escape_to_short_line(row.name),
            row.kind,
            row.form,
            f"{row.tokens:,}",
            "next turn" if row.is_pending else format_count(row.age_turns, "turn"),
            _format_retention(row),
            {True: "yes", False: "no", None: "unknown"}[row.cached],
            f"{row.tokens_saved:,}",
        )
    print_table(table)
    for line in (*_format_left_out(rows), *_format_pending_commands(conversation_log, pending)):
        print_text(line)


def _format_retention(row: LibraryItem) -> str:
    if not row.in_working_set:
        return "no"
    return "pinned" if row.policy == "pin" else "yes"


def _format_left_out(rows: Sequence[LibraryItem]) -> Iterator[str]:
    for row in rows:
        if row.left_out:
            yield f"Left out of {escape_to_short_line(row.name)}, {format_count(len(row.left_out), 'note')}:"
            yield from (f"  {escape_to_short_line(path)}" for path in row.left_out[:_MAX_LEFT_OUT_SHOWN])
            more = len(row.left_out) - _MAX_LEFT_OUT_SHOWN
            if more > 0:
                yield f"  and {more:,} more; --json lists all of them"


def print_command_effect(
    conversation_log: Conversation, pending: PendingCommands, *, before: Turn, after: Turn
) -> None:
    """Print the effect of a command: the pending commands and the size of the next request."""
    for line in pending.warnings:
        print_text(f"note: {escape_to_short_line(line)}", err=True)
    lines = list(_format_pending_commands(conversation_log, pending))
    print_text(
        "\n".join(lines)
        if lines
        else f"Nothing pending for the next turn of {escape_to_short_line(conversation_log.name)}."
    )
    print_text(_format_next_request(before, after))
    if after.tokens.total > after.tokens.limit:
        print_text(f"note: {_TOO_LARGE_NOTE}", err=True)


def _format_pending_commands(conversation_log: Conversation, pending: PendingCommands) -> Iterator[str]:
    """Yield one line per pending command, with the names that users know."""
    state = conversation_log.current_state[0]
    known = droppable_names(state)
    for one in pending.attach:
        tokens = f", {format_count(pending.tokens[one.id], 'token')}" if one.id in pending.tokens else ""
        there = state.library.get(one.id)
        if there is not None and there.form is None and there.artifact.hash == one.hash:
            tokens = ", already in the prompt"
        shown = " as its outline" if one.is_outlined else ""
        pinned = ", pinned" if one.policy == _PIN_POLICY else ""
        yield f"attached to the next turn: {escape_to_short_line(display_name(one))}, {one.kind}{shown}{tokens}{pinned}"
    for names, done in (
        (pending.detach, "detached"),
        (pending.drop, "dropped"),
        (pending.pin, "pinned"),
        (pending.unpin, "unpinned"),
        (pending.rules, "rule added"),
        (pending.removed_rules, "rule removed"),
    ):
        yield from (f"{done} with the next turn: {escape_to_short_line(known.get(name, name))}" for name in names)


def _format_next_request(before: Turn, after: Turn) -> str:
    total, more = after.tokens.total, after.tokens.total - before.tokens.total
    cost, more_cost = estimated_cost(after), cost_difference(before, after)
    line = f"Next request, without the question: {total:,} of {after.tokens.limit:,} tokens ({more:+,})"
    if cost is None or more_cost is None:
        return f"{line}."
    sign = "-" if more_cost < 0 else "+"
    return f"{line}, about {_format_money(cost)} ({sign}{_format_money(abs(more_cost))})."


def _format_money(amount: Decimal) -> str:
    return f"${format_decimal(round(amount, _COST_DIGITS))}"


# Print why something is in the prompt or not, and the commands that change it.


def print_explanation(chat: str, explanation: PromptExplanation, *, store: str | None) -> None:
    """Print the explanation, the positions in the prompt, and commands that include the full text."""
    name, place = escape_to_short_line(explanation.id), "in" if explanation.in_prompt else "not in"
    print_text(f"{name} is {place} the prompt of {escape_to_short_line(chat)}.")
    print_text(escape_to_short_line(explanation.why))
    for layer, segment in explanation.segments:
        where = "carried" if layer is None else layer.value
        suffix = "" if segment.place is None else f" · {segment.place}"
        print_text(f"  {where} · {segment.form.value}{suffix} · {format_count(segment.tokens, 'token')}")
    for miss in explanation.cache_misses:
        print_text(f"  Cache miss in turn {miss.turn}: {escape_to_short_line(miss.why)}.")
        print_text(f"    {format_cache_miss(miss.tokens, miss.cost)}")
    for line in _format_suggested_actions(chat, explanation, store=store):
        print_text(f"  {line}")


def _format_suggested_actions(chat: str, explanation: PromptExplanation, *, store: str | None) -> Iterator[str]:
    if explanation.remedies:
        yield "To include the full text:"
    for remedy in explanation.remedies:
        yield f"  {_format_suggested_action(chat, remedy, store=store)}"


def _format_suggested_action(chat: str, action: SuggestedAction, *, store: str | None) -> str:
    match action.kind:
        case SuggestedActionKind.ATTACH:
            return f"attach it: @{escape_to_short_line(action.target)} in a chat, or --attach with `lamella ask`"
        case SuggestedActionKind.UNDO:
            return f"undo: {format_command('compact', chat, undo=True, receipt=action.target, store=store)}"
        case SuggestedActionKind.SET:
            return f"set: {action.target}"
        case SuggestedActionKind.RECALL:
            return f"read it: {format_command('recall', chat, action.target, store=store)}"
        case SuggestedActionKind.FORK:
            return f"continue from it: {format_command('chats fork', chat, action.target, store=store)}"
