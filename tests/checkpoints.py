"""Checkpoints for tests: as a store has them."""

from lamella.ports import Checkpoint, Store


def list_checkpoints(store: Store, conversation: str) -> list[Checkpoint]:
    """Those of a conversation, with what is stored separately from them."""
    return list(store.read_checkpoints(conversation, lambda one: one, separate_only=True))
