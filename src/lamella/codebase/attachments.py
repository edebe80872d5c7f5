"""Code selections as attachments or artifacts of a turn, and code that clients send as JSON.

``attach_code`` returns the attachments of a selection, and ``VaultCodeReader`` selects from folders of a vault.
``parse_files_from_json`` parses files that a client sends: an object of texts by path, or a list of objects with a path and
a text.
"""

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lamella.attach import DEFAULT_CODE_BUDGET, Attachment, Code, Codebase
from lamella.codebase.selection import code_path, format_selection_link, make_selection_artifacts
from lamella.core.artifacts.model import Artifact, UnresolvedAttachment
from lamella.core.values import replace
from lamella.errors import SourceNotFoundError, SourceUnreadableError
from lamella.files import read_regular_file, read_stream
from lamella.ports import CodeForm, CodeSelection
from lamella.sources.obsidian import read_ignore_rules
from lamella.sources.vault import Vault


class FolderSelector(Protocol):
    """Selects code from a folder, called ``root`` in the result; ``is_hidden`` names paths that are never read."""

    def __call__(
        self,
        folder: Path,
        question: str,
        *,
        root: str,
        budget: int,
        recent_paths: Collection[str],
        is_hidden: Callable[[str], bool],
    ) -> CodeSelection: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedCode(Code):
    """A source file that was attached as part of a codebase, and is detached with it."""

    codebase: str

    def to_artifact(self) -> Artifact | UnresolvedAttachment:
        # ``slots=True`` makes a second class object, so ``super()`` without arguments would refer to the wrong one.
        made = super(SelectedCode, self).to_artifact()
        return (
            made
            if isinstance(made, UnresolvedAttachment)
            else replace(made, source=replace(made.source, via=self.codebase))
        )


def selection_to_attachments(selection: CodeSelection) -> list[Attachment]:
    """Return the attachments of a selection: its overview, and its files in full."""
    root = selection.root or "."
    overview = Codebase(path=root, question=selection.question, text=selection.overview, budget=selection.budget)
    full = (one for one in selection.files if one.form is CodeForm.FULL)
    return [
        overview,
        *(
            SelectedCode(path=code_path(root, one.path), text=one.text, codebase=format_selection_link(root))
            for one in full
        ),
    ]


class VaultCodeReader:
    """Selects code from folders of a vault, by the vault's ignore rules in addition to git's."""

    def __init__(self, vault: Path, select: FolderSelector) -> None:
        self._vault, self._select = vault, select

    def select_files(
        self, attachment: UnresolvedAttachment, *, question: str, recent_paths: Collection[str]
    ) -> tuple[Sequence[Artifact], Sequence[str]]:
        folder = Vault(self._vault).locate(attachment.name)
        root = _folder_label(attachment.name)
        rules = read_ignore_rules(self._vault)
        start = "" if root == "." else f"{root}/"
        known = {path.removeprefix(start) for path in recent_paths if path.startswith(start)}
        selection = self._select(
            folder,
            question,
            root=root,
            budget=attachment.max_tokens or DEFAULT_CODE_BUDGET,
            recent_paths=known,
            is_hidden=lambda path: rules.is_hidden(start + path),
        )
        return make_selection_artifacts(selection, policy=attachment.policy, read=True), selection.warnings


def _folder_label(name: str) -> str:
    return "/".join(part for part in name.split("/") if part not in ("", ".")) or "."


# Files and requests as JSON.

STDIN = "-"
_FILES_HINT = 'Write {"src/main.py": "its text"}, or [{"path": "src/main.py", "text": "its text"}].'
_TEXT_KEYS = ("text", "content")
# Enough for any repository that fits into one message.
_MAX_INPUT_BYTES = 200_000_000


def read_files_from_json(file: Path) -> dict[str, str]:
    """Return the files in a JSON file or on standard input."""
    return parse_files_from_json(_read(file, hint="Name a JSON file with the files."), _file_label(file))


def read_json_request(file: Path) -> object:
    """Return the request in a JSON file or on standard input."""
    hint = 'Write a request as JSON, such as {"prompt": "…", "messages": []}.'
    data = _read(file, hint=hint)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceUnreadableError(f"{_file_label(file)} is not JSON: {error}.", hint=hint) from error


def _file_label(file: Path) -> str:
    return "standard input" if str(file) == STDIN else str(file)


def _read(file: Path, *, hint: str) -> bytes:
    try:
        if str(file) == STDIN:
            return read_stream(sys.stdin.buffer, limit=_MAX_INPUT_BYTES, name=_file_label(file))
        return read_regular_file(file, limit=_MAX_INPUT_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SourceNotFoundError(f"{_file_label(file)} cannot be read: {why}.", hint=hint) from error


def parse_files_from_json(data: bytes, name: str) -> dict[str, str]:
    """Return the files in a JSON text. If a path occurs twice, the last one wins."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceUnreadableError(f"{name} is not JSON: {error}.", hint=_FILES_HINT) from error
    return dict(_iter_files(found, name))


def _iter_files(found: object, name: str) -> Iterator[tuple[str, str]]:
    rows = (
        found.items() if isinstance(found, Mapping) else map(_parse_file_row, found) if isinstance(found, list) else ()
    )
    if not isinstance(found, Mapping | list):
        raise SourceUnreadableError(f"{name} holds no files.", hint=_FILES_HINT)
    for number, row in enumerate(rows, start=1):
        path, text = row
        if not isinstance(path, str) or not isinstance(text, str):
            raise SourceUnreadableError(f"File {number:,} in {name} has no path or no text.", hint=_FILES_HINT)
        yield path, text


def _parse_file_row(row: Any) -> tuple[object, object]:  # noqa: ANN401 - any JSON value
    if not isinstance(row, Mapping):
        return None, None
    return row.get("path"), next((row[key] for key in _TEXT_KEYS if key in row), None)
