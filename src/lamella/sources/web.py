"""Fetch web pages and images, only from public addresses and from those that the settings allow.

``Fetcher`` sends the request, follows redirects and reads the response within limits. ``read_page`` converts a page to
text. Host names are resolved by ``CheckedNetworkBackend``, once per connection, and the connection goes to the very
address that was checked: a DNS answer that changes in between has no effect. Bodies are decompressed in small pieces,
so that a small response cannot exhaust memory.
"""

import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from threading import Thread
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpcore2
from httpcore2 import (
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
    WriteTimeout,
)
from httpx2 import URL, InvalidURL, create_ssl_context

from lamella.errors import (
    AddressNotAllowedError,
    SettingError,
    SourceNotFoundError,
    SourceTooLargeError,
    SourceUnreachableError,
    SourceUnreadableError,
)
from lamella.sources.conversion_process import Converter
from lamella.sources.converted_files import TRY_AGAIN_HINT, ConversionEntry
from lamella.sources.converters import ConvertedText, FileFormat, clean_text, decode_text, truncate_text
from lamella.sources.images import parse_image

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

# Networks that are not hosts of the public internet. The list is kept here and not taken from ``ipaddress``, because
# the meaning of ``is_global`` has changed between versions.
# fmt: off
_PRIVATE_IPV4 = tuple(map(IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "168.63.129.16/32",  # Azure's metadata service, although the address looks public
)))
# fmt: on
_PUBLIC_IPV6 = IPv6Network("2000::/3")
# Closed networks within the open range: protocol assignments, tunnels that carry an IPv4 address, documentation.
# Everything outside the open range is closed: mapped and translated addresses, unique local, link-local, multicast.
_PRIVATE_IPV6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")))

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_LENGTH = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressAllowlist:
    """Hosts and networks that may be fetched from although they are not public."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[_Network, ...] = ()

    def is_allowed(self, host: str, address: str) -> bool:
        """Return whether a host may be connected to at this resolved address."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return is_public(found) or host.lower().rstrip(".") in self.hosts or any(found in net for net in self.networks)


def parse_allowlist(allowed: Iterable[str]) -> AddressAllowlist:
    """Parse allowed hosts, addresses and networks such as ``10.1.0.0/16``.

    Raises:
        SettingError: An entry is neither a host name nor a network.
    """
    hosts: set[str] = set()
    networks: list[_Network] = []
    for one in allowed:
        try:
            networks.append(ip_network(one.strip().strip("[]")))
        except ValueError as error:
            name = one.strip().lower().rstrip(".")
            if not name or any(mark in name for mark in "/:*@ ") or name.replace(".", "").isdigit():
                raise SettingError(
                    f"private_addresses has {one!r}, which is neither a host nor a network.",
                    hint="Write hosts and networks with commas between them, as in wiki.home, 10.1.0.0/16, 127.0.0.1.",
                ) from error
            hosts.add(name)
    return AddressAllowlist(hosts=frozenset(hosts), networks=tuple(networks))


def is_public(address: _Address) -> bool:
    """Return whether an address is that of a single host on the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _PRIVATE_IPV4)
    return address in _PUBLIC_IPV6 and not any(address in network for network in _PRIVATE_IPV6)


def validate_url(url: str) -> str:
    """Return a URL without its fragment.

    Raises:
        AddressNotAllowedError: The URL is malformed, is not http or https, or contains a user name or password.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressNotAllowedError(f"{url[:80]!r} is no address: {error}.", hint="Check it.") from error
    if parts.scheme.lower() not in _DEFAULT_PORTS:
        raise AddressNotAllowedError(
            f"{url[:80]} is not fetched: only http and https are.",
            hint="Attach what it names by its path, or its text.",
        )
    if (
        not host
        or port == 0
        or len(url) > _MAX_URL_LENGTH
        or any(letter <= " " or letter == "\x7f" for letter in url.strip())
    ):
        raise AddressNotAllowedError(f"{url[:80]!r} is no address of a page.", hint="Check it.")
    if parts.username is not None or parts.password is not None:
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise AddressNotAllowedError(
            f"The address of {shown[:80]} has a name or a password in it.",
            hint="Take it out: what stands in an address is sent to models, and kept.",
        )
    return parts._replace(fragment="").geturl()


# Decompression in small pieces.

# The encodings that are requested. No others are accepted.
ACCEPTED_ENCODINGS = "gzip, deflate"
_MAX_PIECE_BYTES = 65_536
_GZIP_WBITS, _ZLIB_WBITS, _RAW_DEFLATE_WBITS = 31, 15, -15


def decompress(chunks: Iterator[bytes], encoding: str, *, name: str) -> Iterator[bytes]:
    """Yield the decompressed body in pieces that stay small whatever the compression ratio."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise SourceUnreadableError(
            f"{name} is sent as {encoding[:40]!r}, which was not asked for.", hint="Save the page, and attach its text."
        )
    try:
        yield from _decompress(chunks, gzip=encoding != "deflate")
    except zlib.error as error:
        raise SourceUnreadableError(
            f"{name} is sent compressed, and that is broken: {error}.", hint=TRY_AGAIN_HINT
        ) from error


def _decompress(chunks: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    inflater = None
    for chunk in chunks:
        if not chunk:
            continue
        if inflater is None:
            # By "deflate" some servers mean raw deflate, others the zlib format, which has a header.
            bare = not gzip and chunk[0] & 0x0F != 8
            inflater = zlib.decompressobj(_GZIP_WBITS if gzip else _RAW_DEFLATE_WBITS if bare else _ZLIB_WBITS)
        rest = chunk
        while rest and not inflater.eof:
            yield inflater.decompress(rest, _MAX_PIECE_BYTES)
            rest = inflater.unconsumed_tail
    if inflater is not None:
        yield inflater.flush()


# The network backend. The host name is still used for the ``Host`` header and the certificate.

# Returns the addresses of a host. Tests and callers with their own names can pass another one.
ResolveHost = Callable[[str, int], Sequence[str]]
_MOST_ADDRESSES = 4


def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from the system's resolver, without duplicates; ``OSError`` if there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """The time by which everything must be done, and the longest time without progress."""

    ends_at: float
    max_idle_seconds: float

    def seconds_left(self, timeout: float | None = None) -> float:
        """Return the seconds that the next step may take; zero or less means that the time is up."""
        return min(
            self.ends_at - monotonic(), self.max_idle_seconds, self.max_idle_seconds if timeout is None else timeout
        )


class CheckedNetworkBackend(NetworkBackend):
    """Connects to public and explicitly allowed addresses only."""

    def __init__(self, allowlist: AddressAllowlist, deadline: Deadline, *, resolve: ResolveHost) -> None:
        self._allowlist = allowlist
        self._deadline = deadline
        self._resolve = resolve
        self._inner_backend = SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        *_where: Any,  # noqa: ANN401 - the local address and socket options are left to the system
        **_how: Any,  # noqa: ANN401
    ) -> NetworkStream:
        addresses = self._resolve_host(host, port)
        # Refuse the host if any of its addresses is not allowed, not only the one that would be tried first.
        for address in addresses:
            if not self._allowlist.is_allowed(host, address):
                raise AddressNotAllowedError(
                    f"{host} is at {address}, which is not a public address.",
                    hint="Attach its text. Your own settings, not a project's, may allow it in private_addresses.",
                )
        failed: Exception = ConnectError("no address")
        for address in addresses[:_MOST_ADDRESSES]:
            left = self._deadline.seconds_left(timeout)
            if left <= 0:
                raise ConnectTimeout("out of time")
            try:
                return TimedStream(self._inner_backend.connect_tcp(address, port, left), self._deadline)
            except (ConnectError, ConnectTimeout) as error:
                failed = error
        raise failed

    def _resolve_host(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, within the deadline.

        The system's resolver takes no timeout, so it runs in a daemon thread that is abandoned when the time is up.
        """
        found: list[Sequence[str] | Exception] = []

        def ask() -> None:
            try:
                found.append(self._resolve(host, port))
            except (OSError, UnicodeError) as error:
                found.append(error)

        asking = Thread(target=ask, daemon=True, name="lamella-resolver")
        asking.start()
        asking.join(max(0, self._deadline.seconds_left()))
        if not found:
            raise ConnectTimeout(f"the name {host} is not answered")
        if isinstance(found[0], Exception):
            raise ConnectError(f"there is no host {host}")
        return found[0]


class TimedStream(NetworkStream):
    """A connection whose every step must end before the common deadline."""

    def __init__(self, stream: NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._deadline.seconds_left(timeout)
        if left <= 0:
            raise ReadTimeout("out of time")
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = self._deadline.seconds_left(timeout)
        if left <= 0:
            raise WriteTimeout("out of time")
        self._stream.write(buffer, left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        left = self._deadline.seconds_left(timeout)
        if left <= 0:
            raise ConnectTimeout("out of time")
        return TimedStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


# Fetching.

_MOST_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_NOT_MODIFIED = 304
_NOT_FOUND_STATUSES = (404, 410)
_FORBIDDEN_STATUSES = (401, 402, 403, 407, 451)
# Part of the HTTP library's message when a response is shorter than announced.
_CONNECTION_CLOSED = "peer closed connection"
_USER_AGENT = "lamella (context engine; reads a page that its user attached)"
_TOO_LARGE_HINT = "Attach a part of it as text. page_bytes allows more."


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of a fetch: decompressed size in bytes, total time, and time without any data."""

    max_bytes: int = 10_000_000
    max_seconds: float = 30
    idle_timeout: float = 10

    def cache_key(self) -> str:
        """Return the limits as one text. Cached failures record it, so that other limits lead to a new attempt."""
        return f"{self.max_bytes},{self.max_seconds:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """The response after all redirects. The body is empty if the page is unchanged (status 304)."""

    url: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def is_unchanged(self) -> bool:
        return self.status == _NOT_MODIFIED

    def parse_content_type(self) -> tuple[str, str | None]:
        """Return the media type in lower case, and the charset or None."""
        kind, *parameters = self.headers.get("content-type", "").split(";")
        named = (part.strip().partition("=") for part in parameters)
        charset = next((value.strip("\"' ") for name, _, value in named if name.strip().lower() == "charset"), None)
        return kind.strip().lower(), charset or None


class Fetcher:
    """Fetches from public addresses and from those on the allowlist.

    Nothing from the environment is used: no proxy, no cookies, no keys. Certificates are checked against the system's
    trust store.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        allowlist: AddressAllowlist | None = None,
        resolve: ResolveHost = resolve_host,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._allowlist = allowlist or AddressAllowlist()
        self._resolve = resolve
        self._ssl_context = ssl_context

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, content: bytes | None = None) -> WebResponse:
        """Return the response for a URL; an error says why it cannot be fetched.

        With ``content`` the first request is a POST. Redirects are followed with GET.
        """
        checked_url = validate_url(url)
        with self._open_pool() as pool, _convert_network_errors(url, self.limits):
            for _ in range(_MOST_REDIRECTS + 1):
                answer = self._send_request(
                    pool, checked_url, headers={**_default_headers(), **(headers or {})}, content=content
                )
                target = answer.headers.get("location")
                if answer.status not in _REDIRECT_STATUSES or not target:
                    return answer
                # A redirect may lead to another scheme, so its URL is checked too. The backend checks its address.
                before, checked_url, content = checked_url, validate_url(urljoin(checked_url, target)), None
                # Headers for one server must not reach another, except the media type that is wanted.
                if urlsplit(before)[:2] != urlsplit(checked_url)[:2]:
                    headers = {name: value for name, value in (headers or {}).items() if name == "Accept"}
        raise SourceUnreachableError(
            f"{url} leads through more than {_MOST_REDIRECTS} redirects.", hint="Attach the address it ends at."
        )

    @contextmanager
    def _open_pool(self) -> Iterator[httpcore2.ConnectionPool]:
        deadline = Deadline(ends_at=monotonic() + self.limits.max_seconds, max_idle_seconds=self.limits.idle_timeout)
        backend = CheckedNetworkBackend(self._allowlist, deadline, resolve=self._resolve)
        trust = self._ssl_context or create_ssl_context()
        with httpcore2.ConnectionPool(ssl_context=trust, network_backend=backend, max_connections=1) as pool:
            yield pool

    def _send_request(
        self, pool: httpcore2.ConnectionPool, url: str, *, headers: Mapping[str, str], content: bytes | None
    ) -> WebResponse:
        method = "GET" if content is None else "POST"
        with pool.stream(method, _encode_url(url), headers=list(headers.items()), content=content) as response:
            response_headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
            }
            is_read = response.status not in (*_REDIRECT_STATUSES, _NOT_MODIFIED)
            body = self._read_body(response, response_headers, url) if is_read else b""
        return WebResponse(url=url, status=response.status, headers=response_headers, body=body)

    def _read_body(self, response: httpcore2.Response, headers: Mapping[str, str], url: str) -> bytes:
        declared_length = headers.get("content-length", "")
        if declared_length.isdecimal() and int(declared_length) > self.limits.max_bytes:
            raise self._too_large_error(url, f"{int(declared_length):,}")
        parts: list[bytes] = []
        size = 0
        for part in decompress(response.iter_stream(), headers.get("content-encoding", ""), name=url):
            size += len(part)
            if size > self.limits.max_bytes:
                raise self._too_large_error(url, f"more than {self.limits.max_bytes:,}")
            parts.append(part)
        return b"".join(parts)

    def _too_large_error(self, url: str, size: str) -> SourceTooLargeError:
        return SourceTooLargeError(
            f"{url} has {size} bytes; at most {self.limits.max_bytes:,} are read.", hint=_TOO_LARGE_HINT
        )


def check_status(response: WebResponse, url: str) -> None:
    """Raise an error for a response that is not a page, according to its status."""
    status = response.status
    if status in _NOT_FOUND_STATUSES:
        raise SourceNotFoundError(f"There is no page at {url} (status {status}).", hint="Check the address.")
    if status in _FORBIDDEN_STATUSES:
        raise SourceUnreadableError(
            f"{url} is not shown to everybody (status {status}).", hint="Copy its text from a browser, and attach that."
        )
    if not 200 <= status < 300:
        raise SourceUnreachableError(f"{url} is answered with status {status}.", hint=TRY_AGAIN_HINT)


def _default_headers() -> dict[str, str]:
    return {
        "User-Agent": _USER_AGENT,
        "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain,application/json,*/*;q=0.5",
        "Accept-Encoding": ACCEPTED_ENCODINGS,
        "Accept-Language": "en,*;q=0.5",
    }


def _encode_url(url: str) -> str:
    """Return a URL in ASCII, as it is sent."""
    try:
        return str(URL(url))
    except InvalidURL as error:
        raise AddressNotAllowedError(f"{url[:80]!r} is no address of a page: {error}.", hint="Check it.") from error


@contextmanager
def _convert_network_errors(url: str, limits: FetchLimits) -> Iterator[None]:
    """Translate network exceptions into Lamella errors."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise SourceUnreachableError(
            f"{url} did not answer in time: {limits.max_seconds:g} s for all of it, "
            f"{limits.idle_timeout:g} s without a byte.",
            hint=TRY_AGAIN_HINT,
        ) from error
    except httpcore2.UnsupportedProtocol as error:
        raise AddressNotAllowedError(f"{url[:80]} is not fetched: {error}.", hint="Check it.") from error
    except httpcore2.NetworkError as error:
        raise SourceUnreachableError(f"{url} cannot be reached: {error}.", hint=TRY_AGAIN_HINT) from error
    except (httpcore2.ProtocolError, UnicodeError, ValueError) as error:
        if _CONNECTION_CLOSED in str(error):
            raise SourceUnreachableError(f"{url} broke off before its end: {error}.", hint=TRY_AGAIN_HINT) from error
        raise SourceUnreadableError(
            f"What answers at {url} does not speak HTTP: {error}.", hint=TRY_AGAIN_HINT
        ) from error


# Pages, read by the type that the server and the first bytes state.

_OFFICE_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument"
_FORMATS_BY_MEDIA_TYPE: Mapping[str, FileFormat] = MappingProxyType(
    {
        "text/html": FileFormat.PAGE,
        "application/xhtml+xml": FileFormat.PAGE,
        "application/pdf": FileFormat.PDF,
        f"{_OFFICE_MEDIA_TYPE}.wordprocessingml.document": FileFormat.DOCUMENT,
        f"{_OFFICE_MEDIA_TYPE}.presentationml.presentation": FileFormat.SLIDES,
        f"{_OFFICE_MEDIA_TYPE}.spreadsheetml.sheet": FileFormat.SHEETS,
    }
)
_TEXT_TYPE_WORDS = ("json", "xml", "yaml", "toml", "javascript", "x-sh")
_UNSPECIFIC_TYPES = ("", "application/octet-stream", "binary/octet-stream", "text/plain")
_BINARY_SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\x1f\x8b", b"RIFF", b"\x7fELF")
_HEAD_BYTES = 1_024


def fetch_page_if_changed(
    fetcher: Fetcher, converter: Converter, url: str, *, cached: ConversionEntry | None
) -> ConversionEntry | None:
    """Fetch and convert a page; return None if the server says that the cached text is still current."""
    answer = fetcher.fetch(url, _make_conditional_headers(cached))
    if answer.is_unchanged and cached is not None and cached.text is not None:
        return None
    check_status(answer, url)
    found = _convert_response(answer, converter, url)
    return ConversionEntry(
        key=url,
        text=found.text,
        title=found.title,
        etag=answer.headers.get("etag"),
        last_modified_header=answer.headers.get("last-modified"),
    )


def _make_conditional_headers(cached: ConversionEntry | None) -> dict[str, str]:
    if cached is None or cached.text is None:
        return {}
    asked = {"If-None-Match": cached.etag, "If-Modified-Since": cached.last_modified_header}
    return {name: value for name, value in asked.items() if value}


def _convert_response(response: WebResponse, converter: Converter, url: str) -> ConvertedText:
    kind, charset = response.parse_content_type()
    form = _detect_format(kind, response.body)
    if form is not None:
        return converter.convert(form, response.body, name=url, charset=charset)
    if kind.startswith("image/"):
        raise SourceUnreadableError(f"{url} is a picture ({kind}), not a page.", hint="Attach it as a picture.")
    is_text = kind.startswith("text/") or kind in _UNSPECIFIC_TYPES or any(word in kind for word in _TEXT_TYPE_WORDS)
    if not is_text or response.body.startswith(_BINARY_SIGNATURES) or b"\x00" in response.body[:_HEAD_BYTES]:
        raise SourceUnreadableError(
            f"{url} is {kind or 'of no kind that it says'}, which has no text to read.", hint="Attach its text."
        )
    text = clean_text(decode_text(response.body, charset))
    if not text.strip():
        raise SourceUnreadableError(f"{url} is empty.", hint="Check the address.")
    return ConvertedText(title="", text=truncate_text(text, converter.limits.characters))


def _detect_format(media_type: str, body: bytes) -> FileFormat | None:
    """Return the file format of a body, or None for plain text; its first bytes outweigh the declared type."""
    head = body[:_HEAD_BYTES].lstrip().lower()
    if head.startswith(b"%pdf-"):
        return FileFormat.PDF
    if (
        media_type in _UNSPECIFIC_TYPES
        and head.startswith((b"<!doctype html", b"<html"))
        and media_type != "text/plain"
    ):
        return FileFormat.PAGE
    form = _FORMATS_BY_MEDIA_TYPE.get(media_type)
    if form is FileFormat.PAGE and body.startswith(_BINARY_SIGNATURES):
        return None
    return form


# Images.

_IMAGE_ACCEPT_HEADER = {"Accept": "image/png,image/jpeg,image/webp,image/gif,*/*;q=0.1"}


def fetch_image_entry(fetcher: Fetcher, url: str) -> ConversionEntry:
    """Return the image at an address as a cache entry with base64 text; an error if it is not an image."""
    answer = fetcher.fetch(url, _IMAGE_ACCEPT_HEADER)
    check_status(answer, url)
    parse_image(answer.body, media_type=None, name=url)
    return ConversionEntry(key=url, text=b64encode(answer.body).decode())
