"""Branches under any operations: messages stay readable under their ids, and every id follows from its message."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from tests.invariants.moves import Kept, stored_conversation_plans
from tests.invariants.reopened_prompts import NAME, Lasting

from lamella.clocks import SystemClock
from lamella.conversation.import_export import ConversationRepository
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor
from lamella.core.log.turn_records import derive_message_id
from lamella.stores.memory import InMemoryStore

TRIED = settings.get_profile("invariants")


class Witness:
    """Remembers everything that was ever said, and checks after each move that it still is."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store
        self._said: dict[str, list[tuple[str, str]]] = {}
        self._version = 0

    def look(self) -> None:
        log = FoldedLog(NAME)
        log.extend(self._store.load(NAME))
        assert log.version >= self._version
        self._version = log.version
        self._check_tree(log)
        self._check_branches(log)
        for head, said in self._said.items():
            assert _path(log, head) == said
        self._said.update((head, _path(log, head)) for head in log.nodes)

    def _check_tree(self, log: FoldedLog) -> None:
        for name, node in log.nodes.items():
            assert derive_message_id(NAME, node.event) == name == node.id
            assert not node.parent or node.parent in log.nodes
            assert node.role is MessageAuthor.USER or log.nodes[node.parent].role is MessageAuthor.USER

    def _check_branches(self, log: FoldedLog) -> None:
        """Each message that nothing follows ends a branch; only the active branch may end where another goes on."""
        branches = log.list_branch_heads()
        assert len(set(branches)) == len(branches)
        followed = {node.parent for node in log.nodes.values()}
        ends = {name for name in log.nodes if name not in followed}
        assert ends <= set(branches) <= ends | {log.head}


def _path(log: FoldedLog, head: str) -> list[tuple[str, str]]:
    return [
        (node.id, node.text) for record in log.branch_records(head) for node in (record.message, record.reply) if node
    ]


@TRIED
@given(stored_conversation_plans())
def test_branch_operations_never_lose_rename_or_duplicate_messages(kept: Kept) -> None:
    store = InMemoryStore()
    witness = Witness(store)
    with TemporaryDirectory() as folder:
        Lasting(kept, Path(folder), lambda: store).walk([False] * len(kept.moves), after=witness.look)
    assert list(ConversationRepository(store, SystemClock()).verify()) == []
