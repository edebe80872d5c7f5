"""Run Pandoc in a folder of its own, with limits on time and memory."""

import json
import os
import subprocess
from pathlib import Path

from lamella.errors import DocumentError, ExtraNotInstalledError, install_hint

MAX_SECONDS = 120
PAPER_EXTRA = "paper"
_MEMORY_OPTIONS = ("+RTS", "-M1024M", "-RTS")


def find_pandoc() -> str:
    """Return the path of the Pandoc that comes with the extra ``paper``; raise ``ExtraNotInstalledError`` without it."""
    try:
        import pypandoc  # type: ignore[import-untyped]  # imported here: only exports need it
    except ImportError as error:
        raise ExtraNotInstalledError(
            "The package pypandoc-binary is not installed.", hint=install_hint(PAPER_EXTRA)
        ) from error
    path: str = pypandoc.get_pandoc_path()
    return path


def run_pandoc(arguments: list[str], *, text: bytes, folder: Path, may_read_files: bool = False) -> bytes:
    """Run Pandoc in a folder with a text as input, and return its output.

    Unless ``may_read_files``, Pandoc reads no file that the arguments do not name and opens no connection.
    """
    command = [find_pandoc(), *_MEMORY_OPTIONS, *([] if may_read_files else ["--sandbox"]), *arguments]
    # Pandoc gets no configuration of the user, so that the same work gives the same document everywhere.
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, cwd=folder, timeout=MAX_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DocumentError(
            f"Pandoc did not finish within {MAX_SECONDS} seconds.", hint="Shorten the work, or leave out its figures."
        ) from error
    if done.returncode:
        reason = " ".join(done.stderr.decode("utf-8", "replace").split())[:500]
        raise DocumentError(f"Pandoc cannot write the document: {reason}", hint="Check the template and the style.")
    return done.stdout


def read_markdown(text: str, folder: Path) -> dict[str, object]:
    """Return the syntax tree of a Markdown text.

    Raw HTML, LaTeX and Typst are plain text: the text may come from a model, and could read files otherwise.
    """
    tree: dict[str, object] = json.loads(
        run_pandoc(["--from", _MARKDOWN, "--to", "json"], text=text.encode(), folder=folder)
    )
    return tree


_MARKDOWN = "markdown" + "".join(
    f"-{extension}"
    for extension in (
        "raw_html",
        "raw_tex",
        "raw_attribute",
        "latex_macros",
        "fenced_divs",
        "native_divs",
        "native_spans",
        "markdown_in_html_blocks",
        "yaml_metadata_block",
        "pandoc_title_block",
        "auto_identifiers",
    )
)
