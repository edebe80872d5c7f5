"""Session updates: what an editor shows of a turn, and of an earlier conversation that it loads."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from acp.helpers import (
    ToolCallContentVariant,
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    PlanEntryStatus,
    SessionInfoUpdate,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
    Usage,
    UsageUpdate,
    UserMessageChunk,
)

from lamella import ModelCall, ToolCall, ToolOutput
from lamella.conversation.turn_runner import EventName, TurnEvent
from lamella.ports import FileChange, WorkflowProgress

SessionUpdate = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)

_TOOL_KINDS: Mapping[str, ToolKind] = {
    "search_notes": "search",
    "list_files": "search",
    "recall": "search",
    "web_search": "search",
    "read_note": "read",
    "fetch_url": "fetch",
    "write_note": "edit",
    "edit_note": "edit",
    "compact": "think",
    "time_range": "think",
}
_PLAN_STATUS: Mapping[str | None, PlanEntryStatus] = {"approved": "completed", None: "pending"}
# More of a result is not shown in the editor; the model gets all of it.
_MAX_SHOWN_CHARS = 10_000
_MAX_TITLE_CHARS = 80
_REFUSED_STOP = "refused"
_LENGTH_STOPS = ("length", "window")


class OpenToolCall:
    """A tool call whose result has not come: its id for the editor, and the change that the user was asked about."""

    def __init__(self, shown_id: str, call: ToolCall) -> None:
        self.shown_id = shown_id
        self.call = call
        self.change: FileChange | None = None

    def arguments(self) -> Mapping[str, object]:
        """Return the arguments of the call; empty if they are no JSON object."""
        return parse_arguments(self.call)


class TurnUpdates:
    """Converts the events of turns into session updates, and matches tool results to their calls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._message_id = ""
        self._count = 0
        self._open_calls: deque[OpenToolCall] = deque()
        # Notices that were shown already: every tool round sends the turn again with all its warnings.
        self._shown_notices: dict[str, None] = {}

    def start_turn(self, message_id: str) -> None:
        """Begin another turn; its calls get ids of their own, because models use the same ids again."""
        self._message_id, self._count = message_id, 0
        self._open_calls.clear()
        self._shown_notices.clear()

    def from_event(self, event: TurnEvent) -> Iterator[SessionUpdate]:
        """Yield the updates for an event."""
        match event.kind:
            case EventName.DELTA:
                yield update_agent_message_text(event.text)
            case EventName.REASONING:
                yield update_agent_thought_text(event.message)
            case EventName.TOOL:
                if event.call is not None:
                    yield self._start_call(event.call)
                if event.output is not None:
                    yield self._finish_call(event.output)
            case _:
                yield from self._describe(event)

    def find_open_call(self, change: FileChange) -> OpenToolCall | None:
        """Return the call that wants to make a change, or None if no call does."""
        waiting = [one for one in self._open_calls if one.change is None]
        if change.is_memory:
            return next((one for one in waiting if one.call.name == "remember"), None)
        editing = [one for one in waiting if _TOOL_KINDS.get(one.call.name) == "edit"]
        same = (one for one in editing if str(one.arguments().get("path", "")).strip("/") in (change.path, ""))
        return next(same, next(iter(editing), None))

    def find_call(self, tool: str, arguments: Mapping[str, object]) -> OpenToolCall | None:
        """Return the open call of a tool with these arguments, or None."""
        return next((one for one in self._open_calls if one.call.name == tool and one.arguments() == arguments), None)

    def next_call_id(self) -> str:
        """Return an id for the next call that the editor shows."""
        self._count += 1
        return f"{self._message_id}.{self._count}"

    def notice(self, text: str) -> Iterator[SessionUpdate]:
        """Yield a notice, once in each turn. It is shown as a thought, so that it is no part of the answer."""
        if text not in self._shown_notices:
            self._shown_notices[text] = None
            yield update_agent_thought_text(f"{text}\n")

    def text(self, shown: str) -> Iterator[SessionUpdate]:
        """Yield a text of Lamella itself, such as the output of a command."""
        yield update_agent_message_text(shown)

    def change_content(self, change: FileChange) -> list[ToolCallContentVariant]:
        """Return a change as a diff that the editor can show."""
        return [tool_diff_content(self.absolute_path(change.path), change.after, change.before)]

    def locations(self, path: str) -> list[ToolCallLocation]:
        """Return the location of a file, which editors follow."""
        return [ToolCallLocation(path=self.absolute_path(path))]

    def absolute_path(self, path: str) -> str:
        """Return the absolute path of a file of the session's folder."""
        return str(self._folder / path)

    def _start_call(self, call: ToolCall) -> ToolCallStart:
        open_call = OpenToolCall(self.next_call_id(), call)
        self._open_calls.append(open_call)
        arguments = open_call.arguments()
        path = arguments.get("path")
        return start_tool_call(
            open_call.shown_id,
            _call_title(call.name, arguments),
            kind=_TOOL_KINDS.get(call.name, "other"),
            status="in_progress",
            locations=self.locations(path) if isinstance(path, str) and path else None,
            raw_input=dict(arguments),
        )

    def _finish_call(self, output: ToolOutput) -> ToolCallProgress:
        open_call = next((one for one in self._open_calls if one.call.id == output.call), None)
        if open_call is None and self._open_calls:
            # Ids may have been corrected since the call; results come in the order of the calls then.
            open_call = self._open_calls[0]
        if open_call is not None:
            self._open_calls.remove(open_call)
        text = output.output
        if len(text) > _MAX_SHOWN_CHARS:
            text = f"{text[:_MAX_SHOWN_CHARS]}\n[… {len(text) - _MAX_SHOWN_CHARS:,} more characters]"
        content: list[ToolCallContentVariant] = [tool_content(text_block(text))]
        if open_call is not None and open_call.change is not None and not output.failed:
            content = [*self.change_content(open_call.change), *content]
        return update_tool_call(
            open_call.shown_id if open_call is not None else self.next_call_id(),
            status="failed" if output.failed else "completed",
            content=content,
        )

    def _describe(self, event: TurnEvent) -> Iterator[SessionUpdate]:
        match event:
            case TurnEvent(kind=EventName.ENVELOPE, turn=turn) if turn is not None:
                for warning in turn.envelope.warnings:
                    yield from self.notice(warning)
                if turn.compaction is not None:
                    before, after = turn.compaction.tokens_before, turn.compaction.tokens_after
                    yield from self.notice(f"Compacted: {before:,} → {after:,} tokens.")
                if turn.tokens.window is not None:
                    yield usage_update(turn.tokens.total, turn.tokens.window)
            case TurnEvent(kind=EventName.NOTE):
                yield from self.notice(event.message)
            case TurnEvent(kind=EventName.RETRY):
                yield from self.notice(f"{event.message} Trying again in {event.wait or 0:.1f} s.")
            case TurnEvent(kind=EventName.COMPACTION, receipt=receipt) if receipt is not None:
                yield from self.notice(
                    f"{event.message} Compacted: {receipt.tokens_before:,} → {receipt.tokens_after:,} tokens."
                )


def parse_arguments(call: ToolCall) -> Mapping[str, object]:
    """Return the arguments of a call; empty if they are no JSON object."""
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _call_title(name: str, arguments: Mapping[str, object]) -> str:
    """Return the name of a tool with its first argument, on one short line."""
    first = next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")
    line = " ".join(first.split())
    short = line if len(line) <= _MAX_TITLE_CHARS else f"{line[:_MAX_TITLE_CHARS]}…"
    return f"{name}: {short}" if short else name


def plan_update(progress: WorkflowProgress) -> AgentPlanUpdate:
    """Return the stages of a workflow as a plan."""
    return update_plan(
        plan_entry(
            stage.label,
            status="in_progress" if stage.id == progress.current else _PLAN_STATUS.get(stage.status, "pending"),
        )
        for stage in progress.stages
    )


def usage_update(used: int, window: int, calls: Sequence[ModelCall] = ()) -> UsageUpdate:
    """Return how full the window is; with all calls of a conversation, also its cost and the last cached tokens."""
    billed = [call.billed for call in calls if call.billed is not None]
    last = calls[-1].usage if calls else None
    details = {} if last is None else {"cachedTokens": last.read, "promptTokens": last.prompt_tokens}
    return UsageUpdate(
        session_update="usage_update",
        used=used,
        size=window,
        cost=Cost(amount=float(sum(billed, Decimal(0))), currency="USD") if billed else None,
        field_meta={"lamella": details} if details else None,
    )


def turn_usage(calls: Sequence[ModelCall]) -> Usage | None:
    """Return the tokens of all model calls of a turn, or None if no provider reported them."""
    known = [call.usage for call in calls if call.usage.prompt_tokens is not None]
    if not known:
        return None
    given = sum(one.prompt_tokens or 0 for one in known)
    output = sum(one.output or 0 for one in known)
    return Usage(
        input_tokens=given,
        output_tokens=output,
        total_tokens=given + output,
        thought_tokens=_sum_known([one.reasoning for one in known]),
        cached_read_tokens=_sum_known([one.read for one in known]),
        cached_write_tokens=_sum_known([one.write for one in known] + [one.write_long for one in known]),
    )


def _sum_known(counts: Sequence[int | None]) -> int | None:
    found = [count for count in counts if count is not None]
    return sum(found) if found else None


def stop_reason(calls: Sequence[ModelCall]) -> str:
    """Return why an answer ended, in the words of the protocol."""
    stop = calls[-1].stop if calls else ""
    if stop == _REFUSED_STOP:
        return "refusal"
    return "max_tokens" if stop in _LENGTH_STOPS else "end_turn"
