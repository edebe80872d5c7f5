"""The commands of a chat: what begins with a slash."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from lamella.engine.dialogue.recalling import name_passage
from lamella.errors import CallError, LamellaError, UsageError
from lamella.faces.cli.chat.attaching import find_active
from lamella.faces.cli.chat.commands import (
    compacting,
    conversations,
    equipping,
    library,
    remembering,
    ruling,
    running,
    staging,
)
from lamella.faces.cli.chat.commands.pasting import paste
from lamella.faces.cli.chat.commands.setting import list_settings, set_or_show
from lamella.faces.cli.chat.input import Arguments
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.tables.branches import tell_branch
from lamella.faces.cli.tables.ledger import print_ledger
from lamella.faces.cli.tables.replay import print_turn
from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_line, show_lines, tell_time
from lamella.faces.cli.terminal.telling import tell
from lamella.settings.values import find_near
from lamella.views.chats import view_branch
from lamella.views.ledger import make_rows

# Where the list of commands says what each does.
_DOES_AT = 22


def _list_nothing(_talk: TerminalChat, _begun: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A word, what comes after it, what it does, and whether it has the model asked.

    ``known`` lists what may come after it, by what was typed of that.
    """

    name: str
    takes: str = ""
    does: str
    run: Callable[[TerminalChat, str], None]
    asks: bool = False
    known: Callable[[TerminalChat, str], Mapping[str, str]] = _list_nothing


class ChatEnd(Exception):  # noqa: N818 - a way out, not a failure
    """Someone wants to leave."""


def run_command(talk: TerminalChat, line: str) -> bool:
    """Do what a line says that begins with a slash, and say whether the model was asked; what goes wrong is told."""
    word, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(word)
    try:
        if command is None:
            raise _unknown(word)
        command.run(talk, rest.strip())
    except LamellaError as error:
        talk.tell_failure(error)
    return command is not None and command.asks


def _unknown(word: str) -> UsageError:
    near = find_near(word, COMMANDS)
    meant = f"Did you mean {near}? " if near else ""
    return UsageError(f"There is no command {word}.", hint=f"{meant}See /help. A message may begin with // instead.")


def _list_there(command: str, talk: TerminalChat, begun: str) -> dict[str, str]:
    """What is there for a command; a name that cannot be shown on a line cannot be typed either."""
    there = [name for name in talk.complete(command) if show_line(name) == name]
    return dict.fromkeys([name for name in there if begun.casefold() in name.casefold()], "")


def list_arguments(talk: TerminalChat) -> dict[str, Arguments]:
    """Every command with what may come after it in this talk."""
    return {name: partial(command.known, talk) for name, command in COMMANDS.items()}


def _choose_active(talk: TerminalChat, rest: str) -> None:
    rest = rest.removeprefix("@")
    if rest:
        find_active(rest, talk.files)
    talk.active = rest
    tell(f"{show_line(rest)} is the active note and goes with every message." if rest else "No note is active.")


def _preview(talk: TerminalChat, rest: str) -> None:
    print_turn(make_console(), talk.foresee(rest))


def _recall(talk: TerminalChat, rest: str) -> None:
    if not rest:
        raise UsageError("/recall has no words to look for.", hint="As in /recall when were the beans sown")
    found = talk.stored.recall(rest)
    for one in found:
        tell(f"─── {show_line(name_passage(one, tell=tell_time))}\n{show_lines(one.excerpt)}")
    if not found:
        tell("Nothing that left the prompt has these words.")


def _ledger(talk: TerminalChat, _rest: str) -> None:
    stored = talk.stored
    print_ledger(stored.name, make_rows(stored.turns(), stored.ledger()))


def _branches(talk: TerminalChat, _rest: str) -> None:
    stored = talk.stored
    for head in stored.branches():
        tell(tell_branch(view_branch(head, stored.turns(head), active=head == stored.head)))


def _switch(talk: TerminalChat, rest: str) -> None:
    talk.stored.switch(rest)
    tell(f"Goes on from {show_line(rest)}.")


def _retry(talk: TerminalChat, _rest: str) -> None:
    if not talk.stored.turns():
        raise CallError("Nothing was asked yet.", hint="Type a message.")
    talk.say_again()


def _regenerate(talk: TerminalChat, rest: str) -> None:
    if not talk.stored.turns():
        raise CallError("Nothing was asked yet.", hint="Type a message.")
    talk.say_again(rest or None)


def _edit(talk: TerminalChat, rest: str) -> None:
    asked = [told.message.id for told in talk.stored.turns()]
    word, _, text = rest.partition(" ")
    message, text = (word, text.strip()) if word in asked else (asked[-1] if asked else "", rest)
    if not message or not text:
        raise UsageError("/edit says nothing to ask instead.", hint="As in /edit When is low tide?, or /edit ID TEXT.")
    talk.say_instead(message, text)


def _delete(talk: TerminalChat, rest: str) -> None:
    if not rest:
        raise UsageError("/delete names no message.", hint=f"`{talk.shown_by}` has the ids.")
    talk.stored.delete(rest)
    tell(f"Goes on without {show_line(rest)}; it stays on its branch.")


def _strata(talk: TerminalChat, _rest: str) -> None:
    talk.strata = not talk.strata
    tell(f"The strata of each turn are {'shown' if talk.strata else 'not shown'}.")


def _help(_talk: TerminalChat, _rest: str) -> None:
    for command in COMMANDS.values():
        tell(f"{f'{command.name} {command.takes}'.rstrip():<{_DOES_AT - 1}} {command.does}", under=_DOES_AT)
    tell(
        "Enter sends. Alt-Enter, or a backslash before Enter, begins another line. @path attaches a file. "
        "Ctrl-C stops an answer, Ctrl-D leaves."
    )


def _quit(_talk: TerminalChat, _rest: str) -> None:
    raise ChatEnd


COMMANDS = {
    command.name: command
    for command in (
        Command(
            name="/attach",
            takes="PATH[:10-20]",
            does="bring a file, a folder or lines of a file along",
            run=library.attach,
            known=conversations.list_files,
        ),
        Command(name="/paste", takes="[DATA]", does="bring the picture on the clipboard along", run=paste),
        Command(
            name="/active",
            takes="[PATH]",
            does="say which note is open: it and its pictures go with every message; or none",
            run=_choose_active,
            known=conversations.list_files,
        ),
        Command(
            name="/detach",
            takes="[NAME]",
            does="take something out of what is attached, or all",
            run=library.detach,
            known=partial(_list_there, "/detach"),
        ),
        Command(
            name="/drop",
            takes="NAME",
            does="take an artifact out of the prompt, from the next message on",
            run=library.drop,
            known=partial(_list_there, "/drop"),
        ),
        Command(
            name="/pin",
            takes="ID",
            does="keep an artifact or a message whole, from the next message on",
            run=library.pin,
            known=partial(_list_there, "/pin"),
        ),
        Command(
            name="/unpin",
            takes="ID",
            does="let what is pinned be shortened again",
            run=library.unpin,
            known=partial(_list_there, "/unpin"),
        ),
        Command(
            name="/refresh",
            takes="[NAME]",
            does="read what is attached again, or all of it",
            run=library.refresh,
            known=partial(_list_there, "/refresh"),
        ),
        Command(name="/show", does="show what is in the library, and what each takes", run=library.show),
        Command(name="/preview", takes="[TEXT]", does="show what a message would send, and its cost", run=_preview),
        Command(
            name="/compact",
            takes="[SHARE] [from ID] [to ID]",
            does="make room, down to a share of what fits; from here, up to here, or everywhere",
            run=compacting.compact,
            known=compacting.list_bounds,
        ),
        Command(name="/undo", does="take the last compaction back", run=compacting.undo),
        Command(name="/recall", takes="WORDS", does="find what left the prompt", run=_recall),
        Command(
            name="/rules",
            takes="[DO [TEXT]]",
            does="show what is to be done from now on, or add or remove it",
            run=ruling.rule,
            known=ruling.list_deeds,
        ),
        Command(
            name="/memory",
            takes="[DO [TEXT]]",
            does="show what is remembered, or add, remove, edit, keep (this talk) or refresh",
            run=remembering.remember,
            known=remembering.list_deeds,
        ),
        Command(
            name="/stage",
            takes="[DO [TEXT]]",
            does="show the stages of the work, or data, submit, approve, rewind, export, new",
            run=staging.stage,
            known=staging.list_deeds,
        ),
        Command(
            name="/tools",
            takes="[refresh]",
            does="show what the model may call, or list it anew",
            run=equipping.show_tools,
            known=equipping.list_deeds,
        ),
        Command(name="/ledger", does="show what each turn cost, and why", run=_ledger),
        Command(
            name="/set",
            takes="[NAME [VALUE]]",
            does="show settings of this chat, or change one",
            run=set_or_show,
            known=list_settings,
        ),
        Command(name="/strata", does="show the layers of each turn, or stop showing them", run=_strata),
        Command(name="/retry", does="have the last question answered again", run=_retry, asks=True),
        Command(
            name="/resume",
            does="go on with a question that was left without an answer",
            run=running.resume,
            asks=True,
        ),
        Command(
            name="/regenerate",
            takes="[ID]",
            does="have a question answered again",
            run=_regenerate,
            asks=True,
            known=conversations.list_questions,
        ),
        Command(
            name="/edit",
            takes="[ID] TEXT",
            does="ask something else in place of a question",
            run=_edit,
            asks=True,
            known=conversations.list_questions,
        ),
        Command(
            name="/delete",
            takes="ID",
            does="go on without a message",
            run=_delete,
            known=conversations.list_messages,
        ),
        Command(name="/branches", does="list the branches; * is the active one", run=_branches),
        Command(
            name="/switch",
            takes="ID",
            does="go on from another branch, or from any message",
            run=_switch,
            known=conversations.list_branches,
        ),
        Command(
            name="/model",
            takes="[NAME]",
            does="show the model, or change it from the next message on",
            run=conversations.choose_model,
            known=conversations.list_known_models,
        ),
        Command(
            name="/runner",
            takes="[NAME]",
            does="show the ways of answering, or choose one from the next message on",
            run=running.choose_runner,
            known=running.list_known_runners,
        ),
        Command(
            name="/new",
            takes="[NAME]",
            does="begin another conversation; this one is kept",
            run=conversations.begin_chat,
        ),
        Command(
            name="/chats",
            takes="[NAME]",
            does="list the conversations, or go on with one of them",
            run=conversations.list_or_switch,
            known=conversations.list_chats,
        ),
        Command(
            name="/rename",
            takes="TITLE",
            does="give this conversation a title",
            run=conversations.rename,
            known=conversations.list_titles,
        ),
        Command(
            name="/save",
            takes="[PATH]",
            does="write this conversation to a folder, a .md or a .json file",
            run=conversations.save,
            known=conversations.list_places,
        ),
        Command(name="/copy", does="put the last answer on the clipboard", run=conversations.copy),
        Command(name="/help", does="show this", run=_help),
        Command(name="/quit", does="leave; the conversation is kept", run=_quit),
    )
}
