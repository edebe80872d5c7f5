"""The slash commands of a chat."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from lamella.cli.chat import conversation_commands, library_commands, setting_commands
from lamella.cli.chat.input import ArgumentCompleter
from lamella.cli.chat.library_commands import paste_image
from lamella.cli.chat.session import ChatSession
from lamella.cli.chat.setting_commands import complete_setting_or_value, show_or_set_setting
from lamella.cli.console import make_console
from lamella.cli.ledger_tables import print_ledger
from lamella.cli.mentions import get_active_note
from lamella.cli.output import escape_to_short_line, format_time, print_text
from lamella.cli.prompt_tables import format_branch
from lamella.cli.recall import print_hit
from lamella.cli.replay_tables import print_turn
from lamella.conversation.recall import describe_passage
from lamella.errors import InvalidOperationError, LamellaError, UsageError
from lamella.schemas.ledger import build_ledger_rows
from lamella.schemas.messages import branch_to_json
from lamella.settings.model import find_closest_match

# The column where /help prints the descriptions.
_DESCRIPTION_COLUMN = 22


def _complete_nothing(_session: ChatSession, _prefix: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """A slash command: its name, its arguments, its description, and whether it calls the model (``answers_question``).

    ``complete`` returns the completions of its argument for the text typed so far.
    """

    name: str
    arguments: str = ""
    description: str
    run: Callable[[ChatSession, str], None]
    answers_question: bool = False
    complete: Callable[[ChatSession, str], Mapping[str, str]] = _complete_nothing


class ExitChat(Exception):  # noqa: N818 - control flow, not an error
    """The user wants to leave the chat."""


def run_slash_command(session: ChatSession, line: str) -> bool:
    """Run a slash command, print its failure if it fails, and return whether it called the model."""
    word, _, rest = line.strip().partition(" ")
    command = SLASH_COMMANDS.get(word)
    try:
        if command is None:
            raise _unknown_command_error(word)
        command.run(session, rest.strip())
    except LamellaError as error:
        session.handle_failure(error)
    except KeyboardInterrupt:
        session.recover_from_cancelled_command(word)
    return command is not None and command.answers_question


def _unknown_command_error(word: str) -> UsageError:
    similar_command = find_closest_match(word, SLASH_COMMANDS)
    meant = f"Did you mean {similar_command}? " if similar_command else ""
    return UsageError(
        f"Unknown command: {word}", hint=f"{meant}See /help. To send a message that starts with /, type // instead."
    )


def _complete_names(command: str, session: ChatSession, prefix: str) -> dict[str, str]:
    """Return the names that a command accepts and that contain the typed text.

    Names with control characters are left out, because they cannot be typed.
    """
    names = [name for name in session.list_argument_candidates(command) if escape_to_short_line(name) == name]
    return dict.fromkeys([name for name in names if prefix.casefold() in name.casefold()], "")


def get_argument_completers(session: ChatSession) -> dict[str, ArgumentCompleter]:
    """Return every command with the function that completes its argument."""
    return {name: partial(command.complete, session) for name, command in SLASH_COMMANDS.items()}


def _set_active_note(session: ChatSession, rest: str) -> None:
    rest = rest.removeprefix("@")
    if rest:
        get_active_note(rest, session.files)
    session.active_note = rest
    print_text(
        f"Active note: {escape_to_short_line(rest)}. It is sent with every message." if rest else "No active note."
    )


def _print_preview(session: ChatSession, rest: str) -> None:
    print_turn(make_console(), session.preview_message(rest))


def _print_recalled(session: ChatSession, rest: str) -> None:
    if not rest:
        raise UsageError("Missing search words.", hint="Example: /recall when were the beans sown")
    found = session.conversation.recall(rest)
    for index, one in enumerate(found):
        print_hit(describe_passage(one, format_time=format_time), one, is_first=not index)
    if not found:
        print_text("Nothing found outside the prompt.")


def _print_ledger(session: ChatSession, _rest: str) -> None:
    conversation = session.conversation
    print_ledger(
        conversation.name,
        build_ledger_rows(
            conversation.turns(), conversation.ledger(), conversation.receipts(), conversation.cache_misses()
        ),
    )


def _print_branches(session: ChatSession, _rest: str) -> None:
    conversation_log = session.conversation
    for head in conversation_log.branches():
        print_text(
            format_branch(branch_to_json(head, conversation_log.turns(head), active=head == conversation_log.head))
        )


def _switch_branch(session: ChatSession, rest: str) -> None:
    session.conversation.switch(rest)
    print_text(f"Continuing from {escape_to_short_line(rest)}.")


def _retry_question(session: ChatSession, _rest: str) -> None:
    if not session.conversation.turns():
        raise InvalidOperationError("No question yet.", hint="Type a message.")
    session.regenerate()


def _regenerate_answer(session: ChatSession, rest: str) -> None:
    if not session.conversation.turns():
        raise InvalidOperationError("No question yet.", hint="Type a message.")
    session.regenerate(rest or None)


def _edit_question(session: ChatSession, rest: str) -> None:
    asked = [record.message.id for record in session.conversation.turns()]
    word, _, text = rest.partition(" ")
    word = session.conversation.resolve_message(word)
    message, text = (word, text.strip()) if word in asked else (asked[-1] if asked else "", rest)
    if not message or not text:
        raise UsageError("Missing new text.", hint="Example: /edit When is low tide?, or /edit ID TEXT")
    session.edit_message(message, text)


def _delete_message(session: ChatSession, rest: str) -> None:
    if not rest:
        raise UsageError("Missing message id.", hint=f"`{session.show_command}` prints the ids.")
    session.conversation.delete(rest)
    print_text(f"Continuing without {escape_to_short_line(rest)}; it stays on its branch.")


def _toggle_strata(session: ChatSession, _rest: str) -> None:
    session.shows_strata = not session.shows_strata
    print_text(f"The layers of each turn are {'shown' if session.shows_strata else 'not shown'}.")


def _print_help(_session: ChatSession, _rest: str) -> None:
    for command in SLASH_COMMANDS.values():
        print_text(
            f"{f'{command.name} {command.arguments}'.rstrip():<{_DESCRIPTION_COLUMN - 1}} {command.description}",
            indent=_DESCRIPTION_COLUMN,
        )
    print_text(
        "Enter sends. Alt-Enter, or a backslash before Enter, starts a new line. @path attaches a file. "
        "Ctrl-C stops an answer, Ctrl-D leaves."
    )


def _exit_chat(_session: ChatSession, _rest: str) -> None:
    raise ExitChat


SLASH_COMMANDS = {
    command.name: command
    for command in (
        SlashCommand(
            name="/attach",
            arguments="PATH[:10-20]",
            description="attach a file, a folder or lines of a file",
            run=library_commands.attach_files,
            complete=conversation_commands.complete_attachable_path,
        ),
        SlashCommand(
            name="/paste", arguments="[DATA]", description="attach the image on the clipboard", run=paste_image
        ),
        SlashCommand(
            name="/active",
            arguments="[PATH]",
            description="set the active note, sent with every message; without a name, none",
            run=_set_active_note,
            complete=conversation_commands.complete_attachable_path,
        ),
        SlashCommand(
            name="/detach",
            arguments="[NAME]",
            description="remove an attachment, or all",
            run=library_commands.detach,
            complete=partial(_complete_names, "/detach"),
        ),
        SlashCommand(
            name="/drop",
            arguments="NAME",
            description="remove an attachment from the prompt",
            run=library_commands.drop,
            complete=partial(_complete_names, "/drop"),
        ),
        SlashCommand(
            name="/pin",
            arguments="ID",
            description="keep an attachment or a message in full",
            run=library_commands.pin,
            complete=partial(_complete_names, "/pin"),
        ),
        SlashCommand(
            name="/unpin",
            arguments="ID",
            description="allow a pinned item to be shortened again",
            run=library_commands.unpin,
            complete=partial(_complete_names, "/unpin"),
        ),
        SlashCommand(
            name="/refresh",
            arguments="[NAME]",
            description="read an attachment again, or all",
            run=library_commands.refresh,
            complete=partial(_complete_names, "/refresh"),
        ),
        SlashCommand(
            name="/show", description="list the attachments and their tokens", run=library_commands.show_library
        ),
        SlashCommand(
            name="/preview",
            arguments="[TEXT]",
            description="show the request of a message and its cost",
            run=_print_preview,
        ),
        SlashCommand(
            name="/compact",
            arguments="[SHARE] [from ID] [to ID]",
            description="shorten the prompt to a share of the context window",
            run=conversation_commands.compact_conversation,
            complete=conversation_commands.complete_compact_range,
        ),
        SlashCommand(name="/undo", description="undo the last compaction", run=conversation_commands.undo_compaction),
        SlashCommand(
            name="/recall",
            arguments="WORDS",
            description="search text that is no longer in the prompt",
            run=_print_recalled,
        ),
        SlashCommand(
            name="/rules",
            arguments="[DO [TEXT]]",
            description="list the rules, or add or remove one",
            run=setting_commands.run_rules_command,
            complete=setting_commands.complete_rules_action,
        ),
        SlashCommand(
            name="/memory",
            arguments="[DO [TEXT]]",
            description="list the saved facts, or add, remove, edit, keep (a summary) or refresh",
            run=library_commands.run_memory_command,
            complete=library_commands.complete_memory_action,
        ),
        SlashCommand(
            name="/stage",
            arguments="[DO [TEXT]]",
            description="show the stages, or data, submit, approve, rewind, export, new",
            run=conversation_commands.run_stage_action,
            complete=conversation_commands.complete_stage_action,
        ),
        SlashCommand(
            name="/tools",
            arguments="[refresh]",
            description="list the tools of the model, or load them again",
            run=setting_commands.show_tools,
            complete=setting_commands.complete_tools_action,
        ),
        SlashCommand(name="/ledger", description="show cost and cache hits of each turn", run=_print_ledger),
        SlashCommand(
            name="/set",
            arguments="[NAME [VALUE]]",
            description="show the settings of this chat, or change one",
            run=show_or_set_setting,
            complete=complete_setting_or_value,
        ),
        SlashCommand(name="/strata", description="show or hide the layers of each turn", run=_toggle_strata),
        SlashCommand(
            name="/retry", description="answer the last question again", run=_retry_question, answers_question=True
        ),
        SlashCommand(
            name="/resume",
            description="continue an unanswered question or a cut answer",
            run=conversation_commands.resume_question,
            answers_question=True,
        ),
        SlashCommand(
            name="/regenerate",
            arguments="[ID]",
            description="answer a question again",
            run=_regenerate_answer,
            answers_question=True,
            complete=conversation_commands.complete_question,
        ),
        SlashCommand(
            name="/edit",
            arguments="[ID] TEXT",
            description="edit a question and answer it again",
            run=_edit_question,
            answers_question=True,
            complete=conversation_commands.complete_question,
        ),
        SlashCommand(
            name="/delete",
            arguments="ID",
            description="continue without a message",
            run=_delete_message,
            complete=conversation_commands.complete_message,
        ),
        SlashCommand(name="/branches", description="list the branches; * marks the active one", run=_print_branches),
        SlashCommand(
            name="/switch",
            arguments="ID",
            description="continue from another branch or message",
            run=_switch_branch,
            complete=conversation_commands.complete_branch,
        ),
        SlashCommand(
            name="/model",
            arguments="[NAME]",
            description="show or change the model",
            run=conversation_commands.show_or_set_model,
            complete=conversation_commands.complete_model,
        ),
        SlashCommand(
            name="/runner",
            arguments="[NAME]",
            description="list the runners, or choose one",
            run=conversation_commands.list_or_set_runner,
            complete=conversation_commands.complete_runner,
        ),
        SlashCommand(
            name="/new",
            arguments="[NAME]",
            description="start another conversation; this one is saved",
            run=conversation_commands.start_conversation,
        ),
        SlashCommand(
            name="/chats",
            arguments="[NAME|TITLE]",
            description="list the conversations, or continue one",
            run=conversation_commands.list_or_switch_chats,
            complete=conversation_commands.complete_chat,
        ),
        SlashCommand(
            name="/rename",
            arguments="TITLE",
            description="change the title of this conversation",
            run=conversation_commands.rename_conversation,
            complete=conversation_commands.complete_title,
        ),
        SlashCommand(
            name="/save",
            arguments="[PATH]",
            description="save this conversation to a folder, a .md or a .json file",
            run=conversation_commands.save_conversation,
            complete=conversation_commands.complete_local_path,
        ),
        SlashCommand(
            name="/copy",
            description="copy the last answer to the clipboard",
            run=conversation_commands.copy_last_answer,
        ),
        SlashCommand(name="/help", description="show this help", run=_print_help),
        SlashCommand(name="/quit", description="leave; the conversation is saved", run=_exit_chat),
    )
}
