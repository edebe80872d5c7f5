"""The page at ``/``: its files, their headers, and the browser that ``lamella serve --open`` starts."""

import gzip
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.server.processes import COMMAND
from tests.server.running import RunningServer, running
from tests.waiting import HANG_SECONDS

from lamella.server.page import PAGE_POLICY, load_static_files, make_static_file
from lamella.testing import ScriptedProvider


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that needs tokens."""
    rules = {"tokens": str(tmp_path_factory.mktemp("tokens") / "tokens.json"), "hosts": ["chats.example"], "rate": 2}
    with running("memory:", ScriptedProvider(), serve=rules) as one:
        yield one


SERVE_OPEN = [
    *COMMAND,
    *["serve", "--open", "--port", "0", "--store", "memory:", "--model", "scripted:examples/replies.json"],
]


def test_page_is_served_without_token_or_rate_limit(guarded: RunningServer) -> None:
    for _ in range(4):
        answer = guarded.client.get("/")
        assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html;charset=utf-8"
    assert answer.headers["content-security-policy"] == PAGE_POLICY
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in PAGE_POLICY
    assert guarded.client.head("/").status_code == 200
    assert guarded.client.get("/v1/conversations").status_code == 401


def test_every_file_of_the_page_is_served_with_its_type(guarded: RunningServer) -> None:
    for path, file in load_static_files().items():
        answer = guarded.client.get(path)
        assert (answer.status_code, answer.content) == (200, file.content)
        assert answer.headers["content-type"] != "application/octet-stream", path


def test_index_names_only_files_that_exist_and_has_no_inline_script_or_style() -> None:
    page = load_static_files()["/"].content.decode()
    named = re.findall(r'(?:src|href)="(/[^"]*)"', page)
    assert named
    assert set(named) <= {*load_static_files(), "/openapi.json"}
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)


def test_link_from_another_site_opens_the_page(guarded: RunningServer) -> None:
    assert guarded.client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200
    assert guarded.client.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_unchanged_file_is_not_sent_again(guarded: RunningServer) -> None:
    etag = guarded.client.get("/").headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = guarded.client.get("/", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
        assert answer.headers["content-security-policy"] == PAGE_POLICY
    assert guarded.client.get("/", headers={"If-None-Match": '"other"'}).status_code == 200


def test_large_file_is_compressed_and_hashed_asset_is_cached_for_good() -> None:
    script = b"export const answer = 42;\n" * 100
    hashed = make_static_file("/assets/index-B1x_z9Qk.js", script)
    assert hashed.cache_control == "public,max-age=31536000,immutable"
    assert hashed.compressed is not None
    assert gzip.decompress(hashed.compressed) == script
    assert hashed.media_type == "text/javascript;charset=utf-8"
    assert make_static_file("/index.html", b"short").compressed is None
    assert make_static_file("/icon.svg", b"<svg/>").cache_control == "no-cache"


def test_writing_to_the_page_is_not_possible(guarded: RunningServer) -> None:
    assert guarded.client.post("/", json={}).status_code == 401


def test_serve_open_starts_the_browser_at_the_welcome_conversation(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "BROWSER": f"{browser} %s"}
    with subprocess.Popen(SERVE_OPEN, stderr=subprocess.PIPE, text=True, env={**os.environ, **own}) as process:
        assert process.stderr is not None
        started = json.loads(process.stderr.readline())
        lines = (json.loads(line) for line in process.stderr)
        page = next(line for line in lines if line["at"] == "page")
        try:
            assert page["opened"] is True
            assert opened.read_text() == page["address"]
            address, _, key = page["address"].partition("/#/c/")
            assert address == started["address"]
            assert httpx2.get(page["address"], timeout=HANG_SECONDS).status_code == 200
            welcome = httpx2.get(f"{address}/v1/conversations/{key}", timeout=HANG_SECONDS).json()
            assert (welcome["name"], welcome["count"]) == ("welcome", 5)
        finally:
            process.terminate()
            process.communicate(timeout=HANG_SECONDS)


def test_serve_open_without_a_browser_prints_the_address_on_a_terminal(tmp_path: Path) -> None:
    # Without programs in PATH there is no browser.
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PATH": str(tmp_path), "BROWSER": ""}
    terminal, its = os.openpty()
    try:
        with subprocess.Popen(
            SERVE_OPEN, stdout=its, stderr=subprocess.PIPE, text=True, env={**os.environ, **own}
        ) as process:
            assert process.stderr is not None
            try:
                lines = (json.loads(line) for line in process.stderr)
                page = next(line for line in lines if line["at"] == "page")
                assert page["opened"] is False
                shown = os.read(terminal, 1_000).decode()
                assert shown == f"Open this address: {page['address']}\r\n"
            finally:
                process.terminate()
                process.communicate(timeout=HANG_SECONDS)
    finally:
        os.close(terminal)
        os.close(its)
