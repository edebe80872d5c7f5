"""``cli.clipboard``: the escape code for text, and the programs that read an image."""

from pathlib import Path

import pytest

from lamella.cli.clipboard import (
    copy_to_clipboard,
    list_clipboard_programs,
    read_clipboard_image,
    terminal_accepts_clipboard,
)

PROGRAMS = [
    ("wl-paste", "WAYLAND_DISPLAY", "--no-newline --type image/png"),
    ("xclip", "DISPLAY", "-selection clipboard -target image/png -out"),
    ("pngpaste", "", "-"),
]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs, in which there are none yet."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for _, variable, _ in PROGRAMS:
        if variable:
            monkeypatch.delenv(variable, raising=False)
    return tmp_path


def install(folder: Path, name: str, *, exit_code: int = 0, output: str = '"$0 $*"') -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\nprintf %s {output}\nexit {exit_code}\n")
    program.chmod(0o755)


def test_text_is_sent_to_the_terminal_in_base64(capsys: pytest.CaptureFixture[str]) -> None:
    copy_to_clipboard("Peas \x1b[2J ü")
    assert capsys.readouterr().out == "\x1b]52;c;UGVhcyAbWzJKIMO8\x07"


def test_output_that_is_no_terminal_accepts_no_clipboard_text() -> None:
    assert not terminal_accepts_clipboard()


def test_readers_of_images_are_listed_in_order() -> None:
    assert list_clipboard_programs() == [name for name, _, _ in PROGRAMS]


@pytest.mark.parametrize(("name", "variable", "arguments"), PROGRAMS)
def test_image_is_read_with_the_program_of_the_desktop(
    programs: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, arguments: str
) -> None:
    for other, _, _ in PROGRAMS:
        install(programs, other)
    if variable:
        monkeypatch.setenv(variable, ":0")
    assert read_clipboard_image() == f"{programs}/{name} {arguments}".encode()


def test_next_program_is_tried_if_one_fails_or_finds_nothing(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":0")
    install(programs, "wl-paste", exit_code=1)
    install(programs, "xclip", output='""')
    assert read_clipboard_image() is None
    install(programs, "pngpaste")
    assert read_clipboard_image() == f"{programs}/pngpaste -".encode()


def test_no_program_reads_no_image(programs: Path) -> None:
    assert read_clipboard_image() is None
