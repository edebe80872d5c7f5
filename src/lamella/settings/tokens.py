"""Tokens: who may come in over a network, in a private file that has no token in it, only what each hashes to.

A token is 32 random bytes, so that its plain sha256 says nothing of it and is found at once.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from lamella.errors import SettingError
from lamella.settings.private import read_private, write_private

FILE = "tokens.json"
# What one of ours begins with: a client that must send some key of its own is not taken for one who guesses.
PREFIX = "lamella_"
_BYTES = 32
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class TokenScope(StrEnum):
    """What a token may do; each may do what those before it may."""

    READ = "read"
    CHAT = "chat"
    ADMIN = "admin"

    def covers(self, other: "TokenScope") -> bool:
        """Whether who has this may do what that is needed for."""
        order = list(TokenScope)
        return order.index(self) >= order.index(other)


class KeptToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token by its name: whose it is, what it may do, since when, and what it hashes to.

    Without an ``owner`` it is the operator's own, who sees every conversation.
    """

    name: str
    owner: str
    scope: TokenScope
    since: str
    hash: str


class _TokenFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lamella: int = 1
    tokens: tuple[KeptToken, ...] = ()


class TokenBook:
    """What stands in the file; it is read again when it changed, so that a token that is taken back is so at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[tuple[int, int, int], dict[str, KeptToken]] | None = None

    def read(self) -> Sequence[KeptToken]:
        """Every token, the oldest first."""
        return read_private(self.path, _TokenFile).tokens

    def find(self, token: str) -> KeptToken | None:
        """Whose token it is, if anybody's."""
        hashed = hash_token(token)
        found = self._index().get(hashed)
        # The hash is what was looked up by; comparing costs nothing and tells nothing by its time.
        return found if found is not None and hmac.compare_digest(found.hash, hashed) else None

    def add(self, name: str, *, owner: str, scope: TokenScope, since: str) -> str:
        """Give out a token under a name that no other has; it is told here and never again."""
        for word in filter(None, (name, owner)):
            if not _NAME.fullmatch(word):
                raise SettingError(
                    f"{word[:70]!r} is no name of a token or of its owner.",
                    hint="Use small letters, digits, dots, dashes and underscores, at most 63.",
                )
        kept = self.read()
        if any(one.name == name for one in kept):
            raise SettingError(f"There is a token {name} already.", hint="Take that back first, or choose a name.")
        token = PREFIX + secrets.token_urlsafe(_BYTES)
        self._write([*kept, KeptToken(name=name, owner=owner, scope=scope, since=since, hash=hash_token(token))])
        return token

    def remove(self, name: str) -> bool:
        """Take a token back; false if there is none of that name."""
        kept = self.read()
        left = [one for one in kept if one.name != name]
        if len(left) == len(kept):
            return False
        self._write(left)
        return True

    def _index(self) -> dict[str, KeptToken]:
        try:
            status = self.path.stat()
        except OSError:
            return {}
        mark = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._known is None or self._known[0] != mark:
            self._known = (mark, {one.hash: one for one in self.read()})
        return self._known[1]

    def _write(self, tokens: Sequence[KeptToken]) -> None:
        write_private(self.path, _TokenFile(tokens=tuple(tokens)))


def hash_token(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
