"""Naming: what people call the things they attach, and what their words attach or why they attach nothing.

The grammar is that of ``core/text/mentions.py``, for a message and for a name by itself. What is not there is told;
what is there and cannot be read is an error.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from lamella.adapters.sources.grounds import Ground, stand_on
from lamella.adapters.sources.markdown.model import ParsedNote
from lamella.adapters.sources.markdown.note import parse_note
from lamella.adapters.sources.markdown.sections import find_part
from lamella.adapters.sources.pictures.pasted import is_pasted
from lamella.adapters.sources.pictures.reader import PictureReader
from lamella.adapters.sources.readers import OpenConversions
from lamella.attach import Attachment, Picture, Selection, describe_page, knows_ending
from lamella.core.text.addresses import is_page, trim_address
from lamella.core.text.mentions import (
    Mention,
    MentionForm,
    MentionPart,
    find_mentions,
    read_name,
    split_parts,
)
from lamella.doors import Door
from lamella.errors import ArtifactError, LamellaError, SourceMissingError, SourceOutsideError, UsageError

_LISTED = 5_000
_NAMED = 3
# What begins so is a path on any system, whatever it leads to: no handle does.
_PATH = re.compile(r"[/\\]|\.\.?[/\\]|\.\.$|~\w*[/\\]|~$|[A-Za-z]:[/\\]|\$\{?\w+\}?[/\\]|%\w+%[/\\]")
_PAGE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|www\.")
_FILE_PAGE = "file:"
_NOT_THERE = (ArtifactError, SourceMissingError, SourceOutsideError)
# What a name stands for, and that in words.
_Found = tuple[Sequence[Attachment], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionOutcome:
    """What became of something that a message names: what it attaches, or nothing; and that, or why, in words."""

    token: str
    attach: tuple[Attachment, ...] = ()
    told: str
    refused: LamellaError | None = None

    def told_at(self, door: Door) -> str:
        """The same in the words of a door."""
        return self.told if self.refused is None else f"{self.refused.message} {self.refused.hint_at(door)}"


class NamedFiles:
    """Files as people name them: relative to the vault, or without one to the current folder."""

    def __init__(self, vault: Path | None, conversions: OpenConversions | None = None) -> None:
        self._vault = vault
        self._conversions = conversions

    def _stand(self) -> Ground:
        return stand_on(self._vault, self._conversions)

    def find(self, name: str) -> Sequence[Attachment]:
        """What a name stands for: a file, a folder, a note, a tag, a page, lines of a file as in ``note.md:10-20``."""
        if is_pasted(name):
            return [self.take_picture(name, title="pasted")]
        if not name.strip():
            raise UsageError("The name of what to attach is blank.", hint="Name a file, a folder, a note or a tag.")
        ground, mention = self._stand(), read_name(name)
        found = _resolve(mention, ground)
        if found is None:
            raise _miss(mention, ground)
        return found[0]

    def take_picture(self, given: bytes | str, *, title: str) -> Picture:
        """A picture that is given, as bytes or as a data URI, once its bytes were looked at."""
        if isinstance(given, str) and not is_pasted(given):
            raise UsageError("What is pasted is no data URI.", hint="One begins with data:image/png;base64,")
        wanted = Picture(url=given, title=title) if isinstance(given, str) else Picture(data=given, title=title)
        image = PictureReader().read(wanted.wanted()).images[0]
        return Picture(data=image.data, media_type=image.media_type, title=title)

    def find_mentions(self, text: str) -> list[MentionOutcome]:
        """What a message names, each with what it attaches or why not; a name or a handle is just a word."""
        mentions = find_mentions(text)
        if not mentions:
            return []
        ground = self._stand()
        return [outcome for mention in mentions for outcome in _take(mention, ground)]

    def select(self, name: str) -> Selection:
        """Lines of a file, as in ``note.md:10-20`` or ``note.md:10``."""
        part = next((part for part in split_parts(name) if part.lines), None)
        if part is None:
            raise UsageError(f"{name} names no lines.", hint="Name a file and its lines, as in note.md:10-20.")
        ground = self._stand()
        path = _find_file(part.path, ground)
        if path is None:
            raise _miss(read_name(part.path), ground)
        return _select(part, path, ground)[0]

    def complete(self, begun: str, *, limit: int = 50) -> list[str]:
        """Paths that a word may become: notes of the vault that have it in their path, else files beside it."""
        if self._vault is not None:
            notes = self._stand().list_near(PurePosixPath(begun))
            return [path for path in notes if begun.casefold() in path.casefold()][:limit]
        parent, _, start = begun.rpartition("/")
        folder = Path(parent or ("/" if begun.startswith("/") else "."))
        prefix = f"{parent}/" if "/" in begun else ""
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        shown = [place for place in found if place.name.startswith(start) and not place.name.startswith(".")]
        return [f"{prefix}{place.name}{'/' if place.is_dir() else ''}" for place in shown][:limit]


def _take(mention: Mention, ground: Ground) -> Iterator[MentionOutcome]:
    try:
        found = _resolve(mention, ground)
        if found is None and _is_meant(mention, ground):
            raise _miss(mention, ground)
    except _NOT_THERE as error:
        yield MentionOutcome(token=mention.token, told=f"{error.message} {error.hint}", refused=error)
    else:
        if found is not None:
            attached, told = found
            yield MentionOutcome(token=mention.token, attach=tuple(attached), told=told)


def _resolve(mention: Mention, ground: Ground) -> _Found | None:
    """What is named; nothing where it names nothing, and an error where it cannot mean anything else."""
    if mention.form is MentionForm.TAG:
        return _attach_tag(f"#{mention.readings[0]}", ground)
    if mention.form is not MentionForm.LINK and is_page(mention.readings[0]):
        url = mention.readings[0] if mention.form is MentionForm.QUOTED else trim_address(mention.readings[0])
        return [describe_page(url)], url
    found = (_resolve_name(name, mention.form, ground) for name in mention.readings)
    return next((one for one in found if one is not None), None)


def _resolve_name(name: str, form: MentionForm, ground: Ground) -> _Found | None:
    path = _find_file(name, ground, linked=form is MentionForm.LINK)
    if path is not None:
        return [ground.attach_file(path)], ground.name(path)
    if form is not MentionForm.LINK and ground.has_folder(name):
        if form is MentionForm.PATH and ground.surrounds(name):
            raise _hold_back(name)
        return _attach_folder(name, ground)
    for part in split_parts(name):
        path = _find_file(part.path, ground, linked=form is MentionForm.LINK)
        if path is not None:
            selection, told = _select(part, path, ground)
            return [selection], told
    return None


def _find_file(name: str, ground: Ground, *, linked: bool = False) -> str | None:
    """The file at a path, else the note of that name; what a link names may have its ending, wherever it is."""
    if ground.has_file(name):
        return name
    if ground.has_folder(name) and not linked:
        return None
    notes = ground.find_note(name.removesuffix(".md") if linked else name)
    if len(notes) > 1:
        some = ", ".join(notes[:_NAMED])
        raise SourceMissingError(f"{len(notes):,} notes are called {name}: {some}.", hint="Name one by its path.")
    if notes and not ground.has_file(notes[0]):
        # It is listed as a note by its name, and is a pipe, or a link to nothing.
        raise ground.miss(notes[0])
    return notes[0] if notes else None


def _attach_folder(name: str, ground: Ground) -> _Found:
    attached, count = ground.attach_folder(name)
    if not count:
        raise SourceMissingError(f"The folder {name} holds no notes.", hint="Name a file in it by its path.")
    return attached, _tell_notes(name, count)


def _hold_back(name: str) -> SourceMissingError:
    """Why a word of a message does not bring along a folder that may hold all of a disk; a command may name it."""
    return SourceMissingError(
        f"{name} holds the current folder.",
        hint=lambda door: f"Name a folder in it, or have it as a vault with {door.option('vault')}.",
    )


def _attach_tag(name: str, ground: Ground) -> _Found:
    attached, count = ground.attach_tag(name)
    if not count:
        raise SourceMissingError(
            f"No note carries {name}.", hint="Tags are those of front matter and text, in any note of the vault."
        )
    return attached, _tell_notes(name, count)


def _tell_notes(name: str, count: int) -> str:
    return f"{name}, {count:,} {'note' if count == 1 else 'notes'}"


def _select(part: MentionPart, path: str, ground: Ground) -> tuple[Selection, str]:
    text, shown = ground.read_text(path), ground.name(path)
    lines = text.removesuffix("\n").split("\n")
    first, last = part.lines or _find_lines(part.heading, shown, text)
    if not 1 <= first <= last <= len(lines):
        raise ArtifactError(
            f"{shown} has {len(lines):,} lines; {first:,} to {last:,} were asked for.",
            hint="Lines count from 1, and the first comes first.",
        )
    under = "" if part.lines else f" under {lines[first - 1].strip('# ')}"
    told = f"{shown}, {f'line {first:,}' if first == last else f'lines {first:,} to {last:,}'}{under}"
    return Selection(path=shown, lines=(first, last), text="\n".join(lines[first - 1 : last])), told


def _find_lines(heading: str, path: str, text: str) -> tuple[int, int]:
    """The first and last line, counted from 1, of what stands under a heading or is a block of that name."""
    note = parse_note(text)
    place = find_part(note, heading, length=len(text))
    if place is None:
        raise _no_part(heading, path, note)
    start, end = place
    return text.count("\n", 0, start) + 1, text.removesuffix("\n").count("\n", 0, max(start, end - 1)) + 1


def _no_part(heading: str, path: str, note: ParsedNote) -> ArtifactError:
    if heading.startswith("^"):
        blocks = [f"^{name}" for name in note.blocks][:_NAMED]
        return ArtifactError(f"{path} has no block {heading}.", hint=f"It has: {', '.join(blocks) or 'none'}.")
    headings = [one.text for one in note.headings if one.text]
    near = get_close_matches(heading, headings, n=_NAMED) or headings[:_NAMED]
    hint = f'It has: {", ".join(near)}. One with blanks is named as @"{path}#{near[0]}".' if near else "It has none."
    return ArtifactError(f"{path} has no heading {heading}.", hint=hint)


def _is_meant(mention: Mention, ground: Ground) -> bool:
    """Whether what names nothing was meant to: by its marks, its ending, or a folder that is there."""
    if mention.form is not MentionForm.PATH:
        return True
    name = mention.token.removeprefix("@")
    path = PurePosixPath(_cut_part(name))
    beginning = path.parts[0] if len(path.parts) > 1 else ""
    return (
        knows_ending(path.name)
        or name.endswith("/")
        or bool(_PATH.match(name) or _PAGE.match(name))
        or bool(beginning and (ground.has_folder(beginning) or ground.has_file(beginning)))
    )


def _cut_part(name: str) -> str:
    """The path in a name that may end in lines or a heading."""
    part = next(split_parts(name), None)
    return name if part is None else part.path


def _miss(mention: Mention, ground: Ground) -> LamellaError:
    """Why a name attaches nothing, with what may have been meant."""
    name = _cut_part(mention.token.removeprefix("@") if mention.form is MentionForm.PATH else mention.readings[0])
    if name.startswith(_FILE_PAGE):
        return SourceMissingError(f"{name} is no path.", hint="Name the file by its path.")
    if _PAGE.match(name):
        return SourceMissingError(f"{name} is no file.", hint="A page is named by an address with http:// or https://.")
    near = _find_near(name, ground)
    meant = f"Did you mean {', '.join(near)}?"
    if mention.form is MentionForm.LINK:
        return SourceMissingError(
            f"No note is called {name}.", hint=meant if near else "A link names a note by its name or path."
        )
    error = ground.miss(name)
    if near and isinstance(error, SourceMissingError):
        return SourceMissingError(error.message, hint=meant)
    return error


def _find_near(name: str, ground: Ground, *, limit: int = _NAMED) -> list[str]:
    """Files with a name like that one; nothing where looking fails."""
    wanted = PurePosixPath(name)
    try:
        paths = ground.list_near(wanted)[:_LISTED]
    except (LamellaError, OSError, ValueError):
        return []
    # Endings are left out: they alone would make any two short names alike.
    named: dict[str, list[str]] = {}
    for path in map(PurePosixPath, paths):
        for alike in dict.fromkeys((path.with_suffix("").as_posix().casefold(), path.stem.casefold())):
            named.setdefault(alike, []).append(path.as_posix())
    whole = wanted.with_suffix("").as_posix() if wanted.name else name
    near = [one for called in (whole, wanted.stem) for one in get_close_matches(called.casefold(), named, n=limit)]
    return list(dict.fromkeys(path for one in near for path in named[one]))[:limit]
