"""Attaching at the command line: what a message names comes along, and what comes along is told."""

from dataclasses import replace

from lamella.attach import Attachment, Picture, Unknown, want_fresh
from lamella.errors import UsageError
from lamella.faces.cli.terminal.door import ShellDoor
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell
from lamella.wiring import NamedFiles


def with_policy(one: Attachment, policy: str | None, *, fresh: bool = False) -> Attachment:
    """The same attachment under a policy, if one is given; pictures and pipes go as they are, and have none.

    What is to be ``fresh`` is read anew where there is something to read.
    """
    if fresh:
        one = want_fresh(one)
    if policy is None:
        return one
    if isinstance(one, Picture | Unknown):
        raise UsageError("A picture takes no policy.", hint="Attach it without --policy.")
    return replace(one, policy=policy)


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
