"""The memory inside a chat: shown, added to, taken out of; what changed is taken up when somebody says so."""

from collections.abc import Callable, Mapping

from lamella.errors import UsageError
from lamella.faces.cli.chat.input import choose_begun, choose_further
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.memory.lines import tell_facts, tell_kept
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell
from lamella.holdings import FactKind
from lamella.wiring import open_memory

_LATER = "It is in the prompt of conversations opened from now on; /memory refresh takes it up in this one."


def remember(talk: TerminalChat, rest: str) -> None:
    """Show what is remembered, or do what the first word says."""
    word, _, text = rest.partition(" ")
    if not word:
        _show(talk)
    elif word in _DEEDS:
        _DEEDS[word][0](talk, text.strip())
    else:
        raise UsageError(
            f"/memory does not know {word}.", hint=f"It knows {', '.join(_DEEDS)}; or nothing, to show it."
        )


def list_deeds(talk: TerminalChat, begun: str) -> Mapping[str, str]:
    """What may come after it; after `remove` and `edit` the facts there are, by their numbers."""
    deed, space, name = begun.partition(" ")
    if not space:
        return choose_begun({word: told for word, (_, told) in _DEEDS.items()}, begun)
    facts = open_memory(services=talk.opened.opener.services).read() if deed in ("remove", "edit") else ()
    return choose_further(deed, {str(number): fact.text for number, fact in enumerate(facts, start=1)}, name)


def _show(talk: TerminalChat) -> None:
    book = open_memory(services=talk.opened.opener.services)
    for line in tell_facts(book.read(), str(book.folder)):
        tell(line)


def _add(talk: TerminalChat, text: str) -> None:
    if not text:
        raise UsageError("/memory add says nothing to remember.", hint="As in /memory add My garden is in Graz.")
    fact, is_new = open_memory(services=talk.opened.opener.services).add(text)
    tell(f"Remembered{'' if is_new else ' already'}: {show_line(fact.text)}\n{_LATER}")


def _remove(talk: TerminalChat, text: str) -> None:
    if not text:
        raise UsageError("/memory remove names no fact.", hint="/memory has their numbers.")
    gone = open_memory(services=talk.opened.opener.services).remove(text)
    tell(f"No longer remembered: {show_line(gone.text)}\n{_LATER.replace('It is', 'It is not')}")


def _edit(talk: TerminalChat, text: str) -> None:
    which, _, instead = text.partition(" ")
    if not which or not instead.strip():
        raise UsageError("/memory edit needs a fact and another text.", hint="As in /memory edit 2 I moved to Linz.")
    changed = open_memory(services=talk.opened.opener.services).edit(which, instead)
    tell(f"Remembered instead: {show_line(changed.text)}\n{_LATER}")


def _keep(talk: TerminalChat, _text: str) -> None:
    talk.opened.check_summarizer()
    with told_if_slow("Putting this conversation on a line"):
        line = talk.stored.tell_talk()
    book = open_memory(services=talk.opened.opener.services)
    fact, _ = book.add(line.text, kind=FactKind.RECENT, chat=talk.stored.id)
    tell(tell_kept(line, fact))


def _refresh(talk: TerminalChat, _text: str) -> None:
    change = talk.stored.refresh_memory()
    if change is None:
        tell("This conversation has the memory as it is.")
        return
    told = "what is cached of it is read anew" if talk.stored.turns() else "nothing is cached of it yet"
    tell(f"The next message takes the memory up ({show_line(change)}); {told}.")


_DEEDS: dict[str, tuple[Callable[[TerminalChat, str], None], str]] = {
    "add": (_add, "remember a fact"),
    "remove": (_remove, "take a fact out"),
    "edit": (_edit, "put another text in its place"),
    "keep": (_keep, "remember what this conversation is about"),
    "refresh": (_refresh, "take up what changed, with the next message"),
}
