"""Fetching from a real server on loopback, which behaves as servers do."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from tests.sites import bomb, make_trust, never, redirect, reply, site

from lamella.errors import (
    AddressNotAllowedError,
    BadInputError,
    SourceNotFoundError,
    SourceTooLargeError,
    SourceUnreachableError,
    SourceUnreadableError,
)
from lamella.sources.web import Fetcher, FetchLimits, check_status, parse_allowlist

HERE = parse_allowlist(["127.0.0.1"])
QUICK = FetchLimits(max_bytes=100_000, max_seconds=1.0, idle_timeout=0.3)


def fetcher(limits: FetchLimits = QUICK) -> Fetcher:
    return Fetcher(limits, allowlist=HERE)


def test_response_has_status_body_and_content_type() -> None:
    with site(lambda _path, _headers: reply(b"Hello", kind='Text/HTML; Charset="UTF-8"')) as here:
        answer = fetcher().fetch(f"{here.url}/a?b=c#d")
    assert (answer.status, answer.body) == (200, b"Hello")
    assert answer.parse_content_type() == ("text/html", "UTF-8")
    path, headers = here.asked[0]
    assert path == "/a?b=c"
    assert headers["host"] == f"127.0.0.1:{here.port}"
    assert headers["user-agent"].startswith("lamella")
    assert headers["accept-encoding"] == "gzip, deflate"
    assert "cookie" not in headers


def test_address_that_is_not_public_is_refused_before_anything_is_sent() -> None:
    with site(lambda _path, _headers: reply(b"secret")) as here:
        for host in ("127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"):
            with pytest.raises((AddressNotAllowedError, SourceUnreachableError)) as caught:
                Fetcher(QUICK).fetch(f"http://{host}:{here.port}/")
            assert isinstance(caught.value, AddressNotAllowedError) or "no host" in caught.value.message
    assert here.asked == []


def test_at_most_five_redirects_are_followed() -> None:
    def answer(path: str, _headers: Mapping[str, str]) -> Sequence[bytes]:
        number = int(path[1:])
        return redirect(f"/{number - 1}") if number else reply(b"There")

    with site(answer) as here:
        assert fetcher().fetch(f"{here.url}/5").body == b"There"
        with pytest.raises(SourceUnreachableError, match="more than 5 redirects"):
            fetcher().fetch(f"{here.url}/6")


@pytest.mark.parametrize(
    "target",
    [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "//192.168.0.1/",
        "file:///etc/passwd",
        "http://me:word@127.0.0.1/",
    ],
)
def test_redirect_to_forbidden_address_is_refused(target: str) -> None:
    with site(lambda _path, _headers: redirect(target)) as here, pytest.raises(AddressNotAllowedError):
        fetcher().fetch(here.url)


def test_cookies_are_not_sent_to_other_servers() -> None:
    with (
        site(lambda _path, _headers: reply(b"There")) as there,
        site(lambda path, _headers: redirect(there.url if path == "/b" else "/b")) as here,
    ):
        fetcher().fetch(f"{here.url}/a", {"Cookie": "mine=1"})
    assert [headers.get("cookie") for _, headers in (*here.asked, *there.asked)] == ["mine=1", "mine=1", None]


def test_address_that_was_checked_is_the_one_connected_to() -> None:
    """A name that answers otherwise the second time is asked once for a connection, and checked each time."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    asked: list[str] = []

    def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    moves = Fetcher(QUICK, allowlist=HERE, resolve=resolve)
    with (
        site(
            lambda path, _headers: redirect(f"http://moves.example:{here.port}/b") if path == "/a" else reply()
        ) as here,
        pytest.raises(AddressNotAllowedError, match=r"moves\.example is at 127\.0\.0\.2"),
    ):
        moves.fetch(f"http://moves.example:{here.port}/a")
    assert asked == ["moves.example", "moves.example"]
    assert here.paths == ["/a"]
    assert here.asked[0][1]["host"].startswith("moves.example")


def test_one_private_address_among_the_answers_is_enough_to_refuse() -> None:
    mixed = Fetcher(QUICK, allowlist=HERE, resolve=lambda _host, _port: ["127.0.0.1", "10.0.0.1"])
    with site(lambda _path, _headers: reply(b"x")) as here, pytest.raises(AddressNotAllowedError, match=r"10\.0\.0\.1"):
        mixed.fetch(f"http://mixed.example:{here.port}/")
    assert here.asked == []


def test_host_name_is_sent_to_resolved_address(tmp_path: Path) -> None:
    shown, trust = make_trust(tmp_path, "pages.example")
    with site(lambda _path, _headers: reply(b"Safe"), secured=shown) as here:
        named = Fetcher(QUICK, allowlist=HERE, resolve=lambda _host, _port: ["127.0.0.1"], ssl_context=trust)
        assert named.fetch(f"https://pages.example:{here.port}/").body == b"Safe"
        assert here.names == ["pages.example"]
        with pytest.raises(SourceUnreachableError, match="cannot be reached"):
            named.fetch(f"https://other.example:{here.port}/")
        with pytest.raises(SourceUnreachableError, match="cannot be reached"):
            Fetcher(QUICK, allowlist=HERE, resolve=lambda _host, _port: ["127.0.0.1"]).fetch(
                f"https://pages.example:{here.port}/"
            )


def _drip_head(_path: str, _headers: Mapping[str, str]) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(10_000):
        yield f"X-{number}: y\r\n".encode()
        Event().wait(0.05)


def _drip_body(_path: str, _headers: Mapping[str, str]) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n"
    for _ in range(9_999):
        yield b"x"
        Event().wait(0.05)


@pytest.mark.parametrize("answer", [_drip_head, _drip_body])
def test_trickling_server_is_ended_after_total_time(answer: object) -> None:
    begun = monotonic()
    with site(answer) as here, pytest.raises(SourceUnreachableError, match="did not answer in time"):  # type: ignore[arg-type]
        fetcher().fetch(here.url)
    assert monotonic() - begun < 4


def test_silent_server_times_out() -> None:
    begun = monotonic()
    with site(lambda _path, _headers: never(here.ending)) as here:
        with pytest.raises(SourceUnreachableError, match="did not answer in time"):
            fetcher().fetch(here.url)
        assert monotonic() - begun < 2


def test_unanswered_name_lookup_times_out() -> None:
    with site(lambda _path, _headers: reply()) as here:
        slow = Fetcher(QUICK, allowlist=HERE, resolve=lambda _host, _port: [str(here.ending.wait(5))])
        with pytest.raises(SourceUnreachableError, match="did not answer in time"):
            slow.fetch(f"http://slow.example:{here.port}/")


def test_endless_response_is_cut_at_limit() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    endless = [head, *[b"x" * 10_000] * 50]
    with site(lambda _path, _headers: endless) as here, pytest.raises(SourceTooLargeError, match="more than 100,000"):
        fetcher().fetch(here.url)
    with site(lambda _path, _headers: repeat(head)) as here, pytest.raises(BadInputError):
        fetcher().fetch(here.url)


def test_declared_size_above_limit_is_refused() -> None:
    said = reply(b"x", headers={"Content-Length": "5000000000"})
    with site(lambda _path, _headers: said) as here, pytest.raises(SourceTooLargeError, match="5,000,000,000"):
        fetcher().fetch(here.url)


def test_response_shorter_than_declared_is_reported() -> None:
    lies = reply(b"x" * 10, headers={"Content-Length": "500"})
    with (
        site(lambda _path, _headers: lies) as here,
        pytest.raises(SourceUnreachableError, match="broke off before its end"),
    ):
        fetcher().fetch(here.url)


@pytest.mark.parametrize("junk", [b"SSH-2.0-nothing\r\n\r\n", b"\x00\x01\x02\x03" * 100, b""])
def test_non_http_response_is_reported(junk: bytes) -> None:
    with site(lambda _path, _headers: [junk]) as here, pytest.raises(BadInputError):
        fetcher().fetch(here.url)


def test_compressed_response_counts_unpacked_size() -> None:
    packed = bomb(50_000_000)
    assert len(packed) < 100_000
    said = reply(packed, headers={"Content-Encoding": "gzip"})
    roomy = FetchLimits(max_bytes=1_000_000, max_seconds=10, idle_timeout=5)
    with site(lambda _path, _headers: said) as here, pytest.raises(SourceTooLargeError, match="more than 1,000,000"):
        fetcher(roomy).fetch(here.url)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", bomb(5_000)),
        ("deflate", zlib.compress(bytes(5_000))),
        ("deflate", zlib.compress(bytes(5_000))[2:-4]),
        ("identity", bytes(5_000)),
    ],
)
def test_packed_answers_are_unpacked(encoding: str, packed: bytes) -> None:
    with site(lambda _path, _headers: reply(packed, headers={"Content-Encoding": encoding})) as here:
        assert fetcher().fetch(here.url).body == bytes(5_000)


@pytest.mark.parametrize(
    ("encoding", "body"), [("br", b"x"), ("gzip, gzip", b"x"), ("gzip", b"no gzip at all"), ("deflate", b"\xff\xff")]
)
def test_unrequested_or_broken_encoding_is_reported(encoding: str, body: bytes) -> None:
    packed = reply(body, headers={"Content-Encoding": encoding})
    with site(lambda _path, _headers: packed) as here, pytest.raises(SourceUnreadableError):
        fetcher().fetch(here.url)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("404 Not Found", SourceNotFoundError),
        ("410 Gone", SourceNotFoundError),
        ("403 Forbidden", SourceUnreadableError),
        ("500 Oh", SourceUnreachableError),
        ("429 Slow", SourceUnreachableError),
    ],
)
def test_error_status_is_reported(status: str, error: type[BadInputError]) -> None:
    with site(lambda _path, _headers: reply(b"x", status=status)) as here:
        answer = fetcher().fetch(here.url)
    with pytest.raises(error, match=status[:3]):
        check_status(answer, here.url)


def test_unreachable_host_is_reported() -> None:
    with site(lambda _path, _headers: reply()) as here:
        gone = here.url
    with pytest.raises(SourceUnreachableError, match="cannot be reached"):
        fetcher().fetch(gone)
    nowhere = Fetcher(QUICK, resolve=_fail)
    with pytest.raises(SourceUnreachableError, match=r"no host nowhere\.example"):
        nowhere.fetch("http://nowhere.example/")


def _fail(_host: str, _port: int) -> Sequence[str]:
    raise OSError("unknown")
