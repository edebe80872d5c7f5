"""Messages: a question as it was asked, or in place of another, and the turn that it is read back as."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from lamella.core.artifacts.model import Artifact, ToolDefinition
from lamella.core.log.events.artifact import (
    Contents,
    StoredArtifact,
    gather_contents,
    read_artifacts,
    read_kept,
    store_artifact,
)
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.reply import CitedSource, ReplyEvent
from lamella.core.log.events.terms import GivenTerms, give_terms, leave_terms, settle_terms
from lamella.core.log.placement import Placement
from lamella.core.log.terms import Rewrite, Terms
from lamella.core.log.turn import RuleBook, SystemParts, Turn
from lamella.core.text.content import encode_text, hash_text
from lamella.core.values import replace


class StoredSystem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The system prompt. Instructions that draw notes in are a content of their own, which is erased with them."""

    base: str = ""
    guidelines: str = ""
    instructions: str = ""
    project: str = ""
    workflow: str = ""
    memory: str = ""
    typed_instructions: str = ""
    workflow_brief: str = ""
    workflow_detail: str = ""
    drawn: str | None = None
    inlined: tuple[StoredArtifact, ...] = ()


class StoredTool(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A tool that the model may call."""

    name: str
    description: str
    parameters: str


class TurnSetup(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a question sets from then on, none for what it leaves as it was."""

    system: StoredSystem | None = None
    tools: tuple[StoredTool, ...] | None = None
    model: str | None = None
    pinned: tuple[str, ...] | None = None
    rules: RuleBook | None = None

    def over(self, other: "TurnSetup") -> "TurnSetup":
        """What holds where this was set after the other."""
        return TurnSetup(
            system=other.system if self.system is None else self.system,
            tools=other.tools if self.tools is None else self.tools,
            model=other.model if self.model is None else self.model,
            pinned=other.pinned if self.pinned is None else self.pinned,
            rules=other.rules if self.rules is None else self.rules,
        )


NOTHING_SET = TurnSetup()
_NOTHING = (None,) * 7


class MessageEvent(GivenTerms, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="message"):
    """A question. ``typed`` is its text before templates, where that is another; ``strip`` is the hash of a summary.

    ``sources`` are what the numbers mean that were told with it, for answers to cite. ``placement`` is where things
    stand in its request, where prices decided that: it is never planned again.
    """

    id: str
    parent: str
    text: str
    typed: str | None = None
    attached: tuple[StoredArtifact, ...] = ()
    results: tuple[StoredArtifact, ...] = ()
    system: StoredSystem | None = None
    tools: tuple[StoredTool, ...] | None = None
    model: str | None = None
    drop: tuple[str, ...] = ()
    detach: tuple[str, ...] = ()
    fold: bool = False
    pinned: tuple[str, ...] | None = None
    strip: str | None = None
    rewritten: Rewrite | None = None
    unmoved: bool = False
    warnings: tuple[str, ...] = ()
    imprint: Imprint | None = None
    sources: tuple[CitedSource, ...] = ()
    placement: Placement | None = None
    rules: RuleBook | None = None

    @property
    def lasting(self) -> TurnSetup:
        return TurnSetup(system=self.system, tools=self.tools, model=self.model, pinned=self.pinned, rules=self.rules)

    @property
    def is_plain(self) -> bool:
        """Whether it names no content."""
        return not self.attached and not self.results and self.system is None and self.strip is None

    @property
    def refs(self) -> tuple[StoredArtifact, ...]:
        """What it says of artifacts, in the order in which erasures list their contents."""
        return (*self.attached, *self.results, *(() if self.system is None else self.system.inlined))

    def hashes(self) -> Iterator[str]:
        """Every content that it names."""
        for ref in self.refs:
            yield from ref.hashes()
        if self.system is not None and self.system.drawn is not None:
            yield self.system.drawn
        if self.strip is not None:
            yield self.strip

    def artifacts(self) -> Iterator[StoredArtifact]:
        """What came with it: tool results, attachments, and the notes that its instructions draw in."""
        yield from self.results
        yield from self.attached
        if self.system is not None:
            yield from self.system.inlined


class EditEvent(MessageEvent, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="edit"):
    """A question in place of another, which stays on its branch."""

    target: str


def make_message(turn: Turn, *, message_id: str, parent: str, edits: str | None = None) -> MessageEvent:
    """The event of a turn that is asked, or that replaces the message it ``edits``."""
    event = give_terms(_describe(turn), turn.terms, id=message_id, parent=parent)
    return event if edits is None else address(event, message_id=message_id, parent=parent, edits=edits)


def make_open_message(turn: Turn) -> MessageEvent:
    """A turn of another program, with no place yet: its terms are left to the settings under which it goes on."""
    return leave_terms(_describe(turn))


def address(event: MessageEvent, *, message_id: str, parent: str, edits: str | None = None) -> MessageEvent:
    """The same question at its place, as a new one or in place of another."""
    said = {**asdict(event), "id": message_id, "parent": parent}
    said.pop("target", None)
    return MessageEvent(**said) if edits is None else EditEvent(**said, target=edits)


def gather_turn(turn: Turn) -> dict[str, bytes]:
    """The contents that the event of a turn names."""
    contents = gather_contents((*turn.results, *turn.attached))
    if turn.strip is not None:
        contents[hash_text(turn.strip)] = encode_text(turn.strip)
    if turn.system is not None and turn.system.inlined:
        contents.update(gather_contents(turn.system.inlined))
        contents[hash_text(turn.system.instructions)] = encode_text(turn.system.instructions)
    return contents


def read_turn(
    event: MessageEvent, contents: Contents, *, usual: Terms, reply: MessageEvent | ReplyEvent | None = None
) -> Turn:
    """The turn an event describes; artifacts whose contents were erased are left out, and said.

    ``usual`` are the terms of events that give none, and ``reply`` is what it was answered with.
    """
    text = event.text
    # Most turns say nothing else; reading them is much of what opening a long conversation takes.
    turn = Turn(
        text=text,
        typed=text if event.typed is None else event.typed,
        id=event.id or None,
        terms=settle_terms(event, usual),
        reply=None if reply is None else reply.text,
        reply_id=None if reply is None else reply.id,
        imprint=event.imprint,
        placement=event.placement,
    )
    if event.attached or event.results or event.warnings or event.sources:
        turn = _attach(turn, event, contents)
    if event.drop or event.detach or event.fold:
        turn = replace(turn, drop=event.drop, detach=event.detach, fold=event.fold)
    if (event.system, event.tools, event.model, event.pinned, event.strip, event.rewritten, event.rules) == _NOTHING:
        return turn
    return replace(
        turn,
        system=None if event.system is None else _read_system(event.system, contents),
        tools=_read_tools(event.tools),
        model=event.model,
        pinned=event.pinned,
        rules=event.rules,
        strip=read_kept(event.strip, contents),
        rewritten=event.rewritten,
        unmoved=event.unmoved,
    )


def _attach(turn: Turn, event: MessageEvent, contents: Contents) -> Turn:
    results, told = read_brought(event.results, contents)
    attached, told_then = read_brought(event.attached, contents)
    warnings = (*event.warnings, *told, *told_then)
    return replace(turn, attached=attached, results=results, warnings=warnings, sources=event.sources)


def read_brought(stored: Sequence[StoredArtifact], contents: Contents) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """What came along with a question, and words on what of it was erased."""
    found, gone = read_artifacts(stored, contents)
    return found, tuple([f"{name} was erased and is left out." for name in gone])


def read_lasting(left: TurnSetup) -> tuple[SystemParts | None, tuple[ToolDefinition, ...] | None, str | None]:
    """What was set, as turns say it: system prompt, tools and model. Instructions stand as they were typed."""
    return None if left.system is None else _read_system(left.system, {}), _read_tools(left.tools), left.model


def _describe(turn: Turn) -> MessageEvent:
    """What a turn says but for its place and its terms; what is as it was is left out."""
    return MessageEvent(
        id="",
        parent="",
        text=turn.text,
        typed=turn.typed if turn.typed != turn.text else None,
        attached=tuple(map(store_artifact, turn.attached)),
        results=tuple(map(store_artifact, turn.results)),
        system=None if turn.system is None else _store_system(turn.system),
        tools=None
        if turn.tools is None
        else tuple(StoredTool(name=t.name, description=t.description, parameters=t.parameters) for t in turn.tools),
        model=turn.model,
        drop=turn.drop,
        detach=turn.detach,
        fold=turn.fold,
        pinned=turn.pinned,
        strip=None if turn.strip is None else hash_text(turn.strip),
        rewritten=turn.rewritten,
        unmoved=turn.unmoved,
        warnings=turn.warnings,
        imprint=turn.imprint,
        sources=turn.sources,
        placement=turn.placement,
        rules=turn.rules,
    )


def _store_system(parts: SystemParts) -> StoredSystem:
    stored = StoredSystem(
        base=parts.base,
        guidelines=parts.guidelines,
        instructions=parts.instructions,
        project=parts.project,
        workflow=parts.workflow,
        memory=parts.memory,
        typed_instructions=parts.typed_instructions,
        workflow_brief=parts.workflow_brief,
        workflow_detail=parts.workflow_detail,
    )
    if not parts.inlined:
        return stored
    inlined = tuple(map(store_artifact, parts.inlined))
    return replace(stored, instructions="", drawn=hash_text(parts.instructions), inlined=inlined)


def _read_system(stored: StoredSystem, contents: Contents) -> SystemParts:
    """The system prompt; instructions whose text was erased stand as they were typed."""
    parts = SystemParts(
        base=stored.base,
        guidelines=stored.guidelines,
        instructions=stored.instructions,
        project=stored.project,
        workflow=stored.workflow,
        memory=stored.memory,
        typed_instructions=stored.typed_instructions,
        workflow_brief=stored.workflow_brief,
        workflow_detail=stored.workflow_detail,
    )
    if stored.drawn is None:
        return parts
    drawn = read_kept(stored.drawn, contents)
    if drawn is None:
        return replace(parts, instructions=stored.typed_instructions)
    return replace(parts, instructions=drawn, inlined=read_artifacts(stored.inlined, contents)[0])


def _read_tools(stored: tuple[StoredTool, ...] | None) -> tuple[ToolDefinition, ...] | None:
    if stored is None:
        return None
    return tuple(ToolDefinition(name=t.name, description=t.description, parameters=t.parameters) for t in stored)
