"""Sessions of browsers: a signed cookie instead of an access token.

The cookie has the name of a token, an expiry and a signature, and not the token itself: a copied cookie is of no use
after it expires, after the server restarts, or once the token is removed. Nothing is stored, so all workers of a
server accept the cookie. Only the worker that handles a logout knows that a session ended before its time; browsers
delete the cookie then.
"""

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from time import time
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from lamella.wiring import AccessToken, AccessTokenFile

SESSION_SECONDS = 7 * 24 * 3_600
# The prefix makes browsers refuse a cookie of this name that is not secure or comes from another host.
_SECURE_COOKIE, _PLAIN_COOKIE = "__Host-lamella_session", "lamella_session"
_ID_BYTES, _KEY_BYTES = 9, 32
_COOKIE_PARTS = 4
# Sessions that ended early are remembered up to this many; then the first to expire are forgotten.
_MAX_ENDED_SESSIONS = 10_000


class Session(NamedTuple):
    """A valid session: its id, its access token, and when it expires, in seconds since 1970."""

    id: str
    token: AccessToken
    expires: int


class SessionSigner:
    """Creates and checks the cookies of sessions with a key that all workers of a server share."""

    def __init__(self, key: bytes = b"", *, now: Callable[[], float] = time) -> None:
        self._key = key or make_session_key()
        self._now = now
        self._ended: dict[str, int] = {}

    def create_session(self, token: AccessToken) -> tuple[Session, str]:
        """Return a new session of a token, and the value of its cookie."""
        session = Session(secrets.token_urlsafe(_ID_BYTES), token, int(self._now()) + SESSION_SECONDS)
        return session, ".".join((self._sign(session), session.id, str(session.expires), token.name))

    def find_session(self, headers: Headers, tokens: AccessTokenFile) -> Session | None:
        """Return the session of a request by its cookie; None without a cookie, and for one that is not valid."""
        cookies = cookie_parser(headers.get("cookie", ""))
        value = cookies.get(_SECURE_COOKIE) or cookies.get(_PLAIN_COOKIE)
        parts = [] if value is None else value.split(".", _COOKIE_PARTS - 1)
        if len(parts) != _COOKIE_PARTS or not parts[2].isdecimal() or len(parts[2]) > len(str(SESSION_SECONDS << 32)):
            return None
        signature, session_id, expires, name = parts
        token = tokens.find_by_name(name)
        if token is None:
            return None
        session = Session(session_id, token, int(expires))
        is_signed = hmac.compare_digest(self._sign(session).encode(), signature.encode("utf-8", "surrogatepass"))
        return session if is_signed and session.expires > self._now() and session_id not in self._ended else None

    def end_session(self, session: Session) -> None:
        """End a session before it expires."""
        now = self._now()
        self._ended = {name: expires for name, expires in self._ended.items() if expires > now}
        self._ended[session.id] = session.expires
        while len(self._ended) > _MAX_ENDED_SESSIONS:
            del self._ended[min(self._ended, key=self._ended.__getitem__)]

    def _sign(self, session: Session) -> str:
        """Return the signature of a session; the hash of its token is part of it, so another token of that name differs."""
        signed = "\n".join((session.id, str(session.expires), session.token.name, session.token.hash))
        return hmac.new(self._key, signed.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def make_session_key() -> bytes:
    """Return a new key; each start of a server has its own, so a restart ends all sessions."""
    return secrets.token_bytes(_KEY_BYTES)


def has_session_cookie(headers: Headers) -> bool:
    """Return whether a request has the cookie of a session, valid or not."""
    cookies = cookie_parser(headers.get("cookie", ""))
    return _SECURE_COOKIE in cookies or _PLAIN_COOKIE in cookies


def session_cookie_headers(headers: Headers, value: str) -> list[str]:
    """Return the ``Set-Cookie`` headers of a response: a new cookie, or with an empty value its removal.

    Behind a proxy that terminates TLS, only the origin that the browser states shows that it uses https.
    """
    if headers.get("origin", "").startswith("https://"):
        names = [f"{_SECURE_COOKIE}={value}; Secure"]
    elif value:
        names = [f"{_PLAIN_COOKIE}={value}"]
    else:
        names = [f"{_PLAIN_COOKIE}=", f"{_SECURE_COOKIE}=; Secure"]
    age = SESSION_SECONDS if value else 0
    return [f"{name}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict" for name in names]
