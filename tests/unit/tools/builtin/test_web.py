"""The web as tools: pages from public addresses, and a search engine whose answers are only read."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from tests.sites import reply, site

from lamella.errors import LamellaError
from lamella.sources.web import AddressAllowlist, Fetcher
from lamella.tools.builtin import (
    make_fetch_tool,
    make_web_search_tool,
    parse_search_results,
    search_endpoint,
    search_searx,
)
from lamella.wiring.services import read_services
from lamella.wiring.sources import open_document_converter

HOME = Fetcher(allowlist=AddressAllowlist(hosts=frozenset({"127.0.0.1"})))
FOUND = {"results": [{"title": "Tides\n today", "url": "https://sea.example/tides", "content": "High at  noon."}]}


def fetch(tmp_path: Path, url: str, **settings: object) -> str:
    services = read_services({"conversions": str(tmp_path / "cache"), **settings})
    tool = make_fetch_tool(lambda: open_document_converter(services))
    assert tool.run is not None
    return str(tool.run(url=url))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://10.0.0.7/",
        "file:///etc/passwd",
        "http://user:word@example.org/",
        "javascript:alert(1)",
        "",
    ],
)
def test_private_and_invalid_addresses_are_not_fetched(tmp_path: Path, url: str) -> None:
    with pytest.raises(LamellaError):
        fetch(tmp_path, url)


def test_page_is_given_as_text_with_address(tmp_path: Path) -> None:
    with site(lambda _path, _headers: reply(b"High tide at noon.", kind="text/plain")) as there:
        found = fetch(tmp_path, f"{there.url}/tides", private_addresses="127.0.0.1")
    assert found == f"[{there.url}/tides]\nHigh tide at noon."


def test_search_engine_is_queried_for_json_results() -> None:
    def serve_search(_path: str, _headers: Mapping[str, str]) -> list[bytes]:
        return reply(json.dumps(FOUND).encode(), kind="application/json")

    with site(serve_search) as there:
        tool = make_web_search_tool(partial(search_searx, HOME, there.url))
        assert tool.run is not None
        told = str(tool.run(query="tides & moon"))
    assert there.paths == ["/search?q=tides+%26+moon&format=json"]
    assert told == "[1] Tides today\nhttps://sea.example/tides\nHigh at noon."


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://Search.example", "https://search.example/search"),
        ("https://search.example/", "https://search.example/search"),
        ("http://127.0.0.1:8080/searx/search", "http://127.0.0.1:8080/searx/search"),
    ],
)
def test_search_endpoint_accepts_address_with_or_without_path(address: str, place: str) -> None:
    assert search_endpoint(address) == place


@pytest.mark.parametrize("address", ["", "search.example", "ftp://x/", "https://u:p@x/", "https://x/?q=1", "https://"])
def test_invalid_search_address_is_reported(address: str) -> None:
    with pytest.raises(LamellaError, match="web_search is"):
        search_endpoint(address)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"{}", b'{"results": 3}', b"null", b"[" * 100_000, b"\xff", b'{"results": {}}']
)
def test_response_without_results_is_reported(body: bytes) -> None:
    with pytest.raises(LamellaError, match="does not answer a search in JSON"):
        parse_search_results(body, "https://search.example")


def test_malformed_results_are_skipped_and_long_ones_cut() -> None:
    strange = [3, {"url": 4}, {"title": "no address"}, {"url": "javascript:x"}, {"url": "https://x", "title": None}]
    long = {"url": "https://y", "title": "t" * 9_000, "content": ["c"] * 9_000}
    found = parse_search_results(json.dumps({"results": [*strange, long]}).encode(), "https://search.example")
    assert [(title[:9], url, len(words)) for title, url, words in found] == [
        ("https://x", "https://x", 0),
        ("ttttttttt", "https://y", 500),
    ]


@pytest.mark.parametrize("status", ["403 Forbidden", "500 Oops", "404 Not Found"])
def test_search_error_omits_query(status: str) -> None:
    with site(lambda _path, _headers: reply(b"", status=status)) as there, pytest.raises(LamellaError) as caught:
        search_searx(HOME, there.url, "my secret wish")
    assert "secret" not in caught.value.message


def test_search_without_results_says_so() -> None:
    tool = make_web_search_tool(lambda _query: [])
    assert tool.run is not None
    assert "Nothing found on the web for 'tides'" in str(tool.run(query="tides"))
    with pytest.raises(ValueError, match="blank"):
        tool.run(query=" ")


def test_search_engine_gives_no_access_to_private_network() -> None:
    def redirect(_path: str, _headers: Mapping[str, str]) -> list[bytes]:
        return reply(status="302 Found", headers={"Location": "http://localhost:1/inner"})

    with site(redirect) as there, pytest.raises(LamellaError):
        search_searx(HOME, there.url, "tides")
