"""Messages as snapshots keep them: in columns, which stay packed until somebody looks at a message.

Most of a long conversation only says something. Opening it takes ids and texts from columns, many messages at a time;
times, calls and hashes of requests sent long ago are read where they are asked for.
"""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, cast, overload

from msgspec import DecodeError, Raw
from msgspec.msgpack import Decoder, Encoder

from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.message import EditEvent, MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.terms import GivenTerms
from lamella.core.log.nodes import Node, damaged
from lamella.core.log.placement import Placement
from lamella.core.messages.whole import WholeTexts
from lamella.core.values import FoundOnce, replace

_ENCODER = Encoder()
_NOTHING = _ENCODER.encode(None)
# Level 6 saves a twentieth of it more and takes half as long again (26 kB, 2026-11-17).
_LEVEL = 1
_DECODER = Decoder(tuple[tuple[str, ...], tuple[Node, ...]])
# What a question may say beside its text, its terms, what is attached, where things stand in it, and what was sent for
# it. A field that is added there is among it.
_ELSEWHERE = {"id", "parent", "text", "attached", "imprint", "placement", *GivenTerms.__struct_fields__}
_says = attrgetter(*[name for name in MessageEvent.__struct_fields__ if name not in _ELSEWHERE])
_SILENT = _says(MessageEvent(id="", parent="", text=""))

# A run as it is written: what each of its questions says but for its text, whom the first follows, the index of that
# question among the messages, how many turns there are, what came along, by the number of the turn in it, and where
# things stand in each, where prices decided that.
WrittenRun = tuple[MessageEvent, str, int, int, dict[int, tuple[StoredArtifact, ...]], tuple[Placement, ...]]


# The runs among messages, what is to be said of messages apart from them, and, packed, that of those in them.
WrittenRest = tuple[tuple[WrittenRun, ...], tuple[Node, ...], bytes]
_REST_DECODER = Decoder(WrittenRest)


class Columns(NamedTuple):
    """Messages as a snapshot has them: ids, texts, numbers, and everything else.

    Where they are whole turns, each after the one before it, ``line`` is whom the first follows and the last model that
    one of them names: then most of them are told without a look at the ``rest``, which may be kept apart from them, and
    so may texts.
    """

    names: tuple[str, ...]
    texts: tuple[str | None, ...]
    numbers: tuple[int, ...]
    line: tuple[str, str | None] | None
    rest: Raw


# What is kept apart from columns: texts by their index, and the rest.
ApartColumns = tuple[dict[int, str], Raw]
NOTHING_APART: ApartColumns = ({}, Raw(b""))


class PackedNodes(Sequence[Node]):
    """Messages in their order; those of runs are unpacked together when one of them is asked for.

    What is kept apart from their columns is read at the first time that somebody looks at more than these.
    """

    def __init__(self, columns: Columns, read_apart: Callable[[Columns], ApartColumns] | None = None) -> None:
        self.columns = columns
        self._read_apart = read_apart

    @FoundOnce
    def _apart_columns(self) -> ApartColumns:
        return NOTHING_APART if self._read_apart is None else self._read_apart(self.columns)

    @FoundOnce
    def texts(self) -> tuple[str, ...]:
        """What all of them say."""
        if None not in self.columns.texts:
            return cast(tuple[str, ...], self.columns.texts)
        apart = self._apart_columns[0]
        return tuple([apart[at] if text is None else text for at, text in enumerate(self.columns.texts)])

    @property
    def are_read(self) -> bool:
        """Whether all of their texts are at hand."""
        return "texts" in vars(self) or None not in self.columns.texts

    @property
    def known_texts(self) -> Sequence[str | None]:
        """What they say, as far as it was read."""
        return self.texts if self.are_read else self.columns.texts

    @property
    def rest(self) -> Raw:
        """Everything about them but ids, texts and numbers."""
        return self.columns.rest if bytes(self.columns.rest) != _NOTHING else self._apart_columns[1]

    @FoundOnce
    def at_hand(self) -> tuple[str | WholeTexts, ...]:
        """What they say, as far as it was read, and where the rest is found."""
        texts = self.columns.texts
        if None not in texts:
            return cast(tuple[str, ...], texts)
        shelf = _PackedTexts(self)
        return tuple([shelf if text is None else text for text in texts])

    @FoundOnce
    def _rest(self) -> WrittenRest:
        try:
            rest: WrittenRest = _REST_DECODER.decode(self.rest)
        except (DecodeError, RecursionError, ValueError) as error:
            raise damaged(f"A snapshot with the message {self.columns.names[0]}", error) from error
        return rest

    @property
    def runs(self) -> tuple[WrittenRun, ...]:
        """The runs among them."""
        return self._rest[0]

    @FoundOnce
    def _apart(self) -> dict[int, Node]:
        return dict(zip(_list_apart(self.runs, len(self)), self._rest[1], strict=True))

    @FoundOnce
    def _unpacked(self) -> dict[int, Node]:
        try:
            runs, _, packed = self._rest
            hashes, nodes = _DECODER.decode(zlib.decompress(packed))
            unpacked = {at: _lengthen(node, hashes) for at, node in zip(_list_inside(runs), nodes, strict=True)}
            for first, placements in [(run[2], run[5]) for run in runs]:
                for at, placement in zip(range(first, len(self), 2), placements, strict=False):
                    unpacked[at] = _place(unpacked[at], placement)
            return unpacked
        except (DecodeError, LookupError, RecursionError, ValueError, zlib.error) as error:
            raise damaged(f"A snapshot with the message {self.columns.names[0]}", error) from error

    def __len__(self) -> int:
        return len(self.columns.names)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Node, ...]: ...
    def __getitem__(self, index: int | slice) -> Node | tuple[Node, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(len(self))[index]])
        at = range(len(self))[index]
        node = self._apart[at] if at in self._apart else self._unpacked[at]
        return replace(node, event=replace(node.event, id=self.columns.names[at], text=self.texts[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.columns.names)


class _PackedTexts(WholeTexts):
    """Texts of packed messages by their ids. Only it is equal to itself: nothing is read to find that out."""

    def __init__(self, nodes: PackedNodes) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> str:
        names = self._nodes.columns.names
        if name not in names:
            raise KeyError(name)
        return self._nodes.texts[names.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes.columns.names)

    def __len__(self) -> int:
        return len(self._nodes)

    __eq__, __hash__ = object.__eq__, object.__hash__


def _list_inside(runs: Iterable[WrittenRun]) -> list[int]:
    """The places of messages that belong to runs."""
    return [at for _, _, first, turns, _, _ in runs for at in range(first, first + 2 * turns)]


def _list_apart(runs: Iterable[WrittenRun], length: int) -> list[int]:
    """The places of those that do not."""
    inside = set(_list_inside(runs))
    return [at for at in range(length) if at not in inside]


def pack_nodes(nodes: Sequence[Node]) -> Columns:
    """Messages as a snapshot writes them, without what is kept apart already."""
    if isinstance(nodes, PackedNodes):
        return nodes.columns
    bare = [replace(node, event=replace(node.event, id="", text="")) for node in nodes]
    runs = find_runs(nodes)
    hashes: dict[str, int] = {}
    inside = [_shorten(bare[at], hashes) for at in _list_inside(runs)]
    apart = tuple([bare[at] for at in _list_apart(runs, len(nodes))])
    # Hardly anybody reads it again, and whoever opens a conversation reads past it.
    packed = zlib.compress(_ENCODER.encode((tuple(hashes), inside)), _LEVEL)
    return Columns(
        names=tuple([node.event.id for node in nodes]),
        texts=tuple([node.event.text for node in nodes]),
        numbers=tuple([node.number for node in nodes]),
        line=_find_line(nodes),
        rest=Raw(_ENCODER.encode((runs, apart, packed))),
    )


def keep_packed(nodes: Sequence[Node]) -> PackedNodes:
    """Messages packed, if they are not yet."""
    return nodes if isinstance(nodes, PackedNodes) else PackedNodes(pack_nodes(nodes))


def set_apart(nodes: Sequence[Node], standing: Collection[str] | None) -> tuple[PackedNodes, ApartColumns]:
    """Messages without what opening a conversation does not look at, and that.

    It is all but ids, numbers, and the texts of messages that are ``standing``: of all where nobody knows which are.
    """
    packed = keep_packed(nodes)
    columns, texts = packed.columns, packed.texts
    if columns.line is None:
        return packed, NOTHING_APART
    said = list(enumerate(zip(columns.names, texts, strict=True)))
    idle = {} if standing is None else {at: text for at, (name, text) in said if name not in standing}
    apart = idle, packed.rest
    kept = columns._replace(texts=tuple([None if at in idle else text for at, (_, text) in said]), rest=Raw(_NOTHING))
    return PackedNodes(kept, lambda _: apart), apart


def _find_line(nodes: Sequence[Node]) -> tuple[str, str | None] | None:
    """Whom messages follow, and the last model that they name; none unless each turn is whole and after another."""
    asked, said = [node.event for node in nodes[::2]], [node.event for node in nodes[1::2]]
    parents = [node.event.parent for node in nodes[1:]]
    if not nodes or len(nodes) % 2 or parents != [node.event.id for node in nodes[:-1]]:
        return None
    if any(isinstance(one, ReplyEvent) for one in asked) or not all(isinstance(one, ReplyEvent) for one in said):
        return None
    models = [one.model for one in reversed(asked) if not isinstance(one, ReplyEvent)]
    return nodes[0].event.parent, next((model for model in models if model), None)


def _place(question: Node, placement: Placement | None) -> Node:
    """A question with where things stand in it: its run has that."""
    event = question.event
    return question if isinstance(event, ReplyEvent) else replace(question, event=replace(event, placement=placement))


def _shorten(node: Node, hashes: dict[str, int]) -> Node:
    """A message with numbers in place of the hashes of what was sent: most of these are those of the request before."""
    node = _place(node, None)
    if isinstance(node.event, ReplyEvent) or node.event.imprint is None:
        return node
    system, library, prefix, whole = [str(hashes.setdefault(one, len(hashes))) for one in node.event.imprint.hashes]
    imprint = replace(node.event.imprint, system=system, library=library, prefix=prefix, whole=whole)
    return replace(node, event=replace(node.event, imprint=imprint))


def _lengthen(node: Node, hashes: Sequence[str]) -> Node:
    """A message with the hashes that numbers stand for."""
    if isinstance(node.event, ReplyEvent) or node.event.imprint is None:
        return node
    system, library, prefix, whole = [hashes[int(one)] for one in node.event.imprint.hashes]
    imprint = replace(node.event.imprint, system=system, library=library, prefix=prefix, whole=whole)
    return replace(node, event=replace(node.event, imprint=imprint))


def list_texts(nodes: Sequence[Node]) -> Sequence[str]:
    """What the messages say, without unpacking them."""
    return nodes.texts if isinstance(nodes, PackedNodes) else [node.event.text for node in nodes]


def find_runs(nodes: Sequence[Node]) -> tuple[WrittenRun, ...]:
    """The runs among messages, as long as they get."""
    runs: list[WrittenRun] = []
    at = 0
    while at + 1 < len(nodes):
        question = nodes[at].event
        setup = _find_setup(nodes[at], nodes[at + 1])
        if setup is None or isinstance(question, ReplyEvent):
            at += 1
            continue
        before = runs[-1] if runs else None
        if before is None or not _goes_on(before, setup, nodes, at=at):
            before = (setup, question.parent, at, 0, {}, ())
            runs.append(before)
        first, turns, brought, placements = before[2:]
        more = {turns: question.attached} if question.attached else {}
        placements += () if question.placement is None else (question.placement,)
        runs[-1] = (setup, before[1], first, turns + 1, {**brought, **more}, placements)
        at += 2
    return tuple(runs)


def _goes_on(run: WrittenRun, setup: MessageEvent, nodes: Sequence[Node], *, at: int) -> bool:
    """Whether the question of this index goes on a run: it follows it, and says the same but for what each may say."""
    asked = nodes[at].event
    if isinstance(asked, ReplyEvent) or run[0] != setup or run[2] + 2 * run[3] != at:
        return False
    return asked.parent == nodes[at - 1].id and bool(run[5]) is (asked.placement is not None)


def _find_setup(question: Node, reply: Node) -> MessageEvent | None:
    """What a question says beside its text and what came along, where that is nothing but its terms.

    None where it says more, where something moves for it, or where the other message is not its plain answer.
    """
    asked, said = question.event, reply.event
    if not isinstance(said, ReplyEvent) or said.parent != asked.id or reply.rounds or reply.erased or said.aside:
        return None
    if isinstance(asked, ReplyEvent | EditEvent) or question.erased or not asked.id or _says(asked) != _SILENT:
        return None
    if asked.placement is not None and (asked.placement.keep is not None or asked.placement.kept is not None):
        return None
    return replace(asked, id="", parent="", text="", attached=(), imprint=None, placement=None)
