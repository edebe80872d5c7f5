"""Checkpoints for tests: as a store has them."""

from lamella.ports import Checkpoint, Store


def list_checkpoints(store: Store, conversation_key: str) -> list[Checkpoint]:
    """Return those of a conversation, with what is stored separately from them."""
    return list(store.read_checkpoints(conversation_key, lambda one: one, with_separate_data=True))
