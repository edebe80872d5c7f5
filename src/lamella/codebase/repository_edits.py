"""Files of a repository that a text names, and changes of files that an answer offers.

``RepositoryEditor`` reads the files that a traceback or a question names, plans the changes in an answer, writes them
after consent, and undoes them. It never reads or changes a file outside the repository, a link, a file that git or
``.lamellaignore`` ignores, or a file that looks like a secret.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from lamella.codebase.repository import (
    IGNORED_REASON,
    MAX_FILE_BYTES,
    GitFolder,
    decode_code_file,
    excluded_path_reason,
)
from lamella.core.text.code_edits import CodeEdit, apply_code_edits, parse_code_edits
from lamella.core.text.content import encode_text, hash_bytes
from lamella.errors import LamellaError, SourceTooLargeError, SourceUnreadableError, WriteDeniedError
from lamella.files import read_regular_file, replace_file, write_new_file
from lamella.ports import FileChange, SecretScanner
from lamella.sources.obsidian import IGNORE_FILE, read_ignore_rules
from lamella.vault_writer import BackupFolder, NoteChangeRecord, render_diff

# The end of a longer text is searched for names: that is where a traceback has them.
_MAX_SEARCHED_CHARS = 200_000
_MAX_NAMES = 400
_PYTHON_FRAME = re.compile(r'File "(?P<path>[^"\n]{1,500})", line (?P<line>\d{1,7})')
# A word that may be a path, with the line number that compilers and test runners write after it: main.c:12:5,
# index.ts(12,5), or "src/a.py", line 12.
_WORD = re.compile(r"""(?P<path>[^\s"'`()\[\]{}<>:,;=|*?]{1,500})(?:[:(](?P<line>\d{1,7})\b)?""")
_QUOTED = re.compile(r"""["'`](?P<path>[^"'`\n]{1,300})["'`]""")
_TRAILING_DOTS = "."
# Lines around a named line that are shown if the whole file is too long.
_LINES_AROUND = 60
_LEAVES_REPOSITORY = "it is outside the repository"
_NOT_FOUND = "there is no such file in the repository"
_REFUSAL_HINT = "Nothing was written. Ask again, or make the change by hand."


class MentionedFile(NamedTuple):
    """A file of the repository that a text names, or lines of it.

    ``lines`` is None for the whole file. ``reason`` says why the file is not read; ``text`` is then empty.
    """

    path: str
    text: str = ""
    lines: tuple[int, int] | None = None
    reason: str = ""


class _UndoableChange(NamedTuple):
    """The record of a change that was not undone yet, and the folder of its backup."""

    backup_folder: Path
    record: NoteChangeRecord


class RepositoryEditor:
    """Reads and changes files of the repository that contains a folder; without git, of the folder itself."""

    def __init__(
        self,
        folder: Path,
        *,
        secrets: SecretScanner,
        open_backups: Callable[[Path], BackupFolder],
        now: Callable[[], datetime],
    ) -> None:
        self.folder = folder.resolve()
        self._secrets, self._now = secrets, now
        top = GitFolder(self.folder).run_git("rev-parse", "--show-toplevel")
        self._has_git = bool(top)
        self.root = Path(os.fsdecode(top.removesuffix(b"\n"))).resolve() if top else self.folder
        self._backups = open_backups(self.root)
        self._is_hidden = read_ignore_rules(self.root).is_hidden

    # Reading.

    def read_named_files(
        self, text: str, *, budget: int, count_tokens: Callable[[str], int], skip: Sequence[str] = ()
    ) -> list[MentionedFile]:
        """Return the files that a text names, within a token budget, those of a traceback's last frames first.

        A file that is too long is shown around the lines that the text names. Files that may not be read are returned
        with the reason. ``skip`` has paths that are not needed, because they are attached already.
        """
        found: dict[str, list[int]] = {}
        for name, line in _iter_path_candidates(text[-_MAX_SEARCHED_CHARS:]):
            path = self._find_file_by_name(name)
            if path is not None and path not in skip:
                found.setdefault(path, []).extend(() if line is None else (line,))
        files: list[MentionedFile] = []
        for path, lines in found.items():
            named = self._read_named(path, lines, budget=budget, count_tokens=count_tokens)
            budget -= count_tokens(named.text) if named.text else 0
            files.append(named)
        return files

    def _read_named(
        self, path: str, lines: Sequence[int], *, budget: int, count_tokens: Callable[[str], int]
    ) -> MentionedFile:
        try:
            text = self._read_text(path)[1]
        except LamellaError as error:
            return MentionedFile(path, reason=error.message.removeprefix(f"{path} is not read: ").rstrip("."))
        tokens = count_tokens(text)
        if tokens <= budget:
            return MentionedFile(path, text)
        if lines:
            whole = text.split("\n")
            middle = min(lines[0], len(whole))
            first, last = max(1, middle - _LINES_AROUND), min(len(whole), middle + _LINES_AROUND)
            part = "\n".join(whole[first - 1 : last]) + "\n"
            if count_tokens(part) <= budget:
                return MentionedFile(path, part, (first, last))
        return MentionedFile(path, reason=f"it has {tokens:,} tokens, and {budget:,} are left for files")

    def _find_file_by_name(self, name: str) -> str | None:
        """Return the path of the file that a name means, or None if it means none.

        Tracebacks from a container or another machine begin with other folders, so the end of a path is enough if
        only one file ends like that.
        """
        if not name.strip() or "\0" in name or len(name) > MAX_FILE_BYTES:
            return None
        for base in (self.folder, self.root):
            path = Path(os.path.normpath(base / name))
            # The text may name the repository by a path that leads through a link.
            for one in (path, Path(os.path.realpath(path.parent)) / path.name):
                if one.is_relative_to(self.root) and one != self.root and _is_file_or_link(one):
                    return one.relative_to(self.root).as_posix()
        if _is_file_or_link(self.folder / name):
            return None
        parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
        fewest = 2 if len(parts) > 1 else 1
        for count in range(len(parts), fewest - 1, -1):
            matches = self._git_paths_by_ending.get("/".join(parts[-count:]) if count > 1 else parts[-1], ())
            if len(matches) == 1 and (count > 1 or "." in parts[-1]):
                return matches[0]
        return None

    @cached_property
    def _paths_listed_by_git(self) -> frozenset[str] | None:
        """The paths that git lists: tracked files, and new files that no rule ignores. None without git."""
        found = GitFolder(self.root).list_files() if self._has_git else None
        return None if found is None else frozenset(os.fsdecode(path) for path in found[0])

    @cached_property
    def _git_paths_by_ending(self) -> dict[str, list[str]]:
        """The listed paths by each of their endings: by name, by folder and name, and so on."""
        endings: dict[str, list[str]] = {}
        for path in self._paths_listed_by_git or ():
            parts = path.split("/")
            for count in range(1, len(parts) + 1):
                endings.setdefault("/".join(parts[-count:]), []).append(path)
        return endings

    def _read_text(self, path: str) -> tuple[str, str]:
        """Return the exact text of a file, and its text as it is attached.

        Raises ``SourceUnreadableError`` with the reason if it may not be read.
        """
        reason = self._exclusion_reason(path)
        if reason is not None:
            raise SourceUnreadableError(f"{path} is not read: {reason}.", hint=_REFUSAL_HINT)
        try:
            data = read_regular_file(self.root / path, limit=MAX_FILE_BYTES, name=path)
        except (OSError, SourceTooLargeError) as error:
            reason = getattr(error, "strerror", None) or f"it has more than {MAX_FILE_BYTES:,} bytes"
            raise SourceUnreadableError(f"{path} is not read: {reason}.", hint=_REFUSAL_HINT) from error
        text, fault = decode_code_file(data, anchors=self._secrets.anchors, find_secrets=self._secrets.find_secrets)
        if fault is not None:
            raise SourceUnreadableError(f"{path} is not read: {fault}.", hint=_REFUSAL_HINT)
        return data.decode(), text.replace("\r\n", "\n")

    def _exclusion_reason(self, path: str) -> str | None:
        """Return why a file may not be read or changed, or None."""
        reason = excluded_path_reason(path)
        if reason is not None:
            return reason
        if self._is_hidden(path):
            return f"{IGNORE_FILE} leaves it out"
        # Links are found before git is asked: git lists a link, but nothing below a linked folder.
        reason = self._special_file_reason(path)
        if reason is not None:
            return reason
        return (
            IGNORED_REASON if self._paths_listed_by_git is not None and path not in self._paths_listed_by_git else None
        )

    def _special_file_reason(self, path: str) -> str | None:
        """Return why a path does not lead to a plain file of the repository, or None."""
        place, mode = self.root, stat.S_IFDIR
        for part in PurePosixPath(path).parts:
            place /= part
            try:
                mode = place.lstat().st_mode
            except (OSError, ValueError):
                return _NOT_FOUND
            if stat.S_ISLNK(mode):
                return "it leads through a link"
        return None if stat.S_ISREG(mode) else "it is not a plain file"

    # Changing.

    def plan_changes(self, answer: str) -> list[FileChange]:
        """Return the changes that an answer offers, one for each file; empty if it offers none.

        Raises ``WriteDeniedError`` if one of them does not apply exactly or is not allowed. Then none is written.
        """
        by_path: dict[str, list[CodeEdit]] = {}
        for edit in parse_code_edits(answer):
            by_path.setdefault(self._locate_edit(edit), []).append(edit)
        return [self._plan_change(path, edits) for path, edits in by_path.items()]

    def write(self, changes: Sequence[FileChange]) -> None:
        """Write planned changes after saving a backup of each file.

        Raises ``WriteDeniedError`` if a file was changed meanwhile. If a file cannot be written, the files written
        before it get their old text again.
        """
        at = self._now().isoformat()
        for change in changes:
            if self._load_current(change.path, creates_file=change.before is None) != change.before:
                raise WriteDeniedError(f"{change.path} was changed meanwhile.", hint=_REFUSAL_HINT)
        saved: list[tuple[Path, NoteChangeRecord]] = []
        for change in changes:
            before = None if change.before is None else encode_text(change.before)
            record = NoteChangeRecord(
                path=change.path,
                at=at,
                before=None if before is None else hash_bytes(before),
                after=hash_bytes(encode_text(change.after)),
            )
            saved.append((self._backups.save_backup(record, before), record))
        written: list[FileChange] = []
        try:
            for change in changes:
                self._write_file(change.path, encode_text(change.after), is_new=change.before is None)
                written.append(change)
        except OSError as error:
            for done in written:
                self._restore_file_before_change(done)
            for folder, record in saved:
                self._backups.mark_undone(folder, record)
            raise WriteDeniedError(
                f"{changes[len(written)].path} cannot be written: {error.strerror}.",
                hint="Check permissions and the disk.",
            ) from error

    def last_change(self, path: str | None = None) -> NoteChangeRecord | None:
        """Return the newest change that was not undone yet, of one file or of any."""
        return next((one.record for one in self._iter_undoable_changes(path)), None)

    def restore(self, path: str | None = None) -> list[tuple[str, bool]]:
        """Undo the newest change that was not undone yet, of one file, or of all files that it changed together.

        Return each path, and whether the file is gone because the change had created it. Raises ``WriteDeniedError``
        if a file has changed since; then nothing is undone.
        """
        last = self.last_change(path)
        if last is None:
            named = f" of {path}" if path else ""
            raise WriteDeniedError(f"There is no change{named} to undo.", hint="Lamella changed no file here.")
        together = [one for one in self._iter_undoable_changes(path) if one.record.at == last.at]
        for folder, record in together:
            reason = self._special_file_reason(record.path)
            data = b"" if reason else read_regular_file(self.root / record.path, limit=4 * MAX_FILE_BYTES)
            if reason or hash_bytes(data) != record.after:
                raise WriteDeniedError(
                    f"{record.path} was changed since Lamella wrote it, so it stays as it is.",
                    hint=f"Its earlier text is in {folder}.",
                )
        for folder, record in together:
            target = self.root / record.path
            if record.before is None:
                write_new_file(folder / target.name, target.read_bytes())
                target.unlink()
            else:
                replace_file(target, read_regular_file(self._backups.backup_path(folder, record)))
            self._backups.mark_undone(folder, record)
        return [(record.path, record.before is None) for _, record in together]

    def _iter_undoable_changes(self, path: str | None) -> Iterator[_UndoableChange]:
        """Yield the changes that were not undone yet, of one file or of any, the newest first."""
        names = None if path is None else {path, self._to_relative_path(path)}
        for folder, record in self._backups.iter_change_folders_newest_first():
            if not record.undone and (names is None or record.path in names):
                yield _UndoableChange(folder, record)

    def _locate_edit(self, edit: CodeEdit) -> str:
        """Return the path of the file that an edit changes.

        Raises ``WriteDeniedError`` for a path outside the repository.
        """
        named = [edit.path]
        if edit.is_diff_path and edit.path.startswith(("a/", "b/")):
            named.insert(0, edit.path[2:])
        for name in named:
            if not _is_plain_path(name):
                raise WriteDeniedError(f"{name[:80]!r} is not a path in the repository.", hint=_REFUSAL_HINT)
        paths = [path for name in named if (path := self._to_relative_path(name)) is not None]
        if not paths:
            raise WriteDeniedError(f"{edit.path[:80]!r} is outside the repository.", hint=_REFUSAL_HINT)
        return next((path for path in paths if _is_file_or_link(self.root / path)), paths[0])

    def _to_relative_path(self, name: str) -> str | None:
        """Return a path relative to the root. A relative path counts from the root, or else from the folder."""
        path = Path(name)
        if path.is_absolute():
            return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None
        below = self.folder.relative_to(self.root) / path
        is_below = not _is_file_or_link(self.root / path) and _is_file_or_link(self.root / below)
        return (below if is_below else path).as_posix()

    def _plan_change(self, path: str, edits: Sequence[CodeEdit]) -> FileChange:
        before = self._load_current(path, creates_file=all(edit.creates_file for edit in edits))
        after = apply_code_edits(before, edits, path=path)
        if len(encode_text(after)) > MAX_FILE_BYTES:
            raise WriteDeniedError(f"{path} would have more than {MAX_FILE_BYTES:,} bytes.", hint=_REFUSAL_HINT)
        return FileChange(path=path, before=before, after=after, diff=render_diff(path, before, after))

    def _load_current(self, path: str, *, creates_file: bool) -> str | None:
        """Return the current text of a file, or None for a file that may be created."""
        if creates_file and not _is_file_or_link(self.root / path):
            self._check_new_path(path)
            return None
        reason = self._exclusion_reason(path)
        if reason is None:
            try:
                return self._read_text(path)[0]
            except SourceUnreadableError as error:
                reason = error.message.partition(" is not read: ")[2].rstrip(".")
        raise WriteDeniedError(f"{path} is not changed: {reason}.", hint=_REFUSAL_HINT)

    def _check_new_path(self, path: str) -> None:
        """Raise ``WriteDeniedError`` unless a new file may be created at this path."""
        parts = PurePosixPath(path).parts
        reason = excluded_path_reason(path) or (f"{IGNORE_FILE} leaves it out" if self._is_hidden(path) else None)
        if any(part.startswith(".") for part in parts):
            reason = "its name is hidden"
        place = self.root
        for part in parts[:-1]:
            place /= part
            if place.is_symlink():
                reason = "it leads through a link"
            elif place.exists() and not place.is_dir():
                reason = f"{part} is not a folder"
        is_ignored = self._has_git and GitFolder(self.root).run_git("check-ignore", "-q", "--", path) is not None
        reason = reason or (IGNORED_REASON if is_ignored else None)
        if reason is not None:
            raise WriteDeniedError(f"{path} is not created: {reason}.", hint=_REFUSAL_HINT)

    def _write_file(self, path: str, data: bytes, *, is_new: bool) -> None:
        target = self.root / path
        if is_new:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_new_file(target, data, mode=stat.S_IMODE(target.parent.stat().st_mode) & 0o666)
        else:
            replace_file(target, data)

    def _restore_file_before_change(self, change: FileChange) -> None:
        target = self.root / change.path
        if change.before is None:
            target.unlink(missing_ok=True)
        else:
            replace_file(target, encode_text(change.before))


def _is_plain_path(name: str) -> bool:
    """Return whether a path of an answer stays below its start and can be shown."""
    parts = PurePosixPath(name).parts
    return (
        bool(parts)
        and name.isprintable()
        and "\\" not in name
        and not name.startswith("~")
        and not {"..", "."} & set(name.split("/"))
        and len(name) <= 1_000
    )


def _is_file_or_link(path: Path) -> bool:
    """Return whether there is something at a path that is not a folder; links are not followed."""
    try:
        return not stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _iter_path_candidates(text: str) -> Iterator[tuple[str, int | None]]:
    """Yield the words of a text that may be paths, with their line numbers; the last Python frame comes first."""
    frames = [(match["path"], int(match["line"])) for match in _PYTHON_FRAME.finditer(text)]
    words = (
        (name, None if match.groupdict().get("line") is None else int(match["line"]))
        for pattern in (_QUOTED, _WORD)
        for match in pattern.finditer(text)
        if "." in (name := match["path"].rstrip(_TRAILING_DOTS)) or "/" in name
    )
    lines: dict[str, set[int | None]] = {}
    for name, line in (*reversed(frames), *words):
        seen = lines.setdefault(name, set())
        if len(lines) > _MAX_NAMES:
            return
        if line not in seen and (line is not None or not seen):
            seen.add(line)
            yield name, line
