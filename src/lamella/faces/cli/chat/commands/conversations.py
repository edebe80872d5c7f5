"""Commands of a chat about conversations as wholes: another model or another conversation, its title, its copies."""

from pathlib import Path

from lamella.engine.checks import check_text
from lamella.engine.keeping.names import find_chat
from lamella.engine.script import read_script
from lamella.errors import CallError, UsageError
from lamella.faces.cli.chat.input import choose_begun, list_paths
from lamella.faces.cli.chat.opening import ChatOptions, OpenChat
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.tables.chats import print_chats
from lamella.faces.cli.terminal.clipboard import LONGEST, send_clipboard, takes_clipboard
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import tell
from lamella.views.stores import view_chats
from lamella.views.words import cut_words
from lamella.wiring import NamedFiles, list_models, open_archive, save_transcript

_GLANCE = 60
_TRANSCRIPT, _ARCHIVE = ".json", ".md"


def choose_model(talk: TerminalChat, rest: str) -> None:
    """Show the model, or change it from the next message on."""
    if rest:
        talk.choose_model(rest)
    window = tell_count(talk.stored.window, "token")
    since = "from the next message on" if rest else "for the next message"
    tell(f"{show_line(talk.model)} {since}, with a window of {window}.")


def begin_chat(talk: TerminalChat, rest: str) -> None:
    """Begin another conversation with the same model; this one is kept."""
    there = find_chat(talk.opened.opener.backend.store, rest, beginnings=False) if rest else None
    if there is not None:
        name = show_line(there.name)
        raise UsageError(f"There is a conversation {name} already.", hint=f"/chats {name} goes on with it.")
    _go_on(talk, rest or None, model=talk.model)


def list_or_switch(talk: TerminalChat, rest: str) -> None:
    """Show every conversation, or go on with one of them."""
    conversations = talk.opened.opener.conversations
    if rest:
        _go_on(talk, conversations.find(rest).name)
        return
    rows = view_chats(conversations.list_alive())
    if rows:
        print_chats(rows)
    tell(f"This is {show_line(talk.stored.name)}. /chats NAME goes on with another, /new begins one.")


def _go_on(talk: TerminalChat, chat: str | None, *, model: str | None = None) -> None:
    left, there = talk.stored.name, bool(talk.stored.turns())
    talk.go_on_in(_open(talk.opened, chat, model))
    if there and left != talk.stored.name:
        tell(f"{show_line(left)} is kept; /chats {show_line(left)} goes back.", err=True)
    talk.introduce()


def _open(opened: OpenChat, chat: str | None, model: str | None) -> OpenChat:
    return opened.opener.open(ChatOptions(store=opened.store, chat=chat, model=model, answer=opened.answer))


def rename(talk: TerminalChat, rest: str) -> None:
    """Give this conversation a title."""
    if not rest:
        raise UsageError("/rename names no title.", hint="As in /rename Tides in spring.")
    talk.stored.rename(check_text(rest, "the title"))
    tell(f"{show_line(talk.stored.name)} is now called {show_line(rest)}.")


def save(talk: TerminalChat, rest: str) -> None:
    """Write this conversation into a folder, or to a file: markdown, or a transcript where the file is JSON."""
    if not talk.stored.version:
        raise CallError("Nothing was said here yet.", hint="Type a message first.")
    place = Path(rest).expanduser()
    named = not place.is_dir() and place.suffix in (_ARCHIVE, _TRANSCRIPT)
    folder, file = (place.parent, place.name) if named else (place, None)
    opener, key = talk.opened.opener, talk.stored.id
    if named and place.suffix == _TRANSCRIPT:
        written = save_transcript(read_script(opener.backend, key), folder, file=file)
    else:
        written = open_archive().save(opener.conversations.take_out(key), folder, file=file)
    tell(f"Saved: {show_line(str(written))}")


def copy(talk: TerminalChat, _rest: str) -> None:
    """Put the last answer on the clipboard."""
    answers = (told.reply.text for told in reversed(talk.stored.turns()) if told.reply is not None)
    answer = next((text for text in answers if text), None)
    if answer is None:
        raise CallError("There is no answer to copy yet.", hint="Type a message.")
    if not takes_clipboard():
        raise CallError("Here is no terminal that takes a clipboard.", hint=_tell_otherwise(talk))
    if len(answer.encode(errors="replace")) > LONGEST:
        raise CallError(
            f"The answer is longer than terminals take: {len(answer):,} characters.", hint=_tell_otherwise(talk)
        )
    send_clipboard(answer)
    copied = tell_count(len(answer), "character")
    tell(f"Copied {copied}, if your terminal lets programs do that (OSC 52). Else: /save, or `{talk.shown_by}`.")


def _tell_otherwise(talk: TerminalChat) -> str:
    return f"`{talk.shown_by}` prints what was said, to be piped; /save writes it to a file."


def list_known_models(talk: TerminalChat, begun: str) -> dict[str, str]:
    """The models that were asked here, then those that facts are known of."""
    asked = (call.model for calls in talk.stored.ledger() for call in calls)
    here = dict.fromkeys((talk.model, *(model for model in asked if model)), "asked here")
    return choose_begun({**dict.fromkeys(list_models(), ""), **here}, begun)


def list_chats(talk: TerminalChat, begun: str) -> dict[str, str]:
    """The conversations there are, each with its title."""
    alive = talk.opened.opener.conversations.list_alive()
    return choose_begun({listed.name: listed.title for listed in alive if listed.name != talk.stored.name}, begun)


def list_questions(talk: TerminalChat, begun: str) -> dict[str, str]:
    """The questions of this branch by their ids, the last first."""
    found = {told.message.id: cut_words(told.message.text, _GLANCE) for told in reversed(talk.stored.turns())}
    return choose_begun(found, begun)


def list_messages(talk: TerminalChat, begun: str) -> dict[str, str]:
    """The questions and answers of this branch by their ids, the last first."""
    nodes = [node for told in reversed(talk.stored.turns()) for node in (told.reply, told.message) if node is not None]
    return choose_begun({node.id: cut_words(node.text, _GLANCE) for node in nodes}, begun)


def list_branches(talk: TerminalChat, begun: str) -> dict[str, str]:
    """The other branches, each with its last question."""
    stored = talk.stored
    found = {}
    for head in stored.branches():
        if head != stored.head:
            found[head] = cut_words(stored.turns(head)[-1].message.text, _GLANCE)
    return choose_begun(found, begun)


def list_titles(talk: TerminalChat, begun: str) -> dict[str, str]:
    """The title there is, to be changed."""
    return choose_begun({talk.stored.title: ""} if talk.stored.title else {}, begun)


def list_places(_talk: TerminalChat, begun: str) -> dict[str, str]:
    """Folders and files from here."""
    return list_paths(NamedFiles(None), begun)


def list_files(talk: TerminalChat, begun: str) -> dict[str, str]:
    """Paths that can be attached."""
    return list_paths(talk.files, begun)
