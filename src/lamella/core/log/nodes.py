"""Messages of the tree: one event that says something is one node."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, overload

from msgspec import Struct

from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.aside import AsideEvent
from lamella.core.log.events.hashes import named_hashes
from lamella.core.log.events.message import EditEvent, MessageEvent, TurnSetup
from lamella.core.log.events.reply import CitedSource, ReplyEvent
from lamella.core.log.events.rounds import StoredRound, list_hashes
from lamella.core.log.ids import Voice, message_id, name_result
from lamella.core.log.placement import Placement
from lamella.core.messages.whole import WholeTexts
from lamella.core.values import FoundOnce, replace
from lamella.errors import StoreDamagedError

# What reading an event that is not what it was can raise.
UNREADABLE = (LookupError, TypeError, ValueError)
# Members by name of their own: see docs/decisions/msgspec.md.
_USER, _REPLY = Voice.USER, Voice.REPLY


class Node(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """One message of the tree: a question, or a reply with the tool rounds that led to it.

    ``number`` is how many events were before the one that said it last: asking the same again after a compaction is
    asking after it. ``erased`` are the contents it names that were erased since, and stay so for it when the same
    content is attached again. ``asides`` are model calls on the way to a reply.
    """

    event: MessageEvent | EditEvent | ReplyEvent
    at: str = ""
    number: int = 0
    rounds: tuple[StoredRound, ...] = ()
    erased: tuple[str, ...] = ()
    asides: tuple[AsideEvent, ...] = ()

    @property
    def id(self) -> str:
        return self.event.id

    @property
    def parent(self) -> str:
        return self.event.parent

    @property
    def text(self) -> str:
        return self.event.text

    @property
    def role(self) -> Voice:
        return _REPLY if isinstance(self.event, ReplyEvent) else _USER

    @property
    def question(self) -> MessageEvent | None:
        """What was asked, of a question."""
        return None if isinstance(self.event, ReplyEvent) else self.event

    @property
    def typed(self) -> str:
        """Its text as it was typed, before templates."""
        typed = None if isinstance(self.event, ReplyEvent) else self.event.typed
        return self.event.text if typed is None else typed


class Told(Struct, frozen=True, kw_only=True, gc=False):
    """One turn of a branch: what was asked, and the reply if there is one.

    ``open`` are the tool rounds of a question that is not answered yet; the last may still wait for its results.
    """

    message: Node
    reply: Node | None
    open: tuple[StoredRound, ...] = ()

    @property
    def rounds(self) -> tuple[StoredRound, ...]:
        """The turn's tool rounds: each has its results."""
        return list_whole(self.open) if self.reply is None else self.reply.rounds

    @property
    def sources(self) -> tuple[CitedSource, ...]:
        """What the numbers in the reply point to: the first is ``[^1]``, and so on."""
        event = None if self.reply is None else self.reply.event
        return event.sources if isinstance(event, ReplyEvent) else ()

    @property
    def pending(self) -> StoredRound | None:
        """Calls that were asked for and not answered yet."""
        return self.open[-1] if self.open and self.open[-1].results is None else None


def list_whole(rounds: tuple[StoredRound, ...]) -> tuple[StoredRound, ...]:
    """Those rounds that have their results; only the last of a turn can be without."""
    return rounds[:-1] if rounds and rounds[-1].results is None else rounds


class ToldRun(NamedTuple):
    """Turns that talk and bring things along, each after the one before it.

    ``names`` and ``texts`` are the ids and texts of question, reply, question, reply; ``setup`` is what every question
    says beside its text and what it ``brought``, by the number of its turn. ``placements`` are where things stand in
    each, where prices decided that.
    """

    setup: MessageEvent
    parent: str
    names: tuple[str, ...]
    texts: tuple[str, ...]
    brought: Mapping[int, tuple[StoredArtifact, ...]]
    placements: tuple[Placement, ...] = ()

    def split(self, turns: int) -> tuple["ToldRun", "ToldRun"]:
        """Its first turns, and those after them."""
        end, brought = 2 * turns, self.brought
        first = {at: refs for at, refs in brought.items() if at < turns}
        rest = {at - turns: refs for at, refs in brought.items() if at >= turns}
        return (
            self._replace(
                names=self.names[:end], texts=self.texts[:end], brought=first, placements=self.placements[:turns]
            ),
            self._replace(
                parent=self.names[end - 1],
                names=self.names[end:],
                texts=self.texts[end:],
                brought=rest,
                placements=self.placements[turns:],
            ),
        )


class ToldSpan:
    """Turns that follow one another, of which hardly anybody looks at more than ids and texts: the rest is read then.

    The first of them follows ``parent``, and ``model`` is the last that one of them names.
    """

    def __init__(
        self,
        names: Sequence[str],
        texts: Sequence[str | WholeTexts],
        *,
        parent: str,
        model: str | None,
        read: Callable[[], Sequence[Told | ToldRun]],
    ) -> None:
        self.names = names
        self.texts = texts
        self.parent = parent
        self.model = model
        self._read = read

    @FoundOnce
    def parts(self) -> Sequence[Told | ToldRun]:
        """The turns, and runs of them."""
        return self._read()


# A turn of a branch, or several that are told together.
ToldPart = Told | ToldRun | ToldSpan


class ToldBranch(Sequence[Told]):
    """The turns of a branch; those of runs and spans are unpacked when they are asked for."""

    def __init__(self, parts: Sequence[ToldPart], nodes: Mapping[str, Node]) -> None:
        self.parts = parts
        self._nodes = nodes
        self._length = sum([_count_turns(part) for part in parts])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Told]:
        for part in self.parts:
            yield from self._unfold(part)

    def __reversed__(self) -> Iterator[Told]:
        for part in reversed(self.parts):
            yield from reversed(self._unfold(part))

    def _unfold(self, part: ToldPart) -> Sequence[Told]:
        if isinstance(part, Told):
            return (part,)
        if isinstance(part, ToldSpan):
            return [told for one in part.parts for told in self._unfold(one)]
        nodes = [self._nodes[name] for name in part.names]
        return [Told(message=asked, reply=said) for asked, said in zip(nodes[::2], nodes[1::2], strict=True)]

    @overload
    def __getitem__(self, index: int) -> Told: ...
    @overload
    def __getitem__(self, index: slice) -> list[Told]: ...
    def __getitem__(self, index: int | slice) -> Told | list[Told]:
        within = range(self._length)[index]
        if isinstance(within, int):
            return self._pick(self.parts, self._length - 1 - within)
        # The last turns are what most people ask for.
        last = list(islice(reversed(self), self._length - min(within, default=self._length)))
        return [last[self._length - 1 - at] for at in within]

    def _pick(self, parts: Sequence[ToldPart], after: int) -> Told:
        """The turn of parts that so many are after; no other is unpacked."""
        for part in reversed(parts):
            if after < _count_turns(part):
                break
            after -= _count_turns(part)
        if isinstance(part, Told):
            return part
        if isinstance(part, ToldSpan):
            return self._pick(part.parts, after)
        asked, said = [self._nodes[name] for name in part.names[-2 * after - 2 :][:2]]
        return Told(message=asked, reply=said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def _count_turns(part: ToldPart) -> int:
    return 1 if isinstance(part, Told) else len(part.names) // 2


def list_spans(told: Iterable[ToldPart]) -> Sequence[ToldPart]:
    """The turns of a branch, runs and spans as they are."""
    return told.parts if isinstance(told, ToldBranch) else tuple(told)


def list_parts(told: Iterable[ToldPart]) -> list[Told | ToldRun]:
    """The turns of a branch, runs as they are."""
    parts: list[Told | ToldRun] = []
    for part in list_spans(told):
        parts += part.parts if isinstance(part, ToldSpan) else (part,)
    return parts


def name_messages(told: Iterable[ToldPart]) -> tuple[str, ...]:
    """The ids of a branch's questions and replies, in their order."""
    names: list[str] = []
    for part in list_spans(told):
        if not isinstance(part, Told):
            names += part.names
        else:
            names += [node.event.id for node in (part.message, part.reply) if node is not None]
    return tuple(names)


def split_told(told: Iterable[ToldPart], turns: int) -> tuple[list[ToldPart], list[ToldPart]]:
    """The first turns of a branch, and those after them, runs and spans as they are."""
    before: list[ToldPart] = []
    rest: list[ToldPart] = []
    for part in list_spans(told):
        length = _count_turns(part)
        if not isinstance(part, Told) and 0 < turns < length:
            first, second = part.split(turns) if isinstance(part, ToldRun) else split_told(part.parts, turns)
            before += [first] if isinstance(first, ToldRun) else first
            rest += [second] if isinstance(second, ToldRun) else second
        else:
            (before if turns > 0 else rest).append(part)
        turns -= length
    return before, rest


def list_said(told: Iterable[ToldPart]) -> tuple[tuple[str, ...], tuple[str | WholeTexts, ...]]:
    """The ids of a branch's questions and replies in their order, and their texts, as far as these were read."""
    texts: list[str | WholeTexts] = []
    for part in list_spans(told):
        if not isinstance(part, Told):
            texts += part.texts
        else:
            texts += [node.event.text for node in (part.message, part.reply) if node is not None]
    return name_messages(told), tuple(texts)


def name_attached(node: Node) -> tuple[str, ...]:
    """The ids of what came with a message: tool results, attachments, and notes drawn into instructions."""
    question = node.question
    return () if question is None else tuple(dict.fromkeys(ref.id for ref in question.artifacts()))


def name_results(question: str, rounds: Iterable[StoredRound]) -> Iterator[tuple[str, str]]:
    """What came back in the rounds of a question: the id of each result, and the hash of its output."""
    for number, one in enumerate(rounds):
        hashes = (result.output for result in one.results or ())
        yield from zip(name_round(question, number, one), hashes, strict=True)


def find_results(nodes: Iterable[Node], waits: Mapping[str, tuple[StoredRound, ...]], artifact: str) -> tuple[str, ...]:
    """The hashes of what tools gave back under an id, inside any turn; ``waits`` are the rounds of open questions."""
    answered = ((node.parent, node.rounds) for node in nodes if node.rounds)
    found = (
        output
        for question, rounds in (*answered, *waits.items())
        for name, output in name_results(question, rounds)
        if name == artifact
    )
    return tuple(dict.fromkeys(found))


def name_round(question: str, number: int, one: StoredRound) -> tuple[str, ...]:
    """The ids of the results of a question's round of this number."""
    calls = {call.id: (call.name, call.arguments) for call in one.calls}
    return one.names or tuple(
        name_result(question, place=(number, at), call=calls[result.call], output=result.output)
        for at, result in enumerate(one.results or ())
    )


def derive_id(conversation: str, event: MessageEvent | ReplyEvent) -> str:
    """A message's id from what it says and what it follows."""
    if isinstance(event, ReplyEvent):
        return message_id(conversation, parent=event.parent, role=_REPLY, text=event.text)
    attached = [(ref.id, ref.hash) for ref in (*event.results, *event.attached)]
    return message_id(conversation, parent=event.parent, role=_USER, text=event.text, attached=attached)


def damaged(place: str, error: Exception) -> StoreDamagedError:
    """The error for a place that cannot be read."""
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return StoreDamagedError(
        f"{place} cannot be read: {why}.", hint=lambda door: f"Use {door.verify_store()} to see what is damaged."
    )


def check_place(node: Node, among: Mapping[str, Node]) -> None:
    """Refuse a message that does not fit where it says it stands."""
    parent, same = among.get(node.parent), among.get(node.id, node)
    if node.parent and parent is None:
        raise ValueError(f"message {node.id} follows {node.parent}, which is not there")
    if node.role is _REPLY and (parent is None or parent.role is not _USER):
        raise ValueError(f"reply {node.id} answers no message")
    if (same.parent, same.role, same.text) != (node.parent, node.role, node.text):
        raise ValueError(f"message {node.id} is there already, and says something else")


def asks_on(before: Node | None, now: Node) -> bool:
    """Whether a question is the one that waits, asked once more with what was found for it meanwhile."""
    asked, more = None if before is None else before.question, now.question
    if before is None or asked is None or more is None or isinstance(more, EditEvent) or before.id == now.id:
        return False
    return (before.parent, before.typed) == (now.parent, now.typed) and set(asked.refs) <= set(more.refs)


def join_replies(same: Node, reply: Node) -> Node:
    """The same answer given once more: it was called for once more.

    What was asked after it was built on the rounds that it had then, so it keeps them.
    """
    if not isinstance(same.event, ReplyEvent) or not isinstance(reply.event, ReplyEvent):
        return reply
    sources = reply.event.sources or same.event.sources
    event = replace(reply.event, calls=(*same.event.calls, *reply.event.calls), sources=sources)
    asides = (*same.asides, *reply.asides)
    return replace(reply, event=event, rounds=same.rounds, erased=same.erased, asides=asides)


def mark_erased(
    nodes: Mapping[str, Node],
    hashes: frozenset[str],
    *,
    asked: Iterable[MessageEvent | EditEvent],
    waits: Mapping[str, tuple[StoredRound, ...]],
) -> dict[str, Node]:
    """Those messages that name what is erased, each with what it has lost.

    ``asked`` are questions as they were asked before, ``waits`` the rounds of open ones.
    """
    before: dict[str, set[str]] = {}
    for event in asked:
        before.setdefault(event.id, set()).update(named_hashes(event))
    marked: dict[str, Node] = {}
    for name, node in nodes.items():
        rounds = (*waits.get(name, ()), *node.rounds)
        gone = hashes.intersection({*named_hashes(node.event), *before.get(name, ()), *list_hashes(rounds)})
        if gone:
            marked[name] = replace(node, erased=tuple(sorted(gone.union(node.erased))))
    return marked


def put_under(
    event: MessageEvent | EditEvent | ReplyEvent, parent: str, left: TurnSetup, *, names: Mapping[str, str]
) -> MessageEvent | ReplyEvent:
    """What was said, after another message; a question goes on with what is ``left``, and pins go by ``names``."""
    event = replace(event, parent=parent)
    if isinstance(event, ReplyEvent):
        return event
    lasting = event.lasting.over(left)
    pins = None if lasting.pinned is None else tuple([names.get(one, one) for one in lasting.pinned])
    return replace(
        event, system=lasting.system, tools=lasting.tools, model=lasting.model, pinned=pins, rules=lasting.rules
    )
