"""The tree: messages of snapshots stay packed until somebody looks at them, and talk is told without looking."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial

from lamella.core.log.events.message import MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import StoredRound
from lamella.core.log.nodes import Node, Told, ToldBranch, ToldPart, ToldRun, ToldSpan
from lamella.core.log.snapshots.columns import PackedNodes, keep_packed
from lamella.core.values import replace


class Nodes(MutableMapping[str, Node]):
    """Messages by id, those of snapshots first, in the order in which they were said first."""

    def __init__(self, parts: Iterable[Sequence[Node]], *, until: int) -> None:
        kept = [keep_packed(part) for part in parts]
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
            return [self[name] for name in self if self.number(name) >= version]
        found = {name: node for name, node in list(self._live.items()) if node.number >= version}
        if self._kept.keys().isdisjoint(found):
            return list(found.values())
        return [found[name] for name in self if name in found]

    def parents(self) -> dict[str, str]:
        """Whom messages follow that were kept as whole turns, each after another, and not looked at since."""
        parents: dict[str, str] = {}
        for columns in [part.columns for part in self._parts]:
            if columns.line is not None:
                parents |= zip(columns.names, (columns.line[0], *columns.names), strict=False)
        return {name: parent for name, parent in parents.items() if name not in self._live}

    def number(self, name: str) -> int:
        """The number of a message, without unpacking it."""
        node = self._live.get(name)
        if node is not None:
            return node.number
        columns = self._kept[name].columns
        return columns.numbers[columns.names.index(name)]


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
            span = ToldSpan(columns.names, part.at_hand, parent=parent, model=model, read=read)
            runs[columns.names[-1]] = span
    return runs


def _unfold_runs(part: PackedNodes) -> dict[str, ToldRun]:
    names, texts = part.columns.names, part.texts
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


def list_parents(nodes: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """Every message with the one that it follows; whole turns of snapshots are not unpacked for that."""
    kept = nodes.parents() if isinstance(nodes, Nodes) else {}
    for name in nodes:
        yield name, kept[name] if name in kept else nodes[name].parent


class MessageNumbers(Mapping[str, int]):
    """When messages were said last, in the order of their names, looked up as it is asked for: of most it is not."""

    def __init__(self, nodes: Mapping[str, Node], names: Sequence[str]) -> None:
        self._nodes = nodes
        self._names = names

    def __getitem__(self, name: str) -> int:
        return self._nodes.number(name) if isinstance(self._nodes, Nodes) else self._nodes[name].number

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
