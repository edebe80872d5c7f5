"""Access tokens of the HTTP server, stored as hashes in a private file.

A token is made of 32 random bytes. It cannot be guessed from its hash, so a plain SHA-256 without salt is enough, and
a token can be looked up by its hash.
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
from lamella.settings.loading import read_private_file, write_private_file

TOKENS_FILE_NAME = "tokens.json"
# Lamella's tokens start with this. A wrong key without the prefix is a client's own key, not an attempt to guess.
TOKEN_PREFIX = "lamella_"
_TOKEN_BYTES = 32
_TOKEN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class AccessScope(StrEnum):
    """Permissions of a token; each scope includes those before it."""

    READ = "read"
    CHAT = "chat"
    ADMIN = "admin"

    def includes(self, other: "AccessScope") -> bool:
        """Return whether this scope includes the permissions of another."""
        order = list(AccessScope)
        return order.index(self) >= order.index(other)


class AccessToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored access token: its name, owner, scope, date of creation and hash.

    A token without an ``owner`` belongs to the operator of the server, who sees every conversation.
    """

    name: str
    owner: str
    scope: AccessScope
    since: str
    hash: str


class _TokenFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lamella: int = 1
    tokens: tuple[AccessToken, ...] = ()


class AccessTokenFile:
    """The file with the access tokens.

    It is read again whenever it changed, so that a removed token stops working at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cached_index: tuple[tuple[int, int, int], dict[str, AccessToken]] | None = None

    def read(self) -> Sequence[AccessToken]:
        """Return all tokens, oldest first."""
        return read_private_file(self.path, _TokenFile).tokens

    def find_by_token(self, token: str) -> AccessToken | None:
        """Return the stored entry of a token, or None if the token is unknown."""
        hashed = hash_token(token)
        found = self._tokens_by_hash().get(hashed)
        # The lookup already matched the hash. The constant-time comparison costs nothing and leaks nothing by timing.
        return found if found is not None and hmac.compare_digest(found.hash, hashed) else None

    def find_by_name(self, name: str) -> AccessToken | None:
        """Return the stored entry of the token with this name, or None if there is none."""
        return next((one for one in self._tokens_by_hash().values() if one.name == name), None)

    def add(self, name: str, *, owner: str, scope: AccessScope, since: str) -> str:
        """Create a token under a new name and return it; the token cannot be shown again later.

        Raises ``SettingError`` for an invalid name or owner, and for a name that is taken.
        """
        for word in filter(None, (name, owner)):
            if not _TOKEN_NAME.fullmatch(word):
                raise SettingError(
                    f"{word[:70]!r} is no name of a token or of its owner.",
                    hint="Use small letters, digits, dots, dashes and underscores, at most 63.",
                )
        kept = self.read()
        if any(one.name == name for one in kept):
            raise SettingError(f"Token already exists: {name}", hint="Remove it first, or choose another name.")
        token = TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
        self._write([*kept, AccessToken(name=name, owner=owner, scope=scope, since=since, hash=hash_token(token))])
        return token

    def remove(self, name: str) -> bool:
        """Remove a token; return False if there is none with this name."""
        kept = self.read()
        left = [one for one in kept if one.name != name]
        if len(left) == len(kept):
            return False
        self._write(left)
        return True

    def _tokens_by_hash(self) -> dict[str, AccessToken]:
        try:
            status = self.path.stat()
        except OSError:
            return {}
        # The file is replaced on every write, so the inode shows a change even within one tick of the file's clock.
        mark = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._cached_index is None or self._cached_index[0] != mark:
            self._cached_index = (mark, {one.hash: one for one in self.read()})
        return self._cached_index[1]

    def _write(self, tokens: Sequence[AccessToken]) -> None:
        write_private_file(self.path, _TokenFile(tokens=tuple(tokens)))


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token, as it is stored."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
