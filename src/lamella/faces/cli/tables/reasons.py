"""A reason for people: what stands in the prompt, why, and what to do about it, as commands to paste."""

from collections.abc import Iterator

from lamella.engine.dialogue.reasons import Reason, Remedy, RemedyKind
from lamella.faces.cli.access import name_command
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.telling import tell


def print_reason(chat: str, reason: Reason, *, store: str | None) -> None:
    """The answer, where it stands, and what would bring all of it in."""
    tell(f"{show_line(reason.id)} is {'in' if reason.in_prompt else 'not in'} the prompt of {show_line(chat)}.")
    tell(show_line(reason.why))
    for layer, segment in reason.segments:
        where = "carried" if layer is None else layer.value
        place = "" if segment.place is None else f" · {segment.place}"
        tell(f"  {where} · {segment.form.value}{place} · {tell_count(segment.tokens, 'token')}")
    for line in _tell_remedies(chat, reason, store=store):
        tell(f"  {line}")


def _tell_remedies(chat: str, reason: Reason, *, store: str | None) -> Iterator[str]:
    if reason.remedies:
        yield "To have all of it:"
    for remedy in reason.remedies:
        yield f"  {_tell_remedy(chat, remedy, store=store)}"


def _tell_remedy(chat: str, remedy: Remedy, *, store: str | None) -> str:
    match remedy.do:
        case RemedyKind.ATTACH:
            return f"attach it: @{show_line(remedy.what)} in a chat, or --attach with `lamella ask`"
        case RemedyKind.UNDO:
            return f"undo: {name_command('compact', chat, undo=True, receipt=remedy.what, store=store)}"
        case RemedyKind.SET:
            return f"set: {remedy.what}"
        case RemedyKind.RECALL:
            return f"only read it: {name_command('recall', chat, remedy.what, store=store)}"
        case RemedyKind.FORK:
            return f"go on from it: {name_command('chats fork', chat, remedy.what, store=store)}"
