"""Reading the content blocks of a prompt."""

import asyncio
from pathlib import Path

import pytest
from acp.helpers import ContentBlock, resource_link_block, text_block
from hypothesis import given
from hypothesis import strategies as st

from lamella.attach import Note
from lamella.cli.errors import SlashCommandHints
from lamella.integrations.acp.content import FileLocation, PromptContent, PromptReader, parse_file_uri, path_in_folder
from lamella.wiring import open_attachment_resolver

NAMES = st.text(st.characters(blacklist_characters="/\0\\", blacklist_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda name: name not in (".", "..")
)


@given(name=NAMES)
def test_address_of_any_file_leads_back_to_it(name: str) -> None:
    path = Path("/vault") / name
    assert parse_file_uri(path.as_uri()) == FileLocation(path=path)


@pytest.mark.parametrize(
    ("fragment", "lines"),
    [
        ("", None),
        ("L3", (3, 3)),
        ("L3-5", (3, 5)),
        ("L3:5", (3, 5)),
        ("L3-L5", (3, 5)),
        ("5-3", (5, 5)),
        ("L0", None),
        ("heading", None),
    ],
)
def test_fragment_of_address_names_lines(fragment: str, lines: tuple[int, int] | None) -> None:
    for address in ("file:///vault/a.md", "/vault/a.md"):
        assert parse_file_uri(f"{address}#{fragment}") == FileLocation(path=Path("/vault/a.md"), lines=lines)


@pytest.mark.parametrize("uri", ["https://example.org/a.md", "zed:///thread/1", "a.md", "", "obsidian://open?file=a"])
def test_other_addresses_name_no_file(uri: str) -> None:
    assert parse_file_uri(uri) is None


@pytest.mark.parametrize(
    ("path", "found"), [("a.md", "a.md"), ("b/../a.md", "a.md"), ("../a.md", None), ("link.md", "link.md")]
)
def test_path_is_relative_to_folder_it_is_in(tmp_path: Path, path: str, found: str | None) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "link.md").symlink_to(tmp_path / "elsewhere.md")
    assert path_in_folder(folder / path, folder) == found


def read(folder: Path, *blocks: ContentBlock, buffers: dict[str, str] | None = None) -> PromptContent:
    async def read_file(path: str) -> str | None:
        return (buffers or {}).get(path)

    files = open_attachment_resolver(folder)
    reader = PromptReader(folder, files, None if buffers is None else read_file, SlashCommandHints())
    return asyncio.run(reader.read(blocks))


def test_file_that_is_named_twice_is_attached_once(tmp_path: Path) -> None:
    note = tmp_path / "a.md"
    note.write_text("# A\n", encoding="utf-8")
    link = resource_link_block("a", note.as_uri())
    content = read(tmp_path, text_block("Compare "), link, text_block(" and @a.md"), link)
    assert content.text == "Compare `a.md` and @a.md"
    assert content.attachments == [Note(path="a.md")]


def test_link_outside_of_folder_gives_notice_in_place_of_text(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    secret = tmp_path / "secret.md"
    secret.write_text("secret", encoding="utf-8")
    content = read(folder, resource_link_block("secret", secret.as_uri()), text_block("What is it?"))
    assert content.attachments == []
    assert content.notices == [f"{secret} is not attached: it is outside of {folder}, or cannot be read."]
    shown = read(folder, resource_link_block("secret", secret.as_uri()), buffers={str(secret): "shown"})
    assert shown.attachments == [Note(path=secret.as_posix(), text="shown")]


def test_name_that_is_no_file_gives_notice_with_reason(tmp_path: Path) -> None:
    content = read(tmp_path, text_block("What says [[nothing]]?"))
    assert content.text == "What says [[nothing]]?"
    assert content.attachments == []
    assert content.notices[0].startswith("[[nothing]] is sent as plain text.")


def test_lines_of_link_that_leads_out_of_folder_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    content = read(folder, resource_link_block("link", f"{(folder / 'link.md').as_uri()}#L1"))
    assert content.attachments == []
    assert len(content.notices) == 1
