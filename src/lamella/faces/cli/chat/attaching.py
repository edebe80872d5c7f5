"""Attaching at the command line: what a message names comes along, and what comes along is told."""

from dataclasses import replace

from lamella.attach import ActiveNote, Attachment, Note, Picture, Unknown
from lamella.errors import LamellaError, UsageError
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.wiring import NamedFiles


def with_policy(one: Attachment, policy: str | None) -> Attachment:
    """The same attachment under a policy, if one is given; pictures and pipes go as they are, and have none."""
    if policy is None:
        return one
    if isinstance(one, Picture | Unknown):
        raise UsageError("A picture takes no policy.", hint="Attach it without --policy.")
    return replace(one, policy=policy)


def find_active(name: str, files: NamedFiles) -> ActiveNote:
    """The note of a name as the one that is open in an editor."""
    found = files.find(name)
    if len(found) != 1 or not isinstance(found[0], Note):
        raise UsageError(f"{name} is not a note.", hint="The active note is one note, by its path or [[Name]].")
    return ActiveNote(path=found[0].path, text=found[0].text)


def attach_active(name: str, files: NamedFiles) -> list[Attachment]:
    """The active note as it is now; where it is gone that is told, and the message goes without it."""
    try:
        return [find_active(name, files)] if name else []
    except LamellaError as error:
        tell(f"note: the active note is not sent. {show_line(error.message)}", err=True)
        return []


def attach_named(text: str, files: NamedFiles) -> list[Attachment]:
    """What a message names, told with it; so is why a name attaches nothing, before the answer comes."""
    outcomes = files.find_mentions(text)
    attached = [outcome for outcome in outcomes if outcome.attach]
    if attached:
        tell(f"attached: {' · '.join(dict.fromkeys(show_line(outcome.told) for outcome in attached))}", err=True)
    for outcome in outcomes:
        if not outcome.attach:
            tell(
                f"note: {show_line(outcome.token)} is sent as a word. {show_line(outcome.told_at(ShellDoor()))}",
                err=True,
            )
    return [one for outcome in attached for one in outcome.attach]
