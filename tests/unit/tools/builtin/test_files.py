"""Listing and reading a vault: what is there, by path, name, heading and lines, and nothing that is hidden."""

from pathlib import Path

import pytest

from lamella.attach import Tool
from lamella.errors import LamellaError
from lamella.sources.vault import Vault
from lamella.tools.builtin import MAX_SLICE_CHARS, make_list_tool, make_read_tool

BEANS = "# Beans\nfirst\n## Sowing\nIn May.\n## Harvest\nIn August.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    for path, text in {
        "garden/beans.md": BEANS,
        "garden/peas.md": "Peas.",
        "other/peas.md": "More peas.",
        "plan.canvas": '{"nodes": [{"id": "1", "type": "text", "text": "Dig", "x": 0, "y": 0}], "edges": []}',
        ".obsidian/app.json": '{"token": "secret"}',
        "private/diary.md": "secret",
        ".lamellaignore": "private/\n",
        "long.md": "x" * (MAX_SLICE_CHARS + 5),
    }.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text, encoding="utf-8")
    (tmp_path / "outside.md").write_text("secret", encoding="utf-8")
    (vault / "link.md").symlink_to(tmp_path / "outside.md")
    return vault


def run(tool: Tool, **given: object) -> str:
    assert tool.run is not None
    return str(tool.run(**given))


def test_files_are_listed_all_by_folder_and_by_pattern(root: Path) -> None:
    tool = make_list_tool(Vault(root))
    everything = ["garden/beans.md", "garden/peas.md", "long.md", "other/peas.md", "plan.canvas"]
    assert run(tool).splitlines() == ["[files: 5]", *everything]
    assert run(tool, folder="garden/").splitlines()[1:] == ["garden/beans.md", "garden/peas.md"]
    assert run(tool, pattern="PEAS*").splitlines()[1:] == ["garden/peas.md", "other/peas.md"]
    assert run(tool, start=4).splitlines() == ["[files: 4 to 5 of 5, to the end]", "plan.canvas"]
    assert run(tool, folder="nowhere") == "No file of the vault is there. The vault has 5 files in all."


@pytest.mark.parametrize("name", ["garden/beans.md", "beans", "[[beans]]", "[[Beans|the beans]]", "./garden/beans.md"])
def test_note_is_read_by_path_or_name(root: Path, name: str) -> None:
    assert run(make_read_tool(Vault(root)), path=name) == f"[garden/beans.md]\n{BEANS}"


def test_section_is_read_by_heading_or_lines(root: Path) -> None:
    tool = make_read_tool(Vault(root))
    assert run(tool, path="beans", heading="sowing") == "[garden/beans.md, below sowing]\n## Sowing\nIn May.\n"
    assert run(tool, path="beans", lines="2-3") == "[garden/beans.md, lines 2 to 3 of 7]\nfirst\n## Sowing"
    assert run(tool, path="beans", lines="4").endswith("\nIn May.")


def test_canvas_is_read_in_words_and_a_long_note_in_stretches(root: Path) -> None:
    tool = make_read_tool(Vault(root))
    assert "Dig" in run(tool, path="plan.canvas")
    assert run(tool, path="long.md").startswith(
        f"[long.md, characters 0 to {MAX_SLICE_CHARS} of {MAX_SLICE_CHARS + 5}; go on with start"
    )
    assert run(tool, path="long.md", start=MAX_SLICE_CHARS).endswith("]\nxxxxx")


@pytest.mark.parametrize(
    "given",
    [
        {"path": ".obsidian/app.json"},
        {"path": "garden/../.obsidian/app.json"},
        {"path": "private/diary.md"},
        {"path": "link.md"},
        {"path": "../outside.md"},
        {"path": "/etc/passwd"},
        {"path": "nowhere.md"},
        {"path": "peas"},
        {"path": "a\x00.md"},
        {"path": "beans", "heading": "Winter"},
        {"path": "beans", "lines": "9-12"},
        {"path": "beans", "lines": "3-1"},
        {"path": "beans", "lines": "all"},
    ],
)
def test_hidden_outside_and_missing_notes_are_not_read(root: Path, given: dict[str, str]) -> None:
    with pytest.raises((LamellaError, ValueError)) as caught:
        run(make_read_tool(Vault(root)), **given)
    assert "secret" not in str(caught.value)


def test_read_note_is_reported_to_writer(root: Path) -> None:
    seen: list[str] = []
    run(make_read_tool(Vault(root), on_read=seen.append), path="[[beans]]")
    assert seen == ["garden/beans.md"]
