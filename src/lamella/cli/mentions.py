"""Resolve the attachments that a message names, and print what is attached."""

from dataclasses import replace

from lamella.attach import ActiveNote, Attachment, Image, Note, Unknown, with_fresh_read
from lamella.cli.errors import CliHints
from lamella.cli.output import escape_to_short_line, print_text
from lamella.errors import LamellaError, UsageError
from lamella.wiring import AttachmentResolver


def with_policy(attachment: Attachment, policy: str | None, *, fresh: bool = False) -> Attachment:
    """Return the attachment with a policy, if one is given.

    ``fresh`` ignores cached conversions and pages.

    Raises:
        UsageError: A policy was given for an image or for piped text, which have none.
    """
    if fresh:
        attachment = with_fresh_read(attachment)
    if policy is None:
        return attachment
    if isinstance(attachment, Image | Unknown):
        raise UsageError("Images have no policy.", hint="Attach it without --policy.")
    return replace(attachment, policy=policy)


def get_active_note(name: str, files: AttachmentResolver) -> ActiveNote:
    """Return a note as the active note, the one that is open in the user's editor.

    Raises:
        UsageError: The name does not mean exactly one note.
    """
    found = files.resolve(name)
    if len(found) != 1 or not isinstance(found[0], Note):
        raise UsageError(f"{name} is not a note.", hint="Give one note as the active note, by path or [[Name]].")
    return ActiveNote(path=found[0].path, text=found[0].text)


def get_active_note_or_warn(name: str, files: AttachmentResolver) -> list[Attachment]:
    """Return the active note in its current version; if it is gone, print a note and send the message without it."""
    try:
        return [get_active_note(name, files)] if name else []
    except LamellaError as error:
        print_text(f"note: The active note is not sent. {escape_to_short_line(error.message)}", err=True)
        return []


def resolve_and_print_mentions(text: str, files: AttachmentResolver) -> list[Attachment]:
    """Return the attachments that a message names with ``@``, and print them.

    For a name that attaches nothing, the reason is printed before the answer starts.
    """
    outcomes = files.resolve_mentions(text)
    attached = [outcome for outcome in outcomes if outcome.attachments]
    if attached:
        print_text(
            f"attached: {' · '.join(dict.fromkeys(escape_to_short_line(outcome.description) for outcome in attached))}",
            err=True,
        )
    for outcome in outcomes:
        if not outcome.attachments:
            reason = escape_to_short_line(outcome.format_for(CliHints()))
            print_text(f"note: {escape_to_short_line(outcome.token)} is sent as plain text. {reason}", err=True)
    return [one for outcome in attached for one in outcome.attachments]
