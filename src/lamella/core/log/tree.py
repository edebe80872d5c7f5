"""The tree as snapshots keep it: messages stay packed until somebody looks at them, and talk is told without looking.

Most of a long conversation only says something. Opening it takes ids and texts from columns, many messages at a time;
times, calls and hashes of requests sent long ago are read where they are asked for.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import NamedTuple, overload

from msgspec import DecodeError, Raw
from msgspec.msgpack import Decoder, Encoder

from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.message import EditEvent, MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import StoredRound
from lamella.core.log.events.terms import GivenTerms
from lamella.core.log.nodes import Node, Told, ToldBranch, ToldPart, ToldRun, ToldSpan, damaged
from lamella.core.log.placement import Placement
from lamella.core.values import replace

_ENCODER = Encoder()
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
    one of them names: then most of them are told without a look at the ``rest``.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[int, ...]
    line: tuple[str, str | None] | None
    rest: Raw


class PackedNodes(Sequence[Node]):
    """Messages in their order; those of runs are unpacked together when one of them is asked for."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    @cached_property
    def _rest(self) -> WrittenRest:
        try:
            rest: WrittenRest = _REST_DECODER.decode(self.columns.rest)
        except (DecodeError, RecursionError, ValueError) as error:
            raise damaged(f"A snapshot with the message {self.columns.names[0]}", error) from error
        return rest

    @property
    def runs(self) -> tuple[WrittenRun, ...]:
        """The runs among them."""
        return self._rest[0]

    @cached_property
    def _apart(self) -> dict[int, Node]:
        return dict(zip(_list_apart(self.runs, len(self)), self._rest[1], strict=True))

    @cached_property
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
        return replace(node, event=replace(node.event, id=self.columns.names[at], text=self.columns.texts[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.columns.names)


def _list_inside(runs: Iterable[WrittenRun]) -> list[int]:
    """The places of messages that belong to runs."""
    return [at for _, _, first, turns, _, _ in runs for at in range(first, first + 2 * turns)]


def _list_apart(runs: Iterable[WrittenRun], length: int) -> list[int]:
    """The places of those that do not."""
    inside = set(_list_inside(runs))
    return [at for at in range(length) if at not in inside]


def pack_nodes(nodes: Sequence[Node]) -> Columns:
    """Messages as a snapshot writes them."""
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
    return nodes.columns.texts if isinstance(nodes, PackedNodes) else [node.event.text for node in nodes]


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


class Nodes(MutableMapping[str, Node]):
    """Messages by id, those of snapshots first, in the order in which they were said first."""

    def __init__(self, parts: Iterable[Sequence[Node]], *, until: int) -> None:
        kept = [part if isinstance(part, PackedNodes) else PackedNodes(pack_nodes(part)) for part in parts]
        self._parts = kept
        # In which part each of them is: in the last for one that was said again.
        self._kept = {name: part for part in kept for name in part.columns.names}
        # How many events there were when the last of these was kept.
        self._until = until
        # Those that were looked at, and those that came since.
        self._live: dict[str, Node] = {}
        self._length = len(self._kept)
        # Whether all that was kept is still as it was then.
        self.as_kept = True
        # Where one was said again it stands twice, and nothing is taken for granted of what follows it.
        self.runs = _list_runs(kept) if self._length == sum(map(len, kept)) else {}

    def __getitem__(self, name: str) -> Node:
        node = self._live.get(name)
        if node is None:
            part = self._kept[name]
            node = self._live[name] = part[part.columns.names.index(name)]
        return node

    def __contains__(self, name: object) -> bool:
        return name in self._live or name in self._kept

    def __iter__(self) -> Iterator[str]:
        yield from self._kept
        # Looking at one puts it there, and others may look meanwhile.
        yield from [name for name in list(self._live) if name not in self._kept]

    def __len__(self) -> int:
        return self._length

    def __setitem__(self, name: str, node: Node) -> None:
        if name in self._kept:
            self.runs, self.as_kept = {}, False
        elif name not in self._live:
            self._length += 1
        self._live[name] = node

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"a log forgets nothing, and so not {name}")

    def since(self, version: int) -> list[Node]:
        """Those that were said last after so many events."""
        if version < self._until:
            numbers = self.numbers()
            return [self[name] for name in self if numbers[name] >= version]
        found = {name: node for name, node in list(self._live.items()) if node.number >= version}
        if self._kept.keys().isdisjoint(found):
            return list(found.values())
        return [found[name] for name in self if name in found]

    def numbers(self) -> dict[str, int]:
        """The number of every message, without unpacking any."""
        numbers: dict[str, int] = {}
        for part in self._parts:
            numbers.update(zip(part.columns.names, part.columns.numbers, strict=True))
        numbers.update({name: node.number for name, node in self._live.items()})
        return numbers


def _list_runs(parts: Iterable[PackedNodes]) -> dict[str, ToldRun | ToldSpan]:
    """Runs and spans by the id of their last reply."""
    runs: dict[str, ToldRun | ToldSpan] = {}
    for part in parts:
        columns = part.columns
        if columns.line is None:
            runs.update(_unfold_runs(part))
        else:
            parent, model = columns.line
            read = partial(_read_span, part)
            span = ToldSpan(columns.names, columns.texts, parent=parent, model=model, read=read)
            runs[columns.names[-1]] = span
    return runs


def _unfold_runs(part: PackedNodes) -> dict[str, ToldRun]:
    names, texts = part.columns.names, part.columns.texts
    runs: dict[str, ToldRun] = {}
    for setup, parent, first, turns, brought, placements in part.runs:
        end = first + 2 * turns
        runs[names[end - 1]] = ToldRun(setup, parent, names[first:end], texts[first:end], brought, placements)
    return runs


def _read_span(part: PackedNodes) -> list[Told | ToldRun]:
    """The turns of messages that follow one another, and the runs among them."""
    runs, told, at = _unfold_runs(part), list[Told | ToldRun](), len(part)
    while at:
        run = runs.get(part.columns.names[at - 1])
        told.append(Told(message=part[at - 2], reply=part[at - 1]) if run is None else run)
        at -= 2 if run is None else len(run.names)
    told.reverse()
    return told


def find_path(
    nodes: Mapping[str, Node],
    name: str,
    *,
    rounds: Mapping[str, tuple[StoredRound, ...]],
    asked: Mapping[str, MessageEvent],
) -> Sequence[Told]:
    """The turns from the beginning to a message; ``rounds`` and ``asked`` are those of the log."""
    parts: list[ToldPart] = []
    # Where a question was asked otherwise since, each is looked at.
    runs = nodes.runs if isinstance(nodes, Nodes) and not asked else {}
    while name:
        run = runs.get(name)
        if run is not None:
            parts.append(run)
            name = run.parent
            continue
        node = nodes[name]
        if isinstance(node.event, ReplyEvent):
            reply, node = node, nodes[node.event.parent]
            parts.append(Told(message=_as_asked(node, asked.get(name)), reply=reply))
        else:
            parts.append(Told(message=_as_asked(node, asked.get(name)), reply=None, open=rounds.get(name, ())))
        name = node.event.parent
    parts.reverse()
    return ToldBranch(parts, nodes)


def _as_asked(question: Node, event: MessageEvent | None) -> Node:
    """A question as it was asked for a reply, or for itself where it is open once more."""
    return question if event is None else replace(question, event=event)


def number_messages(nodes: Mapping[str, Node], names: Iterable[str]) -> dict[str, int]:
    """When messages were said last, in the order of their names."""
    if isinstance(nodes, Nodes):
        numbers, wanted = nodes.numbers(), tuple(names)
        # Mostly there is one branch, and it has all of them.
        return numbers if tuple(numbers) == wanted else {name: numbers[name] for name in wanted}
    return {name: nodes[name].number for name in names}
