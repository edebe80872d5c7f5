"""Pages whose shell commands work on the conversation that their Python makes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.contracts.console import blocks, match_ids, tells_true
from tests.contracts.places import ROOT, doc
from tests.journeys.running import spawn_in
from tests.shells import read_words


def shell_lines(page: str) -> Iterator[tuple[str, str]]:
    """Each shell command of a page, with the output shown below its block for the last command of it."""
    found = list(blocks(page))
    for index, block in enumerate(found):
        if block.language != "sh":
            continue
        below = found[index + 1] if index + 1 < len(found) else None
        told = below.body if below and below.language == "text" and not below.before.strip() else ""
        lines = block.body.splitlines()
        yield from ((line, told if line == lines[-1] else "") for line in lines)


def make_conversation(page: str, url: str) -> None:
    """What the page's Python does, in a file instead of in memory."""
    code = "\n".join(block.body for block in blocks(page) if block.language == "python")
    assert '"sqlite://"' in code
    code = code.replace('"sqlite://"', repr(url))
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def check_page(name: str, folder: Path, *, commands: int) -> None:
    """Run the commands of a page in the order they stand in; each works and prints what the page shows."""
    page = doc(name)
    url = f"sqlite:///{folder / 'chats.db'}"
    make_conversation(page, url)
    # What others had remembered would be taken up on the way.
    own = {"LAMELLA_STORE": url, "LAMELLA_MEMORY_FOLDER": str(folder / "memory")}
    environment = {**os.environ, **own, "NO_COLOR": "1"}
    lines = list(shell_lines(page))
    assert len(lines) == commands
    ids: dict[str, str] = {}
    for shown, told in lines:
        line = "".join(ids.get(word, word) for word in re.split(r"(\b[0-9a-f]{16}\b)", shown))
        if not line.startswith("lamella "):
            subprocess.run(["bash", "-c", line], cwd=folder, check=True)
            continue
        done = spawn_in(environment, *read_words(line, folder=folder), folder=folder)
        assert done.exit == 0, f"{line}: {done.err}"
        assert not told or tells_true(told, done.out), f"{line} prints:\n{done.out}"
        ids |= match_ids(told, done.out)
