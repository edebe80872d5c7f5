"""Slash commands on the context library: attach, detach, drop, pin, unpin, refresh and show."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lamella.cli.chat.input import match_name_or_description, match_prefix_after_word
from lamella.cli.chat.session import ChatSession
from lamella.cli.clipboard import list_clipboard_programs, read_clipboard_image
from lamella.cli.ledger_tables import print_cache_expiry
from lamella.cli.memory import format_facts, format_saved_line
from lamella.cli.output import escape_to_short_line, print_text, show_if_slow
from lamella.cli.prompt_tables import print_library
from lamella.conversation.commands import ALL_NAMES
from lamella.conversation.turn import TurnRequest
from lamella.errors import InvalidOperationError, UsageError
from lamella.ports import FactKind
from lamella.wiring import open_memory


def attach_files(session: ChatSession, rest: str) -> None:
    """Attach a file, a folder or lines of a file to the next message."""
    if not rest:
        raise UsageError("Missing file.", hint="Example: /attach note.md, or /attach note.md:10-20")
    # In a message a file is named with @, so users type it here as well.
    rest = rest.removeprefix("@")
    session.store_commands(TurnRequest(text="", attach=tuple(one.to_artifact() for one in session.files.resolve(rest))))
    session.start_warmup()
    stays = " and stays attached until /detach" if session.attachments_are_sticky else ""
    print_text(f"{escape_to_short_line(rest)} is attached to the next message{stays}.")


def detach(session: ChatSession, rest: str) -> None:
    """Remove one attachment or all from the working set, or cancel a pending attachment."""
    before = session.conversation.pending_commands.detach
    done = session.store_commands(TurnRequest(text="", detach=(rest or ALL_NAMES,)))
    if not rest:
        print_text("All attachments are removed from the next message on.")
    elif done.detach != before:
        message = "is detached with the next message; /drop also removes it from the prompt"
        print_text(f"{escape_to_short_line(rest)} {message}.")
    else:
        print_text(f"Cancelled: {escape_to_short_line(rest)} is not attached to the next message.")


def drop(session: ChatSession, rest: str) -> None:
    """Remove an artifact from the prompt with the next message."""
    if not rest:
        raise UsageError("Missing attachment.", hint="Example: /drop note.md; /show lists the attachments.")
    session.store_commands(TurnRequest(text="", drop=(rest,)))
    print_text(f"{escape_to_short_line(rest)} is removed from the prompt with the next message.")


def pin(session: ChatSession, rest: str) -> None:
    """Keep an artifact or a message in full."""
    if not rest:
        raise UsageError(
            "Missing attachment or message.", hint="Example: /pin note.md or /pin reply:2; /show lists the attachments."
        )
    session.store_commands(TurnRequest(text="", pin=(rest,)))
    print_text(f"{escape_to_short_line(rest)} is pinned from the next message on: it is not shortened or removed.")


def unpin(session: ChatSession, rest: str) -> None:
    """Allow a pinned artifact or message to be shortened again."""
    if not rest:
        raise UsageError(
            "Missing attachment or message.",
            hint="Example: /unpin note.md or /unpin reply:2; /show lists the attachments.",
        )
    session.store_commands(TurnRequest(text="", unpin=(rest,)))
    print_text(f"{escape_to_short_line(rest)} is no longer pinned from the next message on.")


def refresh(session: ChatSession, rest: str) -> None:
    """Read attachments again; unchanged and unreadable ones are reported in the warnings."""
    before = {one.id for one in session.conversation.pending_commands.attach}
    done = session.store_commands(TurnRequest(text="", refresh=(rest or ALL_NAMES,)))
    if {one.id for one in done.attach} <= before and not done.warnings:
        print_text("No attachment can be read again.")


def show_library(session: ChatSession, _rest: str) -> None:
    """Print the attachments and the tokens of each, and the cache's expiry."""
    now = datetime.now(UTC)
    print_library(session.conversation, session.conversation.library(at=now))
    print_cache_expiry(session.conversation.estimate_cache_expiry(at=now), now=now)


# ``/paste``: attach an image from the clipboard or from a data URI to the next message.


def paste_image(session: ChatSession, rest: str) -> None:
    """Attach the clipboard's image, or the image in a data URI."""
    name = _unused_image_title(session)
    picture = session.files.image_attachment(rest or _read_clipboard_image(), title=name)
    session.store_commands(TurnRequest(text="", attach=(picture.to_artifact(),)))
    stays = " and stays attached until /detach" if session.attachments_are_sticky else ""
    print_text(f"{name}, {len(picture.data or b''):,} bytes, is attached to the next message{stays}.")


def _unused_image_title(session: ChatSession) -> str:
    """Return a title that no pending or sent attachment has."""
    used_names = {*session.list_argument_candidates("/drop"), *session.list_argument_candidates("/detach")}
    return next(name for number in range(1, len(used_names) + 2) if (name := f"pasted-{number}") not in used_names)


def _read_clipboard_image() -> bytes:
    data = read_clipboard_image()
    if data is None:
        programs = " or ".join(list_clipboard_programs())
        raise InvalidOperationError(
            "No image found on the clipboard.",
            hint=f"Reading it needs {programs}. Or /attach the file, or /paste data:image/png;base64,…",
        )
    return data


# ``/memory``: show and edit remembered facts, and load changes into this conversation on request.

_TAKES_EFFECT_LATER = (
    "It is used in conversations that are opened from now on; /memory refresh applies the change here."
)


def run_memory_command(session: ChatSession, rest: str) -> None:
    """Show the remembered facts, or run the subcommand that the first word names."""
    word, _, text = rest.partition(" ")
    if not word:
        _print_facts(session)
    elif word in _MEMORY_ACTIONS:
        _MEMORY_ACTIONS[word][0](session, text.strip())
    else:
        raise UsageError(
            f"Unknown /memory action: {word}",
            hint=f"Use one of: {', '.join(_MEMORY_ACTIONS)}; /memory alone lists the facts.",
        )


def complete_memory_action(session: ChatSession, prefix: str) -> Mapping[str, str]:
    """Return completions for ``/memory``; after ``remove`` and ``edit``, the facts by number."""
    deed, space, name = prefix.partition(" ")
    if not space:
        return match_name_or_description(
            {word: description for word, (_, description) in _MEMORY_ACTIONS.items()}, prefix
        )
    facts = (
        open_memory(services=session.opened_conversation.opener.services).read() if deed in ("remove", "edit") else ()
    )
    return match_prefix_after_word(deed, {str(number): fact.text for number, fact in enumerate(facts, start=1)}, name)


def _print_facts(session: ChatSession) -> None:
    book = open_memory(services=session.opened_conversation.opener.services)
    for line in format_facts(book.read(), str(book.folder)):
        print_text(line)


def _add_fact(session: ChatSession, text: str) -> None:
    if not text:
        raise UsageError("Missing fact.", hint="Example: /memory add My garden is in Graz.")
    fact, is_new = open_memory(services=session.opened_conversation.opener.services).add(text)
    print_text(f"{'Saved' if is_new else 'Already saved'}: {escape_to_short_line(fact.text)}\n{_TAKES_EFFECT_LATER}")


def _remove_fact(session: ChatSession, text: str) -> None:
    if not text:
        raise UsageError("Missing fact number.", hint="/memory lists the numbers.")
    removed = open_memory(services=session.opened_conversation.opener.services).remove(text)
    print_text(f"Removed: {escape_to_short_line(removed.text)}\n{_TAKES_EFFECT_LATER.replace('It is', 'It is not')}")


def _edit_fact(session: ChatSession, text: str) -> None:
    which, _, instead = text.partition(" ")
    if not which or not instead.strip():
        raise UsageError("Missing fact number or new text.", hint="Example: /memory edit 2 I moved to Linz.")
    changed = open_memory(services=session.opened_conversation.opener.services).edit(which, instead)
    print_text(f"Changed: {escape_to_short_line(changed.text)}\n{_TAKES_EFFECT_LATER}")


def _save_one_line_summary(session: ChatSession, _text: str) -> None:
    session.opened_conversation.confirm_summarizer()
    with show_if_slow("Summarizing this conversation"):
        line = session.conversation.summarize_in_one_line_with_author()
    book = open_memory(services=session.opened_conversation.opener.services)
    fact, _ = book.add(line.text, kind=FactKind.RECENT, conversation_key=session.conversation.id)
    print_text(format_saved_line(line, fact))


def _refresh_memory(session: ChatSession, _text: str) -> None:
    change = session.conversation.refresh_memory_next_turn()
    if change is None:
        print_text("The memory of this conversation is up to date.")
        return
    effect = "cached tokens will be sent again" if session.conversation.turns() else "nothing is cached yet"
    print_text(f"The memory is updated with the next message ({escape_to_short_line(change)}); {effect}.")


_MEMORY_ACTIONS: dict[str, tuple[Callable[[ChatSession, str], None], str]] = {
    "add": (_add_fact, "save a fact"),
    "remove": (_remove_fact, "remove a fact"),
    "edit": (_edit_fact, "change the text of a fact"),
    "keep": (_save_one_line_summary, "save a one-line summary of this conversation"),
    "refresh": (_refresh_memory, "use changed facts from the next message on"),
}
