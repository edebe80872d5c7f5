"""Tokens as data: names, owners and scopes, never what lets somebody in."""

from collections.abc import Sequence
from typing import Protocol


class TokenShape(Protocol):
    """What has to be known of a token to tell of it."""

    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def since(self) -> str: ...


def view_token(token: TokenShape) -> dict[str, object]:
    """One token; without an owner it sees every conversation."""
    return {"lamella": 1, **_view(token)}


def view_tokens(tokens: Sequence[TokenShape]) -> dict[str, object]:
    """Every token, the oldest first."""
    return {"lamella": 1, "tokens": [_view(token) for token in tokens]}


def _view(token: TokenShape) -> dict[str, object]:
    return {"name": token.name, "scope": str(token.scope), "owner": token.owner or None, "since": token.since}
