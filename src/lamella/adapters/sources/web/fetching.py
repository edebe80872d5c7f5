"""Fetching: a request, the redirects that it leads through, and an answer within bounds."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urljoin, urlsplit

import httpcore2
from httpx2 import URL, InvalidURL, create_ssl_context

from lamella.adapters.sources.cache.entry import TRY_AGAIN
from lamella.adapters.sources.web.addresses import Admission, check_url
from lamella.adapters.sources.web.inflating import ACCEPTED, inflate
from lamella.adapters.sources.web.network import CheckedBackend, Deadline, Resolver, resolve_host
from lamella.errors import (
    SourceMissingError,
    SourceRefusedError,
    SourceTooLargeError,
    SourceUnreachableError,
    SourceUnreadableError,
)

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_UNCHANGED = 304
_GONE = (404, 410)
_CLOSED = (401, 402, 403, 407, 451)
# How the library begins to say that less came than was announced.
_BROKEN_OFF = "peer closed connection"
_AGENT = "lamella (context engine; reads a page that its user attached)"
_LARGE = "Attach a part of it as text. page_bytes allows more."


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How many bytes a page may have once inflated, how long all of it may take, and how long nothing may come."""

    size: int = 10_000_000
    seconds: float = 30
    silence: float = 10

    def name(self) -> str:
        """The limits in one text, to tell what was refused under others."""
        return f"{self.size},{self.seconds:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAnswer:
    """What a server said at the end of all redirects; without a body if nothing changed since it was asked last."""

    url: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def is_unchanged(self) -> bool:
        return self.status == _UNCHANGED

    def split_type(self) -> tuple[str, str | None]:
        """The media type in lower case, and the charset if one is said."""
        kind, *parameters = self.headers.get("content-type", "").split(";")
        named = (part.strip().partition("=") for part in parameters)
        charset = next((value.strip("\"' ") for name, _, value in named if name.strip().lower() == "charset"), None)
        return kind.strip().lower(), charset or None


class Fetcher:
    """Fetches from public addresses, and from those that are admitted besides.

    Nothing of the environment is used: no proxy, no cookie, no key. Certificates are those that the system trusts.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        admission: Admission | None = None,
        resolve: Resolver = resolve_host,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._admission = admission or Admission()
        self._resolve = resolve
        self._trust = trust

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, content: bytes | None = None) -> WebAnswer:
        """What stands at an address, or an error that says why it cannot be had. What has ``content`` is posted."""
        place = check_url(url)
        with self._connected() as pool, _told(url, self.limits):
            for _ in range(_MOST_REDIRECTS + 1):
                answer = self._ask(pool, place, headers={**_describe(), **(headers or {})}, content=content)
                target = answer.headers.get("location")
                if answer.status not in _REDIRECTS or not target:
                    return answer
                before, place, content = place, check_url(urljoin(place, target)), None
                # What was meant for one server is nobody else's.
                headers = headers if urlsplit(before)[:2] == urlsplit(place)[:2] else None
        raise SourceUnreachableError(
            f"{url} leads through more than {_MOST_REDIRECTS} redirects.", hint="Attach the address it ends at."
        )

    @contextmanager
    def _connected(self) -> Iterator[httpcore2.ConnectionPool]:
        deadline = Deadline(at=monotonic() + self.limits.seconds, silence=self.limits.silence)
        backend = CheckedBackend(self._admission, deadline, resolve=self._resolve)
        trust = self._trust or create_ssl_context()
        with httpcore2.ConnectionPool(ssl_context=trust, network_backend=backend, max_connections=1) as pool:
            yield pool

    def _ask(
        self, pool: httpcore2.ConnectionPool, url: str, *, headers: Mapping[str, str], content: bytes | None
    ) -> WebAnswer:
        method = "GET" if content is None else "POST"
        with pool.stream(method, _encode(url), headers=list(headers.items()), content=content) as response:
            told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            is_read = response.status not in (*_REDIRECTS, _UNCHANGED)
            body = self._read(response, told, url) if is_read else b""
        return WebAnswer(url=url, status=response.status, headers=told, body=body)

    def _read(self, response: httpcore2.Response, headers: Mapping[str, str], url: str) -> bytes:
        said = headers.get("content-length", "")
        if said.isdecimal() and int(said) > self.limits.size:
            raise self._refuse_size(url, f"{int(said):,}")
        parts: list[bytes] = []
        size = 0
        for part in inflate(response.iter_stream(), headers.get("content-encoding", ""), name=url):
            size += len(part)
            if size > self.limits.size:
                raise self._refuse_size(url, f"more than {self.limits.size:,}")
            parts.append(part)
        return b"".join(parts)

    def _refuse_size(self, url: str, size: str) -> SourceTooLargeError:
        return SourceTooLargeError(f"{url} has {size} bytes; at most {self.limits.size:,} are read.", hint=_LARGE)


def check_status(answer: WebAnswer, url: str) -> None:
    """Refuses an answer that is no page."""
    status = answer.status
    if status in _GONE:
        raise SourceMissingError(f"There is no page at {url} (status {status}).", hint="Check the address.")
    if status in _CLOSED:
        raise SourceUnreadableError(
            f"{url} is not shown to everybody (status {status}).", hint="Copy its text from a browser, and attach that."
        )
    if not 200 <= status < 300:
        raise SourceUnreachableError(f"{url} is answered with status {status}.", hint=TRY_AGAIN)


def _describe() -> dict[str, str]:
    return {
        "User-Agent": _AGENT,
        "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain,application/json,*/*;q=0.5",
        "Accept-Encoding": ACCEPTED,
        "Accept-Language": "en,*;q=0.5",
    }


def _encode(url: str) -> str:
    """An address in ASCII, as it goes over the wire."""
    try:
        return str(URL(url))
    except InvalidURL as error:
        raise SourceRefusedError(f"{url[:80]!r} is no address of a page: {error}.", hint="Check it.") from error


@contextmanager
def _told(url: str, limits: FetchLimits) -> Iterator[None]:
    """What the network says, in our words."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise SourceUnreachableError(
            f"{url} did not answer in time: {limits.seconds:g} s for all of it, {limits.silence:g} s without a byte.",
            hint=TRY_AGAIN,
        ) from error
    except httpcore2.UnsupportedProtocol as error:
        raise SourceRefusedError(f"{url[:80]} is not fetched: {error}.", hint="Check it.") from error
    except httpcore2.NetworkError as error:
        raise SourceUnreachableError(f"{url} cannot be reached: {error}.", hint=TRY_AGAIN) from error
    except (httpcore2.ProtocolError, UnicodeError, ValueError) as error:
        if _BROKEN_OFF in str(error):
            raise SourceUnreachableError(f"{url} broke off before its end: {error}.", hint=TRY_AGAIN) from error
        raise SourceUnreadableError(f"What answers at {url} does not speak HTTP: {error}.", hint=TRY_AGAIN) from error
