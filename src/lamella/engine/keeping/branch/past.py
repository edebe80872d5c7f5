"""The past of a branch, read back as far as somebody looks at it: of what a kept state tells, nothing is told again."""

from collections.abc import Callable, Mapping, Sequence

from lamella.core.budget.counting import Measure
from lamella.core.log.branch import committed_hashes, path_hashes, read_past, read_receipts
from lamella.core.log.compactions import CompactionsInForce
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told, ToldPart, list_said, name_messages, split_told
from lamella.core.log.terms import Terms
from lamella.core.log.tree import Nodes
from lamella.core.log.turn import Turn, TurnRun
from lamella.core.messages.whole import WholeTexts
from lamella.core.prompt.kept.state import list_standing, read_state, write_state
from lamella.core.prompt.state import State
from lamella.engine.dialogue.past import Past
from lamella.engine.keeping.checkpoints.earlier import NOTHING_KEPT, KeptBranch
from lamella.engine.keeping.journal import StoredLog


class BranchReader:
    """Reads a branch of a log under the terms that its turns have where they say none."""

    def __init__(self, kept: StoredLog, committed: CompactionsInForce, *, usual: Terms, measure: Measure) -> None:
        # What is left unread in a state holds on to this, and no collection finds that out: it knows no chat.
        self._kept = kept
        self._log = kept.log
        self._committed = committed
        self._usual = usual
        self._measure = measure

    def read(self, told: Sequence[Told], *, kept: bytes, find_time: Callable[[str], str | None]) -> Past:
        """Its past, from a state that was kept on, where that holds for it."""
        if not told:
            return Past(find_time=find_time)
        names, texts = list_said(told)
        found = self._find_state(names, texts, kept)
        before, rest = split_told(told, 0 if found is None else found.turns)
        contents, since = self._load(rest), self._committed.since
        return Past(
            read_past(rest, contents, self._committed, usual=self._usual),
            path=names,
            receipts=read_receipts(since, contents) if since else (),
            find_time=find_time,
            begun=None if found is None else (found, lambda: self._read(before)),
        )

    def _read(self, told: Sequence[ToldPart]) -> list[Turn | TurnRun]:
        return read_past(told, self._load(told), self._committed, usual=self._usual)

    def _load(self, told: Sequence[ToldPart]) -> Mapping[str, bytes]:
        """What some turns name, and what was compacted before them or since the last."""
        before = self._committed.before
        asked = name_messages(told) if before else ()
        own = CompactionsInForce(
            before={name: before[name] for name in asked if name in before}, since=self._committed.since
        )
        return self._kept.read_contents((*path_hashes(told), *committed_hashes(own)))

    def _find_state(self, names: Sequence[str], texts: Sequence[str | WholeTexts], kept: bytes) -> State | None:
        """What was kept, if nothing it tells of was said again since, or asked otherwise."""
        # Taken whether they are used or not: nobody else asks for them.
        blocks = self._kept.take_blocks()
        nodes, asked = self._log.nodes, self._log.asked
        stays = isinstance(nodes, Nodes) and nodes.as_kept and asked.keys().isdisjoint(names)
        packed = read_state(kept) if kept and stays else None
        if packed is None or not packed.holds(names, self._committed, usual=self._usual, measure=self._measure):
            return None
        contents = self._kept.read_contents(packed.hashes(blocks))
        found = packed.unpack(names, texts, contents, blocks=blocks, read_later=self._kept.read_texts)
        if found is None:
            return None
        state, tokens = found
        self._kept.book.know(self._measure, tokens)
        return state


def find_state(log: Log, state: State, *, usual: Terms, measure: Measure) -> KeptBranch:
    """A state that the active branch came to, as it is kept, and what it names; nothing where it is of another."""
    told = log.path()
    names, texts = list_said(told)
    if not log.asked.keys().isdisjoint(names):
        return NOTHING_KEPT
    data, blocks = write_state(state, names, texts, committed=log.committed(told), usual=usual, measure=measure)
    return KeptBranch(data, blocks, list_standing(state)) if data else NOTHING_KEPT
