"""Compaction inside a chat: room made within a range or everywhere, and taken back."""

from lamella.engine.dialogue.proposal import PlanRange
from lamella.errors import CallError, UsageError
from lamella.faces.cli.chat.input import choose_begun
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.tables.compaction import (
    find_waiting,
    hint_unmoved,
    lower_share,
    print_planned,
    tell_planning,
    tell_stopped,
)
from lamella.faces.cli.terminal.telling import tell
from lamella.views.words import cut_words

_ASKED_AGAIN = "/retry"
_GLANCE = 60


def compact(talk: TerminalChat, rest: str) -> None:
    """Make room, within a range and down to a share where they are given."""
    waits = find_waiting(talk.stored.turns())
    within, share = _read_range(rest)
    planned = talk.stored.plan(within, to=_share(share))
    tell_planning(planned)
    if planned.receipt is None:
        lower = f"Aim lower, as in /compact {lower_share(planned):.2g}, or go on: there is room."
        raise CallError(
            f"There is nothing to gain: the next request has {planned.before.total:,} tokens, "
            f"and {planned.goal:,} are aimed at.",
            hint=lower if planned.before.total <= planned.goal else hint_unmoved(talk.stored),
        )
    talk.stored.commit(planned)
    print_planned(talk.stored.name, planned, undo="/undo")
    tell_stopped(waits, again=_ASKED_AGAIN)


def _read_range(rest: str) -> tuple[PlanRange, str]:
    """From and up to which message, and the share: ``0.5 from turn:3 up to turn:9``, each where it is given."""
    words = rest.replace("up to ", "to ").split()
    named: dict[str, str] = {}
    for word in ("from", "to"):
        if word in words[:-1]:
            at = words.index(word)
            named[word] = words[at + 1]
            del words[at : at + 2]
    return PlanRange(named.get("from"), named.get("to")), " ".join(words)


def list_bounds(talk: TerminalChat, begun: str) -> dict[str, str]:
    """From where and up to where there may be made room: the two words, and behind one of them the turns."""
    before, _, typed = begun.rpartition(" ")
    after = before.rpartition(" ")[2]
    if after in ("from", "to"):
        turns = {f"turn:{at}": cut_words(one.message.text, _GLANCE) for at, one in enumerate(talk.stored.turns(), 1)}
        known = choose_begun(turns, typed)
    else:
        given = before.split()
        known = choose_begun({word: "" for word in ("from", "to") if word not in given}, typed)
    return {f"{before} {one}".lstrip(): said for one, said in known.items()}


def _share(rest: str) -> float | None:
    try:
        return float(rest) if rest else None
    except ValueError as error:
        raise UsageError(
            f"{rest} is no share.", hint="As in /compact 0.5, or /compact 0.5 from turn:3 to turn:9."
        ) from error


def undo(talk: TerminalChat, _rest: str) -> None:
    """Take the last compaction back."""
    waits = find_waiting(talk.stored.turns())
    receipt = talk.stored.undo()
    tell(f"Undone: {receipt.id}. The prompt is as if it had never been compacted.")
    tell_stopped(waits, again=_ASKED_AGAIN)
