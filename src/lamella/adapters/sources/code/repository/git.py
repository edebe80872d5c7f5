"""Git: what it knows of a folder. A repository may be anybody's, so that nothing that it configures is run."""

import os
import re
import subprocess
from pathlib import Path

# What a repository's own configuration could have run or fetched while its files are listed and its log is read.
_CALM = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never", "-c", "core.quotePath=false", "-c", "log.mailmap=false", "--no-pager"),
)
_PATIENCE = 60
# What git says, and passes over, where it may not look into a folder.
_CLOSED = re.compile(rb"^warning: could not open directory '(.*)': (.*)$", re.MULTILINE)


class GitFolder:
    """A folder as git sees it. Whatever git does not answer is none, and is then found out without it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def ask(self, *words: str) -> bytes | None:
        """What git answers; none where it is not installed, refuses the folder or takes too long."""
        answer = self._run(*words)
        return None if answer is None else answer[0]

    def _run(self, *words: str) -> tuple[bytes, bytes] | None:
        """What git answers, and what it says beside that."""
        try:
            done = subprocess.run(
                ["git", *_CALM, *words],
                cwd=self._root,
                env=_make_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
        return (done.stdout, done.stderr) if done.returncode == 0 else None

    def holds(self) -> bool:
        """Whether the folder is in a working tree, and not in a part of it that is ignored there."""
        if self.ask("rev-parse", "--is-inside-work-tree") != b"true\n":
            return False
        # Who names a folder that the repository around it ignores, such as an installed package, means what is in it.
        return self.ask("check-ignore", "-q", "--", ".") is None

    def list_paths(self, *words: str) -> list[bytes] | None:
        """Paths relative to the folder."""
        answer = self.ask("ls-files", "-z", *words)
        return None if answer is None else [path for path in answer.split(b"\0") if path]

    def list_files(self) -> tuple[list[bytes], list[tuple[bytes, str]]] | None:
        """Paths of files that no rule ignores; and folders that cannot be looked into, with why."""
        answer = self._run("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if answer is None:
            return None
        listed, said = answer
        closed = [(folder, why.decode("utf-8", "replace")) for folder, why in _CLOSED.findall(said)]
        if closed:
            # Git names them from the root of the repository, files from here.
            above = (self.ask("rev-parse", "--show-prefix") or b"").removesuffix(b"\n")
            closed = [(folder.removeprefix(above), why) for folder, why in closed if folder.startswith(above)]
        return sorted(set(filter(None, listed.split(b"\0")))), closed

    def find_head(self) -> str:
        """The commit that the folder stands at; nothing where there is none yet."""
        answer = self.ask("rev-parse", "--verify", "-q", "HEAD")
        return "" if answer is None else answer.decode("ascii", "replace").strip()

    def read_log(self, *, most: int) -> bytes | None:
        """The last commits, newest first: a record each of its hash and subject, then the paths it touched."""
        form = "--format=%x01%H %s"
        options = ("--name-only", "--no-renames", "--relative", "--no-merges", "--no-ext-diff", "--no-textconv", "-z")
        return self.ask("log", form, *options, f"--max-count={most}", "HEAD", "--", ".")


def _make_environment() -> dict[str, str]:
    """The environment without what points git elsewhere; the folder alone says which repository is meant."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
