"""Background work while the user types: process the prompt ahead, and send keep-alives.

A local model processes attachments before the question is sent. Keep-alives keep a provider's cache from expiring, if
the settings ask for them.
"""

import asyncio
from asyncio import AbstractEventLoop, Task
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Protocol, TypeVar

from lamella import Message, Turn
from lamella.cli.access import format_command
from lamella.cli.chat.opening import OpenedConversation, get_unanswered_turn, print_greeting
from lamella.cli.chat.output import AnswerDisplay, show_events
from lamella.cli.chat.status import describe_stop_reason, format_status, print_layers_and_cache
from lamella.cli.errors import SlashCommandHints, failure_to_json, print_failure
from lamella.cli.interrupts import ignore_interrupts
from lamella.cli.ledger_tables import format_cost_after_cache_expiry
from lamella.cli.mentions import get_active_note_or_warn, resolve_and_print_mentions
from lamella.cli.output import escape_to_short_line, print_text
from lamella.cli.tables import format_current_stage, print_next_step
from lamella.conversation.commands import PendingCommands
from lamella.conversation.conversation import Conversation
from lamella.conversation.expired_cache import CacheExpiry
from lamella.conversation.library import (
    display_name,
    droppable_names,
    get_group_name,
    list_droppable_artifacts,
    list_paths_with_passed_text,
    list_working_set,
    with_changed_files,
)
from lamella.conversation.provider_pool import keep_alive
from lamella.conversation.runner_context import DEFAULT_RUNNER
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import TurnEvent
from lamella.conversation.validation import check_text
from lamella.errors import ConflictError, LamellaError
from lamella.schemas.answers import OpenedChatJson
from lamella.schemas.formatting import truncate_words
from lamella.wiring import AttachmentResolver, ResolvedSettings

_Result = TypeVar("_Result")


class CoroutineRunner(Protocol):
    """Runs coroutines on one event loop, as ``asyncio.Runner`` does."""

    def run(self, coro: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine and return its result."""

    def get_loop(self) -> AbstractEventLoop: ...


class PromptWarmup:
    """Processes at most one prompt ahead and sends keep-alives.

    Failures are not errors here: the prompt is processed when it is sent, and an expired cache is shown in the status
    line.
    """

    def __init__(self, opened: OpenedConversation, runner: CoroutineRunner) -> None:
        self._opened = opened
        self._runner = runner
        self._warmup_task: Task[None] | None = None
        self._keep_alive_task: Task[None] | None = None
        self._warm_up: Callable[[Sequence[Message]], Coroutine[Any, Any, None]] | None = getattr(
            opened.get_send_context().provider, "warm_up_cache", None
        )

    @property
    def is_running(self) -> bool:
        return self._warmup_task is not None and not self._warmup_task.done()

    def start(self, turn_request: TurnRequest) -> None:
        """Process the request that this would send, before there is a question."""
        if self._warm_up is None:
            return
        self.stop_warmup()
        with suppress(LamellaError):
            messages = self._opened.conversation.preview(turn_request).messages
            self._warmup_task = self._runner.get_loop().create_task(_run_ignoring_errors(self._warm_up(messages)))

    def start_keep_alive(self) -> None:
        """Start sending keep-alives, unless they are off or already running."""
        opened = self._opened
        if not opened.conversation.max_keep_alives or (
            self._keep_alive_task is not None and not self._keep_alive_task.done()
        ):
            return
        keeping = keep_alive(
            opened.conversation, lambda model: opened.pool.send_context_for(model, max_answer_tokens=1)
        )
        self._keep_alive_task = self._runner.get_loop().create_task(_run_ignoring_errors(keeping))

    def stop_keep_alive(self) -> None:
        """Stop the keep-alives, because a message is about to be sent."""
        task, self._keep_alive_task = self._keep_alive_task, None
        self._cancel(task)

    def stop_warmup(self) -> None:
        """Stop processing ahead; tokens that were processed stay in the model's cache."""
        task, self._warmup_task = self._warmup_task, None
        self._cancel(task)

    def _cancel(self, task: Task[None] | None) -> None:
        if task is not None and not task.done():
            task.cancel()
            self._runner.run(_wait_for_task(task))


async def _run_ignoring_errors(coroutine: Coroutine[Any, Any, object]) -> None:
    with suppress(LamellaError):
        await coroutine


async def _wait_for_task(task: Task[None]) -> None:
    await asyncio.wait([task])


# List the working set by the names that users know, for completion and status lines.

_MAX_SHOWN_NAMES = 3
_MAX_NAME_LENGTH = 24


def list_attached_names(conversation_log: Conversation) -> list[str]:
    """Return the names in the working set, without those that leave it with the next message."""
    pending = conversation_log.pending_commands
    removed = {*pending.detach, *pending.drop}
    attached = list_working_set(*conversation_log.current_state)
    return list(dict.fromkeys(display_name(artifact) for artifact in attached if artifact.id not in removed))


def list_sticky_names(conversation_log: Conversation) -> list[str]:
    """Return the names of attachments that stay; passages that a search found only have a retention period."""
    library = conversation_log.current_state[0].library
    lingers = {display_name(entry.artifact) for entry in library.values() if entry.stays_attached is None}
    return [name for name in list_attached_names(conversation_log) if name not in lingers]


def pending_attachment_names(pending: PendingCommands) -> list[str]:
    """Return the names of pending attachments; an attached folder appears once, in place of its notes."""
    return list(dict.fromkeys(get_group_name(one) or display_name(one) for one in pending.attach))


def format_pending_commands(conversation_log: Conversation) -> str:
    """Return the pending commands for the status line; an image is shown by its file name."""
    pending = conversation_log.pending_commands
    if pending == PendingCommands():
        return ""
    known = droppable_names(conversation_log.current_state[0])
    out = dict.fromkeys([*pending.detach, *pending.drop])
    names = "".join(f" · +{escape_to_short_line(name)}" for name in pending_attachment_names(pending))
    names += "".join(f" · -{escape_to_short_line(known.get(name, name))}" for name in out)
    names += "".join(f" · pin {escape_to_short_line(known.get(name, name))}" for name in pending.pin)
    return names + "".join(f" · unpin {escape_to_short_line(known.get(name, name))}" for name in pending.unpin)


def list_droppable_names(conversation_log: Conversation) -> list[str]:
    """Return the names of artifacts in the prompt that may be dropped; pinned ones may not."""
    return list(
        dict.fromkeys(
            display_name(one)
            for one in list_droppable_artifacts(conversation_log.current_state[0])
            if one.policy != "pin"
        )
    )


def list_pinnable_ids(conversation_log: Conversation) -> list[str]:
    """Return the ids of artifacts in the library that are not pinned."""
    return [name for name, entry in conversation_log.current_state[0].library.items() if entry.artifact.policy != "pin"]


def list_pinned_ids(conversation_log: Conversation) -> list[str]:
    """Return the ids of pinned artifacts, then of pinned messages."""
    state = conversation_log.current_state[0]
    artifacts = [name for name, entry in state.library.items() if entry.artifact.policy == "pin"]
    return [*artifacts, *sorted(state.pinned)]


def format_last_names(names: Sequence[str]) -> str:
    """Return the last few names for the prompt and how many more there are; empty for no names."""
    if not names:
        return ""
    shown = [
        truncate_words(escape_to_short_line(PurePosixPath(name).name or name), _MAX_NAME_LENGTH)
        for name in names[-_MAX_SHOWN_NAMES:]
    ]
    more = [f"{len(names) - _MAX_SHOWN_NAMES} more"] if len(names) > _MAX_SHOWN_NAMES else []
    return f"[{', '.join([*more, *shown])}] "


# A chat session at the command line: send messages, show answers, and continue after failures.


# Shows the events of an answer, and returns the turn as last sent.
ShowAnswer = Callable[[AsyncGenerator[TurnEvent, None], AnswerDisplay], Coroutine[Any, Any, Turn | None]]


class ChatSession:
    """A chat session with one conversation at a time.

    Pending attachments and commands are stored in the conversation, not here. ``failed`` says that the last message
    got no answer. ``is_interactive`` says that a user types: then prompts can be processed ahead, and Ctrl-C stops an answer
    but not the session. ``show_answer`` shows the events of an answer.
    """

    def __init__(
        self,
        opened: OpenedConversation,
        runner: CoroutineRunner,
        *,
        output: AnswerDisplay,
        files: AttachmentResolver,
        shows_strata: bool,
        is_interactive: bool,
        show_answer: ShowAnswer = show_events,
    ) -> None:
        self._opened = opened
        self._show_events = show_answer
        self._runner = runner
        self._output = output
        self._warmup = PromptWarmup(opened, runner)
        self._is_interactive = is_interactive
        self._requested_model: str | None = None
        self.files = files
        self.shows_strata = shows_strata
        # The note that is open in the user's editor. It is attached to every message, with the images it embeds.
        self.active_note = ""
        # Files outside any vault that this session sent. In a later session the same path may be another file.
        self._sent_outside_files: dict[str, None] = {}
        self.failed = False
        # The last computed cache expiry, keyed by the conversation's id and its number of events.
        self._known_expiry: tuple[tuple[str, int], CacheExpiry | None] | None = None

    @property
    def opened_conversation(self) -> OpenedConversation:
        return self._opened

    @property
    def is_interactive(self) -> bool:
        """Whether a user types at a terminal."""
        return self._is_interactive

    @property
    def conversation(self) -> Conversation:
        return self._opened.conversation

    def resolved_settings(self) -> ResolvedSettings:
        """Return the settings of this conversation and where each comes from."""
        return self._opened.resolve_settings(self.conversation.settings)

    @property
    def model(self) -> str:
        """The model that the next message is sent to."""
        return self._requested_model or self.conversation.model_for(TurnRequest(text=""))

    @property
    def show_command(self) -> str:
        """The command that prints this conversation with its message ids."""
        return format_command("chats show", self.conversation.name, store=self._opened.store)

    def print_introduction(self) -> None:
        """Print which conversation this is and its last turn."""
        print_greeting(self._opened)
        conversation_log = self.conversation
        work = conversation_log.workflow
        if work is not None:
            print_text(f"{work.title}: {format_current_stage(work)}", err=True)
            print_next_step(work, format_action=lambda action: f"/stage {action}")
        body = OpenedChatJson(
            conversation=conversation_log.id,
            name=conversation_log.name,
            model=self._opened.model,
            turns=len(conversation_log.turns()),
        )
        self._output.report_event("opened", body)

    def switch_conversation(self, opened: OpenedConversation) -> None:
        """Switch to another conversation; pending commands of this one stay with it."""
        self._requested_model = None
        self._switch_to(opened)

    def set_model(self, model: str) -> None:
        """Use another model from the next message on; pending commands stay."""
        self._switch_to(self._opened.switch_model(model))
        # Needed besides the setting: a branch keeps the model that it was asked with.
        self._requested_model = model

    def _switch_to(self, opened: OpenedConversation) -> None:
        self.stop_background()
        self._warmup = PromptWarmup(opened, self._runner)
        self._opened = opened

    def send_message(self, text: str) -> None:
        """Send a message with its pending attachments and the files that it names; failures are printed."""
        # Set before anything can raise; ``_follow`` resets it when the answer is complete.
        self.failed = True
        try:
            turn_request = self._build_turn_request(text, prints_changes=True)
            events = self._opened.run(turn_request, model=self.conversation.model_for(turn_request))
            self._sent_outside_files |= dict.fromkeys(list_paths_with_passed_text(turn_request.attach))
            self._show_answer(events)
        except LamellaError as error:
            self.handle_failure(error)

    def edit_message(self, message_id: str, text: str) -> None:
        """Ask another text in place of a question, with the same attachments; the old branch stays."""
        self.failed = True
        turn = self.conversation.edit(message_id, check_text(text, "the message"), model=self._requested_model)
        self._show_answer(self._opened.run(turn))

    def preview_message(self, text: str) -> Turn:
        """Return what a message would send, with its pending attachments and the files that it names."""
        return self._opened.preview(self._build_turn_request(text))

    def regenerate(self, message: str | None = None) -> None:
        """Regenerate the answer to a question with the model that the status line shows.

        The old answer stays on its branch. If no new answer arrives, that branch becomes active again.
        """
        self.failed = True
        before = self.conversation.head
        turn = self.conversation.regenerate(message, model=self.model)
        try:
            self._show_answer(self._opened.run(turn))
        finally:
            if self.conversation.turns()[-1].reply is None and self.conversation.head != before:
                self.conversation.switch(before)

    def resume(self) -> None:
        """Resume the unanswered question where it stopped, or continue an answer that was cut off."""
        self.failed = True
        self._show_answer(self._opened.run(get_unanswered_turn(self.conversation)))

    def handle_failure(self, error: LamellaError) -> None:
        """Print a failure; after a write conflict, also reload the conversation that another process changed."""
        if isinstance(error, ConflictError):
            self.conversation.reload()
        hints = SlashCommandHints(self._opened.store)
        print_failure(error, hints, as_json=False)
        self._output.report_event("error", failure_to_json(error, hints))

    def recover_from_cancelled_command(self, command: str) -> None:
        """Go on after Ctrl-C stopped a command; without a user at a terminal, end the program as Ctrl-C does.

        The conversation is loaded again, because the command may have stopped half-way.
        """
        if not self._is_interactive:
            raise KeyboardInterrupt
        with ignore_interrupts():
            self.conversation.reload()
            print_text(f"{command} was cancelled.", err=True)

    def start_warmup(self) -> None:
        """Let a local model process the next message's attachments ahead, if it can do that."""
        if self._is_interactive and self.conversation.default_runner == DEFAULT_RUNNER:
            self._warmup.start(self._build_turn_request(""))

    def start_keep_alive(self) -> None:
        """Start sending keep-alives while the user types, if the settings ask for them."""
        if self._is_interactive:
            self._warmup.start_keep_alive()

    def stop_keep_alive(self) -> None:
        """Stop sending keep-alives, because a message was typed."""
        self._warmup.stop_keep_alive()

    def stop_background(self) -> None:
        """Stop all background work."""
        self.stop_keep_alive()
        self._warmup.stop_warmup()

    def background_status(self) -> str:
        """Return the status while a message is typed: background work, and the cost once the cache expires."""
        status = (
            self._output.progress_text if self._warmup.is_running else "",
            self._cache_expiry_status(datetime.now(UTC)),
        )
        return "".join(f" · {one}" for one in status if one)

    def _cache_expiry_status(self, now: datetime) -> str:
        """Return the text about the cache's expiry.

        The prompt calls this twice a second. So the estimate is computed once, when there is something to report, and
        kept until the conversation changes.
        """
        conversation_log = self.conversation
        known = self._known_expiry
        if known is None or known[0] != (conversation_log.id, conversation_log.version) or known[1] is None:
            with suppress(LamellaError):
                self._known_expiry = known = (
                    (conversation_log.id, conversation_log.version),
                    conversation_log.estimate_cache_expiry(at=now),
                )
        expiry = None if known is None else known[1]
        if expiry is not None and not expiry.expired and now > expiry.expires_at:
            self._known_expiry = None
        return format_cost_after_cache_expiry(expiry, now=now, max_keep_alives=conversation_log.max_keep_alives)

    def status_line(self) -> str:
        """Return the status line."""
        return format_status(self.conversation, self.model) + format_pending_commands(self.conversation)

    @property
    def attachments_are_sticky(self) -> bool:
        """Whether attachments stay attached until they are detached."""
        return self.conversation.current_state[1].attachments == "sticky"

    def attached_status(self) -> str:
        """Return the current workflow stage and the attachments, to be shown before the prompt; empty if none."""
        work = self.conversation.workflow
        stage = "" if work is None else f"[{format_current_stage(work)}] "
        return stage + (format_last_names(list_sticky_names(self.conversation)) if self.attachments_are_sticky else "")

    def list_argument_candidates(self, command: str) -> list[str]:
        """Return the names that a command accepts in this conversation."""
        match command:
            case "/detach":
                return [
                    *pending_attachment_names(self.conversation.pending_commands),
                    *list_attached_names(self.conversation),
                ]
            case "/refresh":
                return list_attached_names(self.conversation)
            case "/drop":
                return list_droppable_names(self.conversation)
            case "/pin":
                return list_pinnable_ids(self.conversation)
            case "/unpin":
                return list_pinned_ids(self.conversation)
        return []

    def store_commands(self, turn_request: TurnRequest) -> PendingCommands:
        """Store commands for the next message at once, and print their warnings."""
        self._sent_outside_files |= dict.fromkeys(list_paths_with_passed_text(turn_request.attach))
        done = self.conversation.queue_command(turn_request)
        for line in done.warnings:
            print_text(f"note: {escape_to_short_line(line)}", err=True)
        return done

    def _build_turn_request(self, text: str, *, prints_changes: bool = False) -> TurnRequest:
        """Return the turn request of a message, with files outside a vault that changed since they were sent.

        ``prints_changes`` says that the message is sent now; previews print nothing about changed files.
        """
        attach = [*get_active_note_or_warn(self.active_note, self.files), *resolve_and_print_mentions(text, self.files)]
        turn_request = TurnRequest(
            text=check_text(text, "the message"),
            attach=tuple(one.to_artifact() for one in attach),
            model=self._requested_model,
        )
        return (
            self._with_changed_outside_files(turn_request, prints_changes=prints_changes)
            if self.attachments_are_sticky
            else turn_request
        )

    def _with_changed_outside_files(self, turn_request: TurnRequest, *, prints_changes: bool) -> TurnRequest:
        """Return the request with files outside a vault that changed since they were sent; with ``prints_changes``, print them."""
        find, pending = self.files.resolve, self.conversation.pending_commands
        but = {*pending.detach, *pending.drop, *(one.id for one in pending.attach)}
        turn_request, warnings = with_changed_files(
            turn_request,
            self.conversation.current_state[0],
            self._sent_outside_files,
            read=lambda path: [one.to_artifact() for one in find(path)],
            except_for=but,
        )
        for line in warnings if prints_changes else ():
            print_text(f"note: {escape_to_short_line(line)}", err=True)
        return turn_request

    def _show_answer(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        """Show an answer, and print how it ended."""
        try:
            turn = self._runner.run(self._show_events(events, self._output))
        except KeyboardInterrupt:
            self._requested_model = None
            if not self._is_interactive:
                # The remaining piped messages were written to follow this answer, so they are not sent.
                raise
            self.failed = False
            print_text(self._stopped_message(), err=True)
            return
        self._requested_model = None
        self.failed = False
        if turn is None or not turn.ledger.calls:
            return
        self._output.report_event("done", self._opened.answer_to_json(turn))
        end = describe_stop_reason(turn.ledger.calls[-1])
        if end:
            print_text(end, err=True)
        if self.shows_strata:
            print_layers_and_cache(turn, self._opened)

    def _stopped_message(self) -> str:
        records = self.conversation.turns()
        if records and records[-1].reply is not None:
            return "Stopped. The partial answer is saved; /resume continues it, /retry asks again."
        if records and records[-1].open_rounds:
            return "Stopped between two tool rounds. /resume continues; a new message abandons the question."
        return "Stopped before the answer started. The question is saved; /retry asks it again."
