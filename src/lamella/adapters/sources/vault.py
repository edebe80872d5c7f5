"""A vault: a folder of notes on disk, read and searched safely, as it is at one moment."""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePosixPath
from posixpath import normpath

from lamella.adapters.files.reading import read_plain
from lamella.adapters.sources.dataview.answers import DataviewAnswers, DataviewMemory, QueryAnswer
from lamella.adapters.sources.dataview.blocks import ASKS, RESULT, expand_queries
from lamella.adapters.sources.dataview.files import CatalogFiles
from lamella.adapters.sources.dataview.reader import QueryReader
from lamella.adapters.sources.inventory import Inventory, fold_name
from lamella.adapters.sources.markdown.tags import carries_tag
from lamella.adapters.sources.obsidian.canvas import render_canvas
from lamella.adapters.sources.obsidian.embeds import EmbedExpansion
from lamella.adapters.sources.obsidian.rules import RULES_FILE, RULES_FILES, IgnoreRules, read_rules
from lamella.adapters.sources.pictures.finding import find_embedded, read_kept
from lamella.adapters.sources.pictures.reader import PictureReader
from lamella.adapters.sources.readers import DocumentReader, OpenConversions, PageReader
from lamella.adapters.sources.recollection import Recollection
from lamella.adapters.sources.walking import name_in_vault, walk_vault
from lamella.core.artifacts.kinds import KINDS, Embeds, Medium, kind_of_file
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.core.text.content import normalise
from lamella.errors import BadInputError, SourceMissingError, SourceOutsideError, SourceUnreadableError
from lamella.holdings import NoteList
from lamella.ports import CodeReader, Reader, Sources

MAX_FILE_BYTES = 50_000_000
_LONGEST_GUESS = 1_000


@dataclass(slots=True)
class _Sight:
    """What one glance has seen: the rules, folders as they are listed, and which notes could not be read."""

    rules: IgnoreRules
    listings: dict[Path, Inventory] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    answers: DataviewAnswers | None = None
    aliases: dict[str, list[str]] | None = None


class Vault:
    """Notes below one folder. Hidden folders, such as ``.obsidian``, hold no notes.

    ``conversions`` read what is no text of its own. ``follows_embeds`` says whether a note is read with what it embeds
    of others and what its queries answer; ``memory`` is what is known of files, and ``today`` tells the day to queries.
    """

    def __init__(
        self,
        root: Path,
        conversions: OpenConversions | None = None,
        *,
        follows_embeds: bool = True,
        memory: Recollection | None = None,
        today: Callable[[], date] | None = None,
        code: CodeReader | None = None,
    ) -> None:
        if not root.is_dir():
            raise SourceMissingError(f"There is no vault folder at {root}.", hint="Check the `vault` path.")
        self._root = root.resolve()
        self._follows_embeds = follows_embeds
        self._today = today
        self._memory = memory or Recollection()
        self._answers = DataviewMemory()
        self._seen: _Sight | None = None
        self._conversions = conversions
        self._code = code

    def look(self) -> Sources:
        """All that can be read of the vault at one moment."""
        glance = self.glance()
        told: list[str] = []
        pictures = PictureReader(read_bytes=glance.read_bytes)
        readers: dict[Medium, Reader] = {
            Medium.FILE: glance,
            Medium.PICTURE: pictures,
            Medium.QUERY: QueryReader(ask=glance._ask),
        }
        if self._conversions is not None:
            open_them = self._conversions
            documents = DocumentReader(conversions=open_them, locate=self.locate, read_bytes=self.read_bytes)
            pages = PageReader(conversions=open_them, tell=told.append)
            readers |= {Medium.PDF: documents, Medium.OFFICE: documents, Medium.PAGE: pages, Medium.VIDEO: pages}
            readers[Medium.PICTURE] = replace(
                pictures, fetch=lambda url: open_them().read_picture(url, tell=told.append)
            )
        return Sources(readers=readers, catalog=glance, code=self._code, told=told)

    def glance(self) -> "Vault":
        """The vault at one moment: what was listed or searched once is not listed or searched again."""
        # One turn means one state of the vault: its links are not told by a walk through all folders each. Whether the
        # folder is still there is asked by what reads it: a turn may read nothing.
        glance = copy(self)
        glance._seen = _Sight(self._read_rules())
        return glance

    def read(self, wanted: Wanted) -> Artifact:
        """A file as text: a note with what it embeds, a canvas in words, source code as it is."""
        path = self._name(wanted.name)
        file = self.find_plain(path)
        # What a note embeds or asks is looked for each time: it may have changed, gone or come.
        return self._memory.artifacts.get(
            (file, wanted), file, partial(self._make, wanted, path, file), keeps=_is_alone
        )

    def _make(self, wanted: Wanted, path: str, file: Path) -> Artifact:
        text = _decode(_read_file(file, path), path)
        embedded: tuple[str, ...] = ()
        if wanted.kind is Kind.CANVAS:
            text = render_canvas(text, path)
        elif KINDS[wanted.kind].embeds is not Embeds.NONE and ASKS.search(text):
            text = self._answer_queries(text, path)
        if self._follows_embeds and KINDS[wanted.kind].embeds is not Embeds.NONE and "![" in text:
            expansion = EmbedExpansion(path, find=self.find_linked, read=self._read_embedded)
            plain = normalise(text)
            shown = expansion.expand(plain)
            # Normalised twice, a return before the end of a line would be lost.
            text = text if shown == plain else shown
            embedded = tuple(expansion.sources)
        source = Source(path=path, via=wanted.via, read=True, embedded=embedded)
        return make_artifact(wanted.kind, text=text, source=source, title=wanted.title, policy=wanted.policy)

    def _read_embedded(self, path: str) -> str:
        text = self._memory.text(self.find_plain(path), lambda: normalise(self.read_text(path)))
        return self._answer_queries(text, path) if ASKS.search(text) else text

    def _answer_queries(self, text: str, path: str) -> str:
        """A note's text with what its queries answer."""
        return expand_queries(text, lambda query: self._ask(query, path))

    def _ask(self, query: str, path: str) -> QueryAnswer:
        """What a query answers that stands in a note."""
        if not self._follows_embeds:
            return QueryAnswer(refused="there is no vault to ask.")
        seen = self._seen or _Sight(self._read_rules())
        if seen.answers is None:
            seen.answers = DataviewAnswers(CatalogFiles(self), self._answers, self._today)
        return seen.answers.answer(query, path=PurePosixPath(path).as_posix())

    def list_notes(self, kind: Kind, name: str) -> NoteList:
        if KINDS[kind].medium is Medium.TAG:
            return self._list_tag(name)
        if not self.has_folder(name):
            self.locate(name)
            raise SourceMissingError(f"There is no folder {name} in the vault.", hint=self._suggest(name))
        found = self._list(self.locate(name))
        return NoteList(paths=found.notes, links=found.links, left_out=found.left_out)

    def _list_tag(self, tag: str) -> NoteList:
        seen = self._seen or _Sight(IgnoreRules())
        found = self._list(self._root)
        paths = tuple(path for path in found.notes if carries_tag(self._find_tags(path, seen), tag))
        return NoteList(paths=paths, links=found.links, unread=tuple(seen.unread.values()), left_out=found.left_out)

    def list_files(self) -> Sequence[str]:
        """Every file of the vault, sorted."""
        return self._list(self._root).files

    def has_folder(self, path: str) -> bool:
        return self._has(stat.S_ISDIR, path)

    def has_file(self, path: str) -> bool:
        return self._has(stat.S_ISREG, path)

    def find_note(self, name: str) -> Sequence[str]:
        return self._list(self._root).find_note(name) or self._list_aliases().get(fold_name(name), [])

    def find_linked(self, target: str, beside: str) -> Sequence[str]:
        """The notes that a link in another note can mean: beside that one, from the root, by name, by alias.

        One in the same folder is nearer than any other.
        """
        folder = PurePosixPath(beside).parent
        for path in (folder / target, PurePosixPath(target.lstrip("/"))):
            plain = normpath(path.as_posix())
            if any(part.startswith(".") for part in plain.split("/")):
                continue
            exact = [name for name in (plain, f"{plain}.md") if kind_of_file(name) is Kind.NOTE and self.has_file(name)]
            if exact:
                return exact[:1]
        notes = self.find_note(target)
        near = [path for path in notes if PurePosixPath(path).parent == folder]
        return near if len(near) == 1 else notes

    def find_copies(self, artifact: Artifact) -> Sequence[str]:
        """The files that have the very text of an artifact and are of its kind."""
        return tuple(path for path in self._list(self._root).files if self._is_copy(path, artifact))

    def find_file(self, target: str, *, beside: str) -> str:
        return find_embedded(
            target,
            beside=beside,
            has_file=self.has_file,
            find_named=lambda name: self._list(self._root).find_others(name),
            find_kept=lambda: read_kept(self.read_text),
        )

    def read_text(self, path: str) -> str:
        """A file's text, which must be UTF-8."""
        return _decode(self.read_bytes(path), path)

    def read_bytes(self, path: str) -> bytes:
        """A file as it is; an error says why it cannot be had."""
        return _read_file(self.find_plain(path), path)

    def stat_file(self, path: str) -> os.stat_result:
        """What the disk says of a file that a walk found; ``OSError`` if it is gone since."""
        return self._place(path).stat()

    def locate(self, path: str) -> Path:
        """The file a relative path names, after links; an error if that is outside the vault."""
        try:
            place = self._place(path).resolve()
            place.exists()
        except RuntimeError as error:
            raise SourceMissingError(f"{path} is a link to itself.", hint="Mend the link, or remove it.") from error
        except (OSError, ValueError) as error:
            raise SourceMissingError(f"{path!r} is not a usable path.", hint="Check the path.") from error
        if PurePosixPath(path).is_absolute() or not place.is_relative_to(self._root):
            raise SourceOutsideError(
                f"{path} is outside the vault {self._root.name}.",
                hint="Use a path relative to the vault that does not leave it, also not through a link.",
            )
        return place

    def find_plain(self, path: str) -> Path:
        """The plain file at a path; an error says why there is none to be had."""
        file = self.locate(path)
        if not _is(stat.S_ISREG, file):
            raise self._no_file(path, file)
        if self._hides(path, file):
            raise SourceMissingError(
                f"{path} is left out of this vault by {RULES_FILE}.", hint="Change the rule there to have it read."
            )
        return file

    def _has(self, what: Callable[[int], bool], path: str) -> bool:
        """Whether there is something of this kind at a path, and no rule hides it."""
        try:
            place = self.locate(path)
        except (SourceOutsideError, SourceMissingError):
            return False
        return _is(what, place) and not self._hides(path, place)

    def _hides(self, path: str, place: Path) -> bool:
        rules = self._seen.rules if self._seen is not None else self._read_rules()
        if rules.spec is None:
            return False
        mark = "/" if place.is_dir() else ""
        named = PurePosixPath(path).as_posix()
        return rules.hides(named + mark) or rules.hides(name_in_vault(place, self._root) + mark)

    def _read_rules(self) -> IgnoreRules:
        there = any((self._root / name).exists() for name in RULES_FILES)
        return read_rules(self._root) if there else IgnoreRules()

    def _no_file(self, path: str, place: Path) -> SourceMissingError:
        if place.exists():
            return SourceMissingError(f"{path} is not a file.", hint="Attach a file, or a folder as a folder.")
        if self._place(path).is_symlink():
            return SourceMissingError(f"{path} is a link to nothing.", hint="Mend the link, or remove it.")
        return SourceMissingError(f"There is no file {path} in the vault.", hint=self._suggest(path))

    def _name(self, path: str) -> str:
        """The path as an id: one that goes up and down again is the same note as without the detour.

        A name that has several Unicode forms is looked for in the one that the disk has.
        """
        named = name_in_vault(self.locate(path), self._root) if ".." in PurePosixPath(path).parts else path
        if path.isascii() or self.has_file(named):
            return named
        same = self._list(self._root).find_same(named)
        return same[0] if len(same) == 1 else named

    def _place(self, path: str) -> Path:
        """Where a path leads before links are followed. It is UTF-8 in any locale, as in any program that syncs."""
        return self._root / os.fsdecode(path.encode())

    def _list_aliases(self) -> dict[str, list[str]]:
        """The notes that have a name besides that of their file, by that; one that cannot be read has none."""
        if self._seen is not None and self._seen.aliases is not None:
            return self._seen.aliases
        found: dict[str, list[str]] = {}
        for path in self._list(self._root).notes:
            with suppress(OSError):
                for alias in {fold_name(alias) for alias in self._memory.aliases(self._place(path))}:
                    found.setdefault(alias, []).append(path)
        if self._seen is not None:
            self._seen.aliases = found
        return found

    def _find_tags(self, path: str, seen: _Sight) -> frozenset[str]:
        """The tags of a note. One that cannot be read carries none, and is not what stops the search for others."""
        if path in seen.unread:
            return frozenset()
        try:
            return self._memory.tags(self._place(path), lambda: self.read_text(path))
        except BadInputError as error:
            seen.unread[path] = error.message
            return frozenset()

    def _is_copy(self, path: str, artifact: Artifact) -> bool:
        if kind_of_file(path) is not artifact.kind:
            return False
        try:
            # Most files are told apart by their size alone; one with embeds or answers is as long as those.
            size = self.stat_file(path).st_size
            whole = not artifact.source.embedded and RESULT not in artifact.text and artifact.kind is not Kind.CANVAS
            if whole and not _may_have(size, artifact.text):
                return False
            return self.read(Wanted(kind=artifact.kind, name=path)).hash == artifact.hash
        except (BadInputError, OSError):
            return False

    def _list(self, folder: Path) -> Inventory:
        if self._seen is None:
            return walk_vault(self._root, folder, self._read_rules())
        if folder not in self._seen.listings:
            self._seen.listings[folder] = walk_vault(self._root, folder, self._seen.rules)
        return self._seen.listings[folder]

    def _suggest(self, path: str) -> str:
        near = get_close_matches(path, self._list(self._root).files, n=3) if len(path) <= _LONGEST_GUESS else []
        return f"Did you mean {', '.join(near)}?" if near else "Paths are relative to the vault folder."


def _is_alone(made: Artifact) -> bool:
    """Whether a text has all that it says from one file. What was embedded is no longer seen by its mark."""
    return not made.source.embedded and "![" not in made.text and not ASKS.search(made.text)


def _may_have(size: int, text: str) -> bool:
    """Whether a file of this size can have this text: a byte order mark and the ends of lines are left out of it."""
    least = len(text.encode())
    return least <= size <= least + 3 + text.count("\n")


def _is(what: Callable[[int], bool], place: Path) -> bool:
    try:
        return what(place.stat().st_mode)
    except OSError:
        return False


def _read_file(file: Path, path: str) -> bytes:
    try:
        hint = "Attach a selection of it, or split the file."
        return read_plain(file, limit=MAX_FILE_BYTES, name=path, hint=hint)
    except OSError as error:
        raise SourceUnreadableError(
            f"{path} cannot be read: {error.strerror or error}.",
            hint="Check its permissions and the length of its path.",
        ) from error


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SourceUnreadableError(
            f"{path} is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
            hint="Save the file as UTF-8, or detach it.",
        ) from error
