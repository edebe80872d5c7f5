"""``/compact`` and ``/undo``: compact a range or the whole conversation, and undo it."""

from pathlib import Path

from lamella.cli.access import format_command
from lamella.cli.chat.input import complete_path, match_name_or_description, match_prefix_after_word
from lamella.cli.chat.opening import ChatOptions, OpenedConversation
from lamella.cli.chat.session import ChatSession
from lamella.cli.clipboard import MAX_CLIPBOARD_BYTES, copy_to_clipboard, terminal_accepts_clipboard
from lamella.cli.compaction_tables import (
    cannot_shrink_hint,
    find_unanswered_question,
    half_of_current_share,
    print_compaction,
    print_plan_warnings,
    print_stopped_question,
)
from lamella.cli.output import escape_to_short_line, format_count, print_text
from lamella.cli.tables import format_runner, print_chats, print_stage_data, print_stage_writes, print_workflow_progress
from lamella.cli.transcripts import differing_turns_note
from lamella.cli.workflow import find_workflow_in_system_language, last_reply_text, parse_fields, split_assignments
from lamella.conversation.compaction import CompactionRange
from lamella.conversation.names import find_conversation_by_name
from lamella.conversation.runner_context import list_runners
from lamella.conversation.transcript import load_export_script
from lamella.conversation.validation import check_text
from lamella.errors import InvalidOperationError, UsageError, WorkflowError
from lamella.ports import WorkflowProgress
from lamella.runners.registry import RUNNERS
from lamella.schemas.conversations import conversations_to_json
from lamella.schemas.formatting import truncate_words
from lamella.wiring import (
    AttachmentResolver,
    get_workflow,
    is_workflow_path,
    list_models,
    list_workflows,
    open_archive,
    save_transcript,
    write_document,
)

_RETRY_COMMAND = "/retry"
# Slash commands about whole conversations: model, switching, title, saving and copying.

_PREVIEW_LENGTH = 60


def compact_conversation(session: ChatSession, rest: str) -> None:
    """Compact the conversation, optionally within a range of messages and down to a share of the limit."""
    # Read before compacting, which ends an unanswered question.
    unanswered_question = find_unanswered_question(session.conversation.turns())
    range_, share = _parse_range(rest)
    if session.is_interactive:
        # A summary may take minutes.
        print_text("Compacting; Ctrl-C cancels.", err=True)
    planned = session.conversation.plan(_parse_target_share(share), since=range_.since, until=range_.until)
    print_plan_warnings(planned)
    if planned.receipt is None:
        lower = f"Set a lower target, for example /compact {half_of_current_share(planned):.2g}, or continue: the prompt fits."
        raise InvalidOperationError(
            f"Nothing to compact: the next request has {planned.before.total:,} tokens, "
            f"and the target is {planned.target_tokens:,}.",
            hint=lower if planned.before.total <= planned.target_tokens else cannot_shrink_hint(session.conversation),
        )
    session.conversation.commit(planned)
    print_compaction(session.conversation.name, planned, undo_command="/undo")
    print_stopped_question(unanswered_question, retry_command=_RETRY_COMMAND)


def _parse_range(rest: str) -> tuple[CompactionRange, str]:
    """Parse the range and the share from text such as ``0.5 from turn:3 up to turn:9``; each part is optional."""
    words = rest.replace("up to ", "to ").split()
    named: dict[str, str] = {}
    for word in ("from", "to"):
        if word in words[:-1]:
            at = words.index(word)
            named[word] = words[at + 1]
            del words[at : at + 2]
    return CompactionRange(named.get("from"), named.get("to")), " ".join(words)


def complete_compact_range(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return completions for ``/compact``: the words ``from`` and ``to``, and turns after one of them."""
    before, _, typed = prefix.rpartition(" ")
    after = before.rpartition(" ")[2]
    if after in ("from", "to"):
        turns = {
            f"turn:{at}": truncate_words(one.message.text, _PREVIEW_LENGTH)
            for at, one in enumerate(session.conversation.turns(), 1)
        }
        known = match_name_or_description(turns, typed)
    else:
        given = before.split()
        known = match_name_or_description({word: "" for word in ("from", "to") if word not in given}, typed)
    return {f"{before} {one}".lstrip(): description for one, description in known.items()}


def _parse_target_share(rest: str) -> float | None:
    try:
        return float(rest) if rest else None
    except ValueError as error:
        raise UsageError(
            f"Invalid share: {rest}", hint="Example: /compact 0.5, or /compact 0.5 from turn:3 to turn:9"
        ) from error


def undo_compaction(session: ChatSession, _rest: str) -> None:
    """Undo the last compaction."""
    unanswered_question = find_unanswered_question(session.conversation.turns())
    receipt = session.conversation.undo()
    print_text(f"Undone: {receipt.id}. The prompt is as before the compaction.")
    print_stopped_question(unanswered_question, retry_command=_RETRY_COMMAND)


_TRANSCRIPT_SUFFIX, _ARCHIVE_SUFFIX = ".json", ".md"


def show_or_set_model(session: ChatSession, rest: str) -> None:
    """Show the model, or change it from the next message on."""
    if rest:
        session.set_model(rest)
    window = format_count(session.conversation.window, "token")
    since = "from the next message on" if rest else "current"
    print_text(f"Model: {escape_to_short_line(session.model)} ({since}; context window {window})")


def start_conversation(session: ChatSession, rest: str) -> None:
    """Start another conversation with the same model; this one stays stored."""
    existing = (
        find_conversation_by_name(session.opened_conversation.opener.backend.store, rest, match_prefix=False)
        if rest
        else None
    )
    if existing is not None:
        name = escape_to_short_line(existing.name)
        raise UsageError(f"The conversation {name} exists already.", hint=f"/chats {name} continues it.")
    _switch_conversation(session, rest or None, model=session.model)


def list_or_switch_chats(session: ChatSession, rest: str) -> None:
    """List all conversations, or switch to one of them."""
    conversations = session.opened_conversation.opener.conversations
    if rest:
        _switch_conversation(session, conversations.resolve_conversation(rest).name)
        return
    rows = conversations_to_json(conversations.list_conversations())
    if rows:
        print_chats(rows)
    print_text(
        f"Current: {escape_to_short_line(session.conversation.name)}. /chats NAME continues another one, /new starts one."
    )


def _switch_conversation(session: ChatSession, chat: str | None, *, model: str | None = None) -> None:
    left, has_turns = session.conversation.name, bool(session.conversation.turns())
    session.switch_conversation(_open_conversation(session.opened_conversation, chat, model))
    if has_turns and left != session.conversation.name:
        print_text(
            f"{escape_to_short_line(left)} is saved; /chats {escape_to_short_line(left)} continues it.", err=True
        )
    session.print_introduction()


def _open_conversation(opened: OpenedConversation, chat: str | None, model: str | None) -> OpenedConversation:
    return opened.opener.open(
        ChatOptions(store=opened.store, chat=chat, model=model, max_answer_tokens=opened.max_answer_tokens)
    )


def rename_conversation(session: ChatSession, rest: str) -> None:
    """Set the conversation's title."""
    if not rest:
        raise UsageError("Missing title.", hint="Example: /rename Tides in spring")
    session.conversation.rename(check_text(rest, "the title"))
    print_text(f"Title of {escape_to_short_line(session.conversation.name)}: {escape_to_short_line(rest)}")


def save_conversation(session: ChatSession, rest: str) -> None:
    """Write the conversation to a folder or a file: Markdown, or a transcript if the file's name ends in .json."""
    if not session.conversation.version:
        raise InvalidOperationError("This conversation has no messages yet.", hint="Type a message first.")
    path = Path(rest).expanduser()
    named = not path.is_dir() and path.suffix in (_ARCHIVE_SUFFIX, _TRANSCRIPT_SUFFIX)
    folder, file = (path.parent, path.name) if named else (path, None)
    opener, key = session.opened_conversation.opener, session.conversation.id
    if named and path.suffix == _TRANSCRIPT_SUFFIX:
        script = load_export_script(opener.backend, key)
        if script.differing_turns:
            print_text(differing_turns_note(script.differing_turns))
        written = save_transcript(script, folder, file=file)
    else:
        written = open_archive().save(opener.conversations.export_conversation(key), folder, file=file)
    print_text(f"Saved: {escape_to_short_line(str(written))}")


def copy_last_answer(session: ChatSession, _rest: str) -> None:
    """Copy the last answer to the clipboard."""
    answers = (record.reply.text for record in reversed(session.conversation.turns()) if record.reply is not None)
    answer = next((text for text in answers if text), None)
    if answer is None:
        raise InvalidOperationError("No answer to copy yet.", hint="Type a message first.")
    if not terminal_accepts_clipboard():
        raise InvalidOperationError(
            "This terminal does not support the clipboard.", hint=_model_alternatives_hint(session)
        )
    if len(answer.encode(errors="replace")) > MAX_CLIPBOARD_BYTES:
        raise InvalidOperationError(
            f"The answer is too long for the clipboard: {len(answer):,} characters.",
            hint=_model_alternatives_hint(session),
        )
    copy_to_clipboard(answer)
    copied = format_count(len(answer), "character")
    print_text(f"Copied {copied}, if your terminal supports OSC 52. Otherwise use /save or `{session.show_command}`.")


def _model_alternatives_hint(session: ChatSession) -> str:
    return f"`{session.show_command}` prints the messages; /save writes them to a file."


def complete_model(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return models for completion: those of the known profiles, and those used in this conversation."""
    asked = (call.model for calls in session.conversation.ledger() for call in calls)
    here = dict.fromkeys((session.model, *(model for model in asked if model)), "used here")
    return match_name_or_description({**dict.fromkeys(list_models(), ""), **here}, prefix)


def complete_chat(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the other conversations and their titles."""
    alive = session.opened_conversation.opener.conversations.list_conversations()
    return match_name_or_description(
        {listed.name: listed.title for listed in alive if listed.name != session.conversation.name}, prefix
    )


def complete_question(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the questions of this branch by id, the last first."""
    found = {
        record.message.id: truncate_words(record.message.text, _PREVIEW_LENGTH)
        for record in reversed(session.conversation.turns())
    }
    return match_name_or_description(found, prefix)


def complete_message(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the questions and answers of this branch by id, the last first."""
    nodes = [
        node
        for record in reversed(session.conversation.turns())
        for node in (record.reply, record.message)
        if node is not None
    ]
    return match_name_or_description({node.id: truncate_words(node.text, _PREVIEW_LENGTH) for node in nodes}, prefix)


def complete_branch(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the other branches, each with its last question."""
    conversation_log = session.conversation
    found = {}
    for head in conversation_log.branches():
        if head != conversation_log.head:
            found[head] = truncate_words(conversation_log.turns(head)[-1].message.text, _PREVIEW_LENGTH)
    return match_name_or_description(found, prefix)


def complete_title(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the current title, so that the user can edit it."""
    return match_name_or_description({session.conversation.title: ""} if session.conversation.title else {}, prefix)


def complete_local_path(_session: ChatSession, prefix: str) -> dict[str, str]:
    """Return folders and files relative to the working folder."""
    return complete_path(AttachmentResolver(None), prefix)


def complete_attachable_path(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return paths that can be attached."""
    return complete_path(session.files, prefix)


# ``/stage``: start a workflow in this conversation, show its progress and work on its stages.

STAGED_RUNNER = "staged"
# Separates a field from its text.
_FIELD_SEPARATOR = "="
_STAGE_ACTION_DESCRIPTIONS = {
    "status": "show every stage and its missing fields",
    "data": "FIELD=TEXT …: save fields; FIELD alone saves the last answer",
    "submit": "submit this stage for approval",
    "approve": "[DECISION]: approve this stage and start the next",
    "revise": "NOTE: send this stage back with what is to change",
    "rewind": "STAGE: go back to an earlier stage",
    "changes": "show what was written in this stage",
    "undo": "undo what was written last",
    "export": "[FILE]: export the work; the ending of the file decides the format",
    "new": "NAME: start a workflow",
}


def start_workflow(session: ChatSession, workflow: str) -> None:
    """Start a workflow in this conversation, or continue the same one if it was started already.

    Raises:
        WorkflowError: The conversation uses another workflow.
    """
    conversation_log = session.conversation
    work = conversation_log.workflow
    named = get_workflow(workflow).name if is_workflow_path(workflow) or work is None else workflow
    if work is not None and work.workflow != named:
        again = format_command(
            "chat", conversation_log.name, workflow=work.workflow, store=session.opened_conversation.store
        )
        raise WorkflowError(
            f"{conversation_log.name} uses the workflow {work.workflow}, not {named}.", hint=f"Continue with: {again}"
        )
    conversation_log.set(runner=STAGED_RUNNER)
    if work is None:
        conversation_log.start_workflow(workflow, language=find_workflow_in_system_language(workflow).language)


def run_stage_action(session: ChatSession, rest: str) -> None:
    """Run an action on the current stage; without one, show the progress."""
    deed, _, given = rest.partition(" ")
    do = _STAGE_ACTIONS.get(deed or "status")
    if do is None:
        raise UsageError(
            f"Unknown /stage action: {deed!r}", hint=f"Use one of: {', '.join(_STAGE_ACTION_DESCRIPTIONS)}."
        )
    work = do(session, given.strip())
    if work is not None:
        print_workflow_progress(session.conversation.name, work, format_action=lambda deed: f"/stage {deed}")


def complete_stage_action(session: ChatSession, prefix: str) -> dict[str, str]:
    """Return completions for ``/stage``; after ``data``, ``rewind`` and ``new``, their possible arguments."""
    deed, space, name = prefix.partition(" ")
    if not space:
        return match_name_or_description(_STAGE_ACTION_DESCRIPTIONS, prefix)
    work = session.conversation.workflow
    stages = {} if work is None else {one.id: one.label for one in work.stages[: work.number]}
    known = {"rewind": stages, "new": dict.fromkeys(list_workflows(), ""), "data": _list_stage_fields(work)}
    return match_prefix_after_word(deed, known.get(deed, {}), name)


def _list_stage_fields(progress: WorkflowProgress | None) -> dict[str, str]:
    """Return the fields of the current stage, each followed by the separator."""
    stage = None if progress is None else next((one for one in progress.stages if one.id == progress.current), None)
    return (
        {} if stage is None else {name + _FIELD_SEPARATOR: "" for name in dict.fromkeys((*stage.required, *stage.data))}
    )


def _show_workflow(session: ChatSession, _rest: str) -> WorkflowProgress | None:
    work = session.conversation.workflow
    if work is None:
        print_text("No workflow in this conversation. /stage new paper starts one.", err=True)
    return work


def _start_workflow(session: ChatSession, rest: str) -> WorkflowProgress | None:
    if not rest:
        raise UsageError("Missing workflow.", hint=f"Use one of: {', '.join(list_workflows())}.")
    start_workflow(session, rest)
    return session.conversation.workflow


def _write_stage_data(session: ChatSession, rest: str) -> WorkflowProgress | None:
    work = session.conversation.workflow
    if not rest:
        if work is not None:
            print_stage_data(work)
        return work
    values = {} if work is None else next((one.data for one in work.stages if one.id == work.current), {})
    given = (
        parse_fields(split_assignments(rest), values) if "=" in rest else {rest: last_reply_text(session.conversation)}
    )
    return session.conversation.write_stage(given)


def _submit_stage(session: ChatSession, _rest: str) -> WorkflowProgress:
    return session.conversation.submit_stage()


def _approve_stage(session: ChatSession, rest: str) -> WorkflowProgress:
    return session.conversation.approve_stage(rest)


def _rewind_workflow(session: ChatSession, rest: str) -> WorkflowProgress:
    return session.conversation.rewind_to_stage(rest)


def _show_changes(session: ChatSession, _rest: str) -> WorkflowProgress | None:
    work = session.conversation.workflow
    if work is None:
        return _show_workflow(session, "")
    print_stage_writes(work)
    return None


def _undo_change(session: ChatSession, _rest: str) -> WorkflowProgress:
    return session.conversation.undo_stage_write()


def _revise_stage(session: ChatSession, rest: str) -> WorkflowProgress:
    if not rest:
        raise UsageError("Missing note.", hint="Say what is to change: /stage revise Shorten the background")
    return session.conversation.request_stage_changes(rest)


def _export_workflow(session: ChatSession, rest: str) -> None:
    document = session.conversation.document()
    if rest:
        write_document(document, Path(rest))
        print_text(f"Saved: {escape_to_short_line(rest)}")
    else:
        print_text(session.conversation.export_approved_stages())
    for problem in document.problems:
        print_text(f"missing: {escape_to_short_line(problem.message)}", err=True)


_STAGE_ACTIONS = {
    "status": _show_workflow,
    "data": _write_stage_data,
    "submit": _submit_stage,
    "approve": _approve_stage,
    "revise": _revise_stage,
    "rewind": _rewind_workflow,
    "changes": _show_changes,
    "undo": _undo_change,
    "export": _export_workflow,
    "new": _start_workflow,
}


# ``/runner`` and ``/resume``: choose the runner, and resume an unanswered question.


def list_or_set_runner(session: ChatSession, rest: str) -> None:
    """List the runners, or choose one from the next message on."""
    if rest:
        session.conversation.set(runner=rest)
        session.conversation.save_settings()
        print_text(f"Runner from the next message on: {escape_to_short_line(rest)}")
        return
    for name, does in list_runners(RUNNERS).items():
        print_text(format_runner(name, does, is_current=name == session.conversation.default_runner))


def complete_runner(_session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the runners and their descriptions."""
    return match_name_or_description(list_runners(RUNNERS), prefix)


def resume_question(session: ChatSession, _rest: str) -> None:
    """Resume the unanswered question."""
    session.resume()
