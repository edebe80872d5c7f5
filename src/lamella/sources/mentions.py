"""Resolve the names that users write in messages and commands to attachments.

A mention in a message and a name given on its own follow the same grammar, that of ``core/text/mentions.py``. A name
that matches nothing is reported with a reason. A file that exists but cannot be read raises an error.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from lamella.attach import Attachment, Image, Selection, Url, attachment_for_url, has_known_extension
from lamella.core.text.content import is_web_address, trim_url
from lamella.core.text.mentions import (
    FilePart,
    Mention,
    MentionForm,
    find_mentions,
    iter_file_part_readings,
    parse_mention,
)
from lamella.errors import ArtifactError, LamellaError, PathOutsideVaultError, SourceNotFoundError, UsageError
from lamella.hints import Hints
from lamella.plugins import PluginGroup, find_plugin
from lamella.sources.images import ImageReader, is_data_uri
from lamella.sources.markdown import ParsedNote, find_section_range, parse_note
from lamella.sources.path_resolver import PathResolver, make_path_resolver
from lamella.sources.readers import OpenConversions

_MAX_SEARCHED_FILES = 5_000
_MAX_SUGGESTIONS = 3
# A shorter word after ``@`` is rather a person than the beginning of a file's name.
_MIN_BEGINNING_CHARS = 3
# Words of a name with spaces, after the first one.
_MAX_WORDS_OF_NAME = 6
# A mention that begins like this is a path on any operating system, even if nothing exists there. No user handle
# begins like this.
_PATH_START = re.compile(r"[/\\]|\.\.?[/\\]|\.\.$|~\w*[/\\]|~$|[A-Za-z]:[/\\]|\$\{?\w+\}?[/\\]|%\w+%[/\\]")
_URL_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|www\.")
_FILE_URL_PREFIX = "file:"
_NOT_FOUND_ERRORS = (ArtifactError, SourceNotFoundError, PathOutsideVaultError)
# The attachments that a name resolves to, and a description for the user.
_ResolvedMention = tuple[Sequence[Attachment], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionOutcome:
    """The result of one mention in a message: its attachments, or the reason why there are none.

    ``attachments`` is empty if nothing was found; ``error`` is then the error. ``description`` describes the result to
    the user.
    """

    token: str
    attachments: tuple[Attachment, ...] = ()
    description: str
    error: LamellaError | None = None

    def format_for(self, hints: Hints) -> str:
        """Return the description, with its hint phrased for one interface (command line, server or Python)."""
        return self.description if self.error is None else f"{self.error.message} {self.error.hint_for(hints)}"


class AttachmentResolver:
    """Resolves names to files, relative to the vault or, without a vault, to the current folder."""

    def __init__(self, vault: Path | None, conversions: OpenConversions | None = None) -> None:
        self._vault = vault
        self._conversions = conversions

    def _path_resolver(self) -> PathResolver:
        return make_path_resolver(self._vault, self._conversions)

    def resolve(self, name: str) -> Sequence[Attachment]:
        """Return the attachments for one name: a file, folder, note, tag, page, or lines as in ``note.md:10-20``.

        Raises:
            UsageError: The name is blank.
            LamellaError: The name matches nothing, or several notes.
        """
        if is_data_uri(name):
            return [self.image_attachment(name, title="pasted")]
        if not name.strip():
            raise UsageError("The name of what to attach is blank.", hint="Name a file, a folder, a note or a tag.")
        resolver, mention = self._path_resolver(), parse_mention(name)
        found = _resolve_mention_text(mention, resolver)
        if found is None:
            raise _mention_not_found_error(mention, resolver)
        return found[0]

    def image_attachment(self, given: bytes | str, *, title: str) -> Image:
        """Return an image attachment for bytes or a data URI, after checking that the bytes are an image."""
        if isinstance(given, str) and not is_data_uri(given):
            raise UsageError("What is pasted is no data URI.", hint="One begins with data:image/png;base64,")
        attachment = Image(url=given, title=title) if isinstance(given, str) else Image(data=given, title=title)
        image = ImageReader().read(attachment.to_unresolved()).images[0]
        return Image(data=image.data, media_type=image.media_type, title=title)

    def resolve_mentions(self, text: str) -> list[MentionOutcome]:
        """Return one outcome per mention in a message, with its attachments or the reason why there are none.

        A word that does not look like a path, and with which no file's name begins, such as the user handle ``@jo``,
        gives no outcome.
        """
        mentions = find_mentions(text)
        if not mentions:
            return []
        resolver = self._path_resolver()
        return [
            outcome
            for mention in mentions
            for outcome in _find_unquoted_file(mention, text, resolver) or _resolve_mention(mention, resolver)
        ]

    def resolve_links(self, text: str) -> list[MentionOutcome]:
        """Return one outcome per ``[[Note]]`` in a message; other mentions are left out."""
        links = [mention for mention in find_mentions(text) if mention.form is MentionForm.LINK]
        resolver = self._path_resolver() if links else None
        return [outcome for mention in links if resolver for outcome in _resolve_mention(mention, resolver)]

    def select_lines(self, name: str) -> Selection:
        """Return a selection of lines of a file, named as in ``note.md:10-20`` or ``note.md:10``."""
        part = next((part for part in iter_file_part_readings(name) if part.lines), None)
        if part is None:
            raise UsageError(f"{name} names no lines.", hint="Name a file and its lines, as in note.md:10-20.")
        resolver = self._path_resolver()
        path = _resolve_file(part.path, resolver)
        if path is None:
            raise _mention_not_found_error(parse_mention(part.path), resolver)
        return _select_part_of_file(part, path, resolver)[0]

    def complete_path(self, begun: str, *, limit: int = 50) -> list[str]:
        """Return paths that complete a partly typed word, at most ``limit`` of them.

        With a vault these are the notes whose path contains the word. Without one they are the visible entries of the
        folder that the word leads to.
        """
        if self._vault is not None:
            notes = self._path_resolver().list_suggestion_candidates(PurePosixPath(begun))
            return [path for path in notes if begun.casefold() in path.casefold()][:limit]
        parent, _, start = begun.rpartition("/")
        folder = Path(parent or ("/" if begun.startswith("/") else "."))
        prefix = f"{parent}/" if "/" in begun else ""
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        shown = [entry for entry in found if entry.name.startswith(start) and not entry.name.startswith(".")]
        return [f"{prefix}{entry.name}{'/' if entry.is_dir() else ''}" for entry in shown][:limit]

    def complete_note_name(self, begun: str, *, limit: int = 50) -> list[str]:
        """Return notes for a partly typed ``[[link``, each by the shortest name that means only this note."""
        if self._vault is None:
            paths = [path for path in self.complete_path(begun, limit=limit) if path.endswith((".md", "/"))]
            return [path.removesuffix(".md") for path in paths]
        paths = [
            path.removesuffix(".md") for path in self._path_resolver().list_suggestion_candidates(PurePosixPath(begun))
        ]
        counts = Counter(PurePosixPath(path).name.casefold() for path in paths)
        names = [name if counts[(name := PurePosixPath(path).name).casefold()] == 1 else path for path in paths]
        return [name for name in names if begun.casefold() in name.casefold()][:limit]

    def complete_folder(self, begun: str, *, limit: int = 50) -> list[str]:
        """Return the folders of the vault whose path contains the word, each with a slash; none without a vault."""
        if self._vault is None:
            return []
        notes = self._path_resolver().list_suggestion_candidates(PurePosixPath(begun))
        folders = {f"{parent}/" for path in notes for parent in PurePosixPath(path).parents if parent.name}
        return sorted(path for path in folders if begun.casefold() in path.casefold())[:limit]

    def complete_heading(self, begun: str, *, limit: int = 50) -> list[str]:
        """Return the headings of a note for a partly typed ``note#heading``, each after the path of its note.

        There are none without a vault, without a ``#`` after a name, and for a name that means no single note.
        """
        name, sign, word = begun.partition("#")
        if self._vault is None or not sign or not name:
            return []
        resolver = self._path_resolver()
        try:
            path = _resolve_file(name, resolver, is_link=True)
            note = None if path is None else parse_note(resolver.read_text(path))
        except LamellaError:
            return []
        found = [] if note is None else [one.text for one in note.headings if word.casefold() in one.text.casefold()]
        return [f"{path}#{one}" for one in dict.fromkeys(found) if one][:limit]

    def complete_tag(self, begun: str, *, limit: int = 50) -> list[str]:
        """Return the tags of the vault that complete a partly typed ``#tag``, without ``#``; none without a vault."""
        tags = self._path_resolver().list_tags() if self._vault is not None else ()
        return [tag for tag in tags if tag.startswith(begun.casefold())][:limit]


def _resolve_mention(mention: Mention, resolver: PathResolver) -> Iterator[MentionOutcome]:
    try:
        found = _resolve_mention_text(mention, resolver)
        if found is None and _is_meant_as_name(mention, resolver):
            raise _mention_not_found_error(mention, resolver)
    except _NOT_FOUND_ERRORS as error:
        yield MentionOutcome(token=mention.token, description=f"{error.message} {error.hint}", error=error)
    else:
        if found is not None:
            attached, label = found
            yield MentionOutcome(token=mention.token, attachments=tuple(attached), description=label)


def _find_unquoted_file(mention: Mention, text: str, resolver: PathResolver) -> list[MentionOutcome]:
    """Return an outcome with an error if a mention is the first word of a file's name that has spaces and no quotes.

    ``@two words.md`` would otherwise be the mention ``@two``, which names nothing or another file.
    """
    if mention.form is not MentionForm.PATH:
        return []
    for match in re.finditer(rf"{re.escape(mention.token)}(?: [^\s@]+){{1,{_MAX_WORDS_OF_NAME}}}", text):
        words = match.group().removeprefix("@").split(" ")
        for count in range(2, len(words) + 1):
            name = " ".join(words[:count]).rstrip(".,;:!?)")
            if has_known_extension(name) and resolver.has_file(name):
                error = SourceNotFoundError(
                    f"The name {name} has spaces.", hint=f'Put it into quotation marks: @"{name}"'
                )
                return [MentionOutcome(token=f"@{name}", description=f"{error.message} {error.hint}", error=error)]
    return []


def _resolve_mention_text(mention: Mention, resolver: PathResolver) -> _ResolvedMention | None:
    """Return what a mention resolves to, or None if it names nothing.

    Raises an error if the mention can mean only one thing, for example a tag, and that thing does not exist.
    """
    if mention.form is MentionForm.TAG:
        return _attach_tag(f"#{mention.candidate_names[0]}", resolver)
    if mention.form is not MentionForm.LINK and is_web_address(mention.candidate_names[0]):
        url = mention.candidate_names[0] if mention.form is MentionForm.QUOTED else trim_url(mention.candidate_names[0])
        return [attachment_for_url(url)], url
    if mention.form is not MentionForm.LINK and _is_read_by_plugin(mention.candidate_names[0]):
        name = (
            mention.candidate_names[0] if mention.form is MentionForm.QUOTED else trim_url(mention.candidate_names[0])
        )
        return [Url(url=name)], name
    found = (_resolve_name(name, mention.form, resolver) for name in mention.candidate_names)
    return next((one for one in found if one is not None), None)


def _is_read_by_plugin(name: str) -> bool:
    kind, _, rest = name.partition(":")
    return bool(rest) and find_plugin(PluginGroup.KINDS, kind) is not None


def _resolve_name(name: str, form: MentionForm, resolver: PathResolver) -> _ResolvedMention | None:
    path = _resolve_file(name, resolver, is_link=form is MentionForm.LINK)
    if path is not None:
        return [resolver.get_file_attachment(path)], resolver.display_path(path)
    if form is not MentionForm.LINK and resolver.has_folder(name):
        if form is MentionForm.PATH:
            resolver.check_mentioned_folder(name)
        return _attach_folder(name, resolver)
    for part in iter_file_part_readings(name):
        path = _resolve_file(part.path, resolver, is_link=form is MentionForm.LINK)
        if path is not None:
            selection, label = _select_part_of_file(part, path, resolver)
            return [selection], label
    return None


def _resolve_file(name: str, resolver: PathResolver, *, is_link: bool = False) -> str | None:
    """Return the file at a path, or the note of that name; None if there is neither.

    A wiki link (``is_link``) may name a note with its ``.md`` ending, in whichever folder the note is.
    """
    if resolver.has_file(name):
        return name
    if resolver.has_folder(name) and not is_link:
        return None
    notes = resolver.find_notes_named(name.removesuffix(".md") if is_link else name)
    if len(notes) > 1:
        some = ", ".join(notes[:_MAX_SUGGESTIONS])
        raise SourceNotFoundError(f"{len(notes):,} notes are called {name}: {some}.", hint="Name one by its path.")
    if notes and not resolver.has_file(notes[0]):
        # The name is listed as a note, but the entry is a pipe or a dangling link.
        raise resolver.not_found_error(notes[0])
    return notes[0] if notes else None


def _attach_folder(name: str, resolver: PathResolver) -> _ResolvedMention:
    attached, count = resolver.get_folder_attachments(name)
    if not count:
        raise SourceNotFoundError(f"The folder {name} holds no notes.", hint="Name a file in it by its path.")
    return attached, _format_note_count(name, count)


def _attach_tag(name: str, resolver: PathResolver) -> _ResolvedMention:
    attached, count = resolver.attach_tag(name)
    if not count:
        raise SourceNotFoundError(
            f"No note carries {name}.", hint="Tags are those of front matter and text, in any note of the vault."
        )
    return attached, _format_note_count(name, count)


def _format_note_count(name: str, count: int) -> str:
    return f"{name}, {count:,} {'note' if count == 1 else 'notes'}"


def _select_part_of_file(part: FilePart, path: str, resolver: PathResolver) -> tuple[Selection, str]:
    text, shown = resolver.read_text(path), resolver.display_path(path)
    lines = text.removesuffix("\n").split("\n")
    first, last = part.lines or _find_section_lines(part.heading, shown, text)
    if not 1 <= first <= last <= len(lines):
        raise ArtifactError(
            f"{shown} has {len(lines):,} lines; {first:,} to {last:,} were asked for.",
            hint="Lines count from 1, and the first comes first.",
        )
    under = "" if part.lines else f" under {lines[first - 1].strip('# ')}"
    label = f"{shown}, {f'line {first:,}' if first == last else f'lines {first:,} to {last:,}'}{under}"
    return Selection(path=shown, lines=(first, last), text="\n".join(lines[first - 1 : last])), label


def _find_section_lines(heading: str, path: str, text: str) -> tuple[int, int]:
    """Return the first and last line, counted from 1, of a section or of a named block."""
    note = parse_note(text)
    section = find_section_range(note, heading, length=len(text))
    if section is None:
        raise _part_not_found_error(heading, path, note)
    start, end = section
    return text.count("\n", 0, start) + 1, text.removesuffix("\n").count("\n", 0, max(start, end - 1)) + 1


def _part_not_found_error(heading: str, path: str, note: ParsedNote) -> ArtifactError:
    if heading.startswith("^"):
        blocks = [f"^{name}" for name in note.blocks][:_MAX_SUGGESTIONS]
        return ArtifactError(f"{path} has no block {heading}.", hint=f"It has: {', '.join(blocks) or 'none'}.")
    headings = [one.text for one in note.headings if one.text]
    similar = get_close_matches(heading, headings, n=_MAX_SUGGESTIONS) or headings[:_MAX_SUGGESTIONS]
    hint = (
        f'It has: {", ".join(similar)}. One with blanks is named as @"{path}#{similar[0]}".'
        if similar
        else "It has none."
    )
    return ArtifactError(f"{path} has no heading {heading}.", hint=hint)


def _is_meant_as_name(mention: Mention, resolver: PathResolver) -> bool:
    """Return whether a mention that matches nothing was meant as a name, and so must be reported.

    The signs are quotation marks or brackets, a known file ending, path syntax, a first part that exists, or a file
    whose name begins like this.
    """
    if mention.form is not MentionForm.PATH:
        return True
    name = mention.token.removeprefix("@")
    path = PurePosixPath(_strip_part_of_file(name))
    beginning = path.parts[0] if len(path.parts) > 1 else ""
    return (
        has_known_extension(path.name)
        or name.endswith("/")
        or bool(_PATH_START.match(name) or _URL_START.match(name))
        or bool(beginning and (resolver.has_folder(beginning) or resolver.has_file(beginning)))
        or bool(_list_files_beginning_with(name, resolver))
    )


def _strip_part_of_file(name: str) -> str:
    """Return the path of a name without the line range or heading that may follow it."""
    part = next(iter_file_part_readings(name), None)
    return name if part is None else part.path


def _mention_not_found_error(mention: Mention, resolver: PathResolver) -> LamellaError:
    """Return the error for a name that matches nothing, with similar names as its hint."""
    name = _strip_part_of_file(
        mention.token.removeprefix("@") if mention.form is MentionForm.PATH else mention.candidate_names[0]
    )
    if name.startswith(_FILE_URL_PREFIX):
        return SourceNotFoundError(f"{name} is no path.", hint="Name the file by its path.")
    if _URL_START.match(name):
        return SourceNotFoundError(
            f"{name} is no file.", hint="A page is named by an address with http:// or https://."
        )
    similar = _find_similar_names(name, resolver)
    meant = f"Did you mean {', '.join(similar)}?"
    if mention.form is MentionForm.LINK:
        return SourceNotFoundError(
            f"No note is called {name}.", hint=meant if similar else "A link names a note by its name or path."
        )
    error = resolver.not_found_error(name)
    if similar and isinstance(error, SourceNotFoundError):
        return SourceNotFoundError(error.message, hint=meant)
    return error


def _find_similar_names(name: str, resolver: PathResolver, *, limit: int = _MAX_SUGGESTIONS) -> list[str]:
    """Return files with a similar name; empty if the files cannot be listed."""
    wanted_path = PurePosixPath(name)
    try:
        paths = resolver.list_suggestion_candidates(wanted_path)[:_MAX_SEARCHED_FILES]
    except (LamellaError, OSError, ValueError):
        return []
    begun = _list_files_beginning_with(name, resolver)
    # Compare names without their endings. The ending alone would make any two short names similar.
    named: dict[str, list[str]] = {}
    for path in map(PurePosixPath, paths):
        for alike in dict.fromkeys((path.with_suffix("").as_posix().casefold(), path.stem.casefold())):
            named.setdefault(alike, []).append(path.as_posix())
    whole = wanted_path.with_suffix("").as_posix() if wanted_path.name else name
    similar = [
        one for called in (whole, wanted_path.stem) for one in get_close_matches(called.casefold(), named, n=limit)
    ]
    return list(dict.fromkeys((*begun, *(path for one in similar for path in named[one]))))[:limit]


def _list_files_beginning_with(name: str, resolver: PathResolver) -> list[str]:
    """Return the files whose name begins with a word, shortest first; none for a word that is too short to tell."""
    if len(name) < _MIN_BEGINNING_CHARS or not name[0].isalnum() or "/" in name:
        return []
    try:
        paths = resolver.list_suggestion_candidates(PurePosixPath(name))[:_MAX_SEARCHED_FILES]
    except (LamellaError, OSError, ValueError):
        return []
    begun = [path for path in paths if PurePosixPath(path).name.casefold().startswith(name.casefold())]
    return sorted(begun, key=lambda path: (len(path), path))
