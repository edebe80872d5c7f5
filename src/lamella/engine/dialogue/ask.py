"""What a turn asks for, before anything is read."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.artifacts.wanted import Wanted
from lamella.core.log.events.reply import CitedSource
from lamella.core.log.turn import PART_NAMES, RuleBook, SystemParts, Turn
from lamella.core.values import replace


class Ask(Struct, frozen=True, kw_only=True, gc=False):
    """One turn as the user asks it: typed text with its templates, and attachments, read or still to be read.

    ``results`` are tool results that ride as text, ``tools`` what the model may call from now on. ``drop`` takes out of
    the prompt, ``detach`` out of the working set, by id or by the name of a picture. ``pin`` names artifacts that are
    known already: they are attached once more, and never shrink again; or messages, by their ids or as ``turn:3`` and
    ``reply:3``, which no compaction takes out from then on. ``unpin`` takes that back. ``pinned`` are the messages that
    are so before that, none for those that were. ``earlier`` is what was attached before this was asked, as it was read
    then, and ``warnings`` what is to be said of that. ``refresh`` names what is read anew. ``runner`` is the way of
    answering, none for the usual one. ``sources`` are what the numbers mean that an answer may cite. ``upon`` are parts
    of the system prompt that wait until what was sent moves anyway: they are taken up if it does in this turn. In a
    ``verbatim`` text braces name nothing. ``rules`` are texts that hold from now on, ``ended`` those of rules that hold
    no more, and ``book`` is what was done about rules before that, none for what was.
    """

    text: str
    attach: tuple[Artifact | Wanted, ...] = ()
    results: tuple[Artifact, ...] = ()
    system: Mapping[str, str] = {}
    tools: tuple[ToolDefinition, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    pinned: tuple[str, ...] | None = None
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    fold: bool = False
    earlier: tuple[Artifact, ...] = ()
    refresh: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    runner: str | None = None
    sources: tuple[CitedSource, ...] = ()
    upon: Mapping[str, str] = {}
    verbatim: bool = False
    rules: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    book: RuleBook | None = None


def ask_again(turn: Turn, *, text: str | None, model: str | None, system: Mapping[str, str]) -> Ask:
    """A turn as it is asked once more under this system prompt, with another text and model if they are given."""
    return Ask(
        text=turn.typed if text is None else text,
        attach=tuple(replace(artifact, condensed=None) for artifact in turn.attached),
        results=turn.results,
        system=system,
        tools=turn.tools,
        model=model or turn.model,
        drop=turn.drop,
        detach=turn.detach,
        fold=turn.fold,
        pinned=turn.pinned,
        book=turn.rules,
        runner=turn.terms.runner,
        sources=turn.sources,
    )


def take_up(asked: Ask) -> Ask:
    """What is asked, with the parts of the system prompt that waited for it."""
    return replace(asked, system={**asked.system, **asked.upon}, upon={})


def repeat_system(parts: SystemParts) -> dict[str, str]:
    """A system prompt, asked for again: a part that was taken away is empty, not as it was before."""
    return {**dict.fromkeys((*PART_NAMES, "workflow_brief", "workflow_detail"), ""), **parts.as_typed()}
