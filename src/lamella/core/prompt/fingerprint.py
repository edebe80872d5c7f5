"""The envelope's own hashes: of the prefix, which is the system message, and of all layers together."""

from collections.abc import Sequence

from lamella.core.messages.model import Message, Role
from lamella.core.prompt.layers.fingerprint import hash_pieces
from lamella.core.prompt.layers.model import Layer


def hash_prefix(messages: Sequence[Message]) -> str:
    """The hash of the system message; of nothing where none is sent."""
    system = messages[0].pieces if messages and messages[0].role is Role.SYSTEM else ()
    return hash_pieces(system)


def hash_layers(layers: Sequence[Layer]) -> str:
    """The hash of the layers' hashes, a line each: equal exactly when every layer is, without reading them again."""
    return hash_pieces(f"{layer.id} {layer.hash}\n" for layer in layers)
