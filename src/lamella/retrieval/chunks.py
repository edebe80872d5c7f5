"""Split notes into chunks, choose the passage of a chunk to show, and name the index file of a vault.

``split_into_chunks`` gives one chunk per heading, and several for long sections. It reads only the parts that an index
needs, with few steps per line: parsing a whole note takes three times as long as indexing it (2026-11-17).
``make_excerpt`` returns the part of a text with the most query words. ``get_index_path`` is never inside the vault,
because Lamella only reads the vault, and the vault may be synced or shared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from lamella.core.text.content import INLINE_CODE, UNSPACED_SCRIPTS
from lamella.errors import SettingError
from lamella.files import resolve_path
from lamella.retrieval.words import QueryWord
from lamella.sources.markdown import iter_inline_tags

# The size of a chunk, about a page. In longer passages the relevant text is hard to find.
CHUNK_CHARS = 2_000
# Every chunk is stored with all headings above it, so one long heading above ten thousand sections would be stored ten
# thousand times. Of a longer heading only the beginning counts as heading, and all of it as text. Notes that people
# write have fewer headings than the maximum. Further headings are treated as text.
_MAX_HEADING_CHARS, _MOST_HEADINGS = 300, 10_000
_HEADING_OR_FENCE = re.compile(r"\n {0,3}+(?=[#`~])(?:(#{1,6})(?:[ \t]+([^\n]*))?(?=\n|\Z)|(`{3,}|~{3,})([^\n]*))")
_TAG_START = re.compile(r"#[^\s#]")
_INLINE_CODE = re.compile(INLINE_CODE)
_CHARS_BEFORE_TAG = frozenset("*~=|>")
_CHUNK_SEPARATORS = ("\n\n", "\n", " ")


class Chunk(NamedTuple):
    """A piece of a note: the headings above it, the highest first, and its text without them."""

    headings: tuple[str, ...]
    text: str


class _Heading(NamedTuple):
    level: int
    text: str
    start: int
    end: int


def split_into_chunks_and_tags(body: str) -> tuple[list[Chunk], list[str]]:
    """Return the chunks of a note's body and the tags in its text. An empty body has one empty chunk."""
    text = f"\n{body}"
    headings, code = _find_headings_and_code(text)
    chunks = [
        Chunk(path, piece) for path, section in _iter_sections(text, headings) for piece in _split_section(section)
    ]
    return chunks or [Chunk((), "")], list(_iter_tags(text, code))


def chunk_ids(path: str, chunks: Sequence[Chunk]) -> list[str]:
    """Return an id for each chunk, made of the path and the headings, with a number where these are equal.

    A chunk therefore keeps its id as long as its position stays the same, even if the rest of the note or the index
    changes.
    """
    used_ids: set[str] = set()
    numbers: dict[str, int] = {}
    names = []
    for chunk in chunks:
        name = base_id = "#".join((path, *chunk.headings))
        while name in used_ids:
            numbers[base_id] = numbers.get(base_id, 0) + 1
            name = f"{base_id}~{numbers[base_id]}"
        used_ids.add(name)
        names.append(name)
    return names


def _find_headings_and_code(text: str) -> tuple[list[_Heading], list[tuple[int, int]]]:
    """Return the headings outside of code blocks, and the start and end of each code block."""
    headings: list[_Heading] = []
    code: list[tuple[int, int]] = []
    fence, since = "", 0
    for match in _HEADING_OR_FENCE.finditer(text):
        hashes, title, marks, words = match.groups()
        if fence:
            if marks and marks.startswith(fence) and not words.strip():
                code.append((since, match.end()))
                fence = ""
        elif hashes:
            if len(headings) < _MOST_HEADINGS:
                headings.append(_make_heading(len(hashes), (title or "").strip(), match.span()))
        elif marks[0] == "~" or "`" not in words:
            fence, since = marks, match.start()
    if fence:
        code.append((since, len(text)))
    return headings, code


def _make_heading(level: int, title: str, span: tuple[int, int]) -> _Heading:
    # Hash signs that close a heading are not part of it. Hash signs at the end of a word are.
    bare = title.rstrip("#")
    title = bare.rstrip() if not bare or bare[-1] in " \t" else title
    start, end = span
    if len(title) > _MAX_HEADING_CHARS:
        return _Heading(level, title[:_MAX_HEADING_CHARS].strip(), start, start)
    return _Heading(level, title, start, end)


def _iter_sections(text: str, headings: Sequence[_Heading]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the headings and the text of each section. A heading that is followed only by lower ones has none."""
    opening = text[: headings[0].start if headings else len(text)].strip()
    if opening:
        yield (), opening
    above: list[_Heading] = []
    # The sentinel after the last heading has the highest rank, so that an empty last section is not left out.
    for heading, after in pairwise((*headings, _Heading(0, "", len(text), len(text)))):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        section = text[heading.end : after.start].strip()
        if section or after.level <= heading.level:
            yield tuple(one.text for one in above), section


def _split_section(section: str) -> Iterator[str]:
    """Split a section into pieces of about a page, between paragraphs, lines or words, or else anywhere."""
    if len(section) <= CHUNK_CHARS:
        yield section
        return
    start = 0
    while len(section) - start > CHUNK_CHARS:
        least, most = start + CHUNK_CHARS // 2, start + CHUNK_CHARS
        found = (section.rfind(mark, least, most) for mark in _CHUNK_SEPARATORS)
        end = next((at for at in found if at > 0), most)
        yield section[start:end].strip()
        start = end
    yield section[start:].strip()


def _iter_tags(text: str, code: Sequence[tuple[int, int]]) -> Iterator[str]:
    # Each section between code blocks is searched as a whole. Most notes have no code block or no tag.
    ends = [0, *(at for span in code for at in span), len(text)]
    for start, end in list(pairwise(ends))[::2]:
        seen = start
        for match in _TAG_START.finditer(text, start, end):
            at = match.start()
            if at >= seen and (text[at - 1] in _CHARS_BEFORE_TAG or text[at - 1].isspace()):
                seen = _find_line_end(text, at)
                line = text[text.rfind("\n", 0, at) + 1 : seen]
                yield from (tag for tag, _ in iter_inline_tags(_INLINE_CODE.sub("", line), 0))


def _find_line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


# Excerpts, and where the query words were found.

_FIELD_LABELS = (
    ("title", "title"),
    ("tags", "tags"),
    ("headings", "heading"),
    ("path", "path"),
    ("properties", "properties"),
)
_PASSAGE_CHARS = 300
_WIDE_CHAR = re.compile(rf"[{UNSPACED_SCRIPTS}]")


class QueryWordFinder:
    """The beginnings of all forms of the query words, to find these words in a text."""

    def __init__(self, words: Sequence[QueryWord]) -> None:
        starts = dict.fromkeys(
            (word.text, _get_common_beginning_of_forms(one)) for word in words for one in (word.stem, *word.other_terms)
        )
        self._starts = [(word, start, _WIDE_CHAR.search(word) is not None) for word, start in starts]
        self.words = tuple(dict.fromkeys(word.text for word in words))

    def matched_words(self, folded: str) -> list[str]:
        """Return the query words that a case-folded text contains."""
        return [
            word
            for word, start, wide in self._starts
            if start in folded and (wide or has_word(folded, start, whole=False))
        ]

    def best_position(self, folded: str) -> int:
        """Return the first position where most query words are close together, or 0 if there are none."""
        positions = sorted(at for _, start, _ in self._starts if (at := folded.find(start)) >= 0)
        neighbor_counts = [sum(0 <= other - at < _PASSAGE_CHARS // 2 for other in positions) for at in positions]
        return positions[neighbor_counts.index(max(neighbor_counts))] if positions else 0


def has_word(text: str, word: str, *, whole: bool = True) -> bool:
    """Return whether a text contains a word as a ``whole``, or otherwise as the beginning of a word."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and text[at - 1].isalnum()) and not (whole and text[end : end + 1].isalnum()):
            return True
        at = text.find(word, end)
    return False


def describe_matched_words(terms: QueryWordFinder, fields: Mapping[str, str]) -> str:
    """Describe which query words a chunk contains, and in which of its fields."""
    found = {name: terms.matched_words(fields[field].casefold()) for field, name in _FIELD_LABELS if fields[field]}
    found["text"] = terms.matched_words(f"{fields['body']} {fields['extra']}".casefold())
    matched = [word for word in terms.words if any(word in words for words in found.values())]
    return f"{', '.join(matched)} in {', '.join(name for name, words in found.items() if words)}" if matched else ""


def make_excerpt(text: str, terms: QueryWordFinder | None) -> str:
    """Return a short text unchanged, or the part of a long text with the most query words.

    The part starts at the beginning of a line, or of a word if the line is long.
    """
    if len(text) <= _PASSAGE_CHARS:
        return text
    position = 0 if terms is None else min(terms.best_position(text.casefold()), len(text) - 1)
    line = text.rfind("\n", 0, position) + 1
    start = line if position - line < _PASSAGE_CHARS // 2 else text.rfind(" ", 0, position - _PASSAGE_CHARS // 4) + 1
    end = min(len(text), start + _PASSAGE_CHARS)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def _get_common_beginning_of_forms(stem: str) -> str:
    """Return the common beginning of all forms of a word. A stem may end with a letter that no form has."""
    stem = stem.removesuffix("*")
    return stem[:-1] if stem.endswith("i") and len(stem) > len("xi") else stem


# The path of the index.

_HASH_DIGITS = 16
_MAX_NAME_CHARS = 40
_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")


def get_index_path(vault: Path, folder: str | None = None, *, file_suffix: str = "") -> Path:
    """Return the index file of a vault, in ``folder`` or by default in the system's cache folder.

    ``description`` distinguishes the index of code from that of notes.
    """
    return _index_folder(folder) / f"{vault_key(vault)}{f'-{file_suffix}' if file_suffix else ''}.db"


def vault_key(vault: Path) -> str:
    """Return a unique key for a vault: its folder name and a hash of its path."""
    root = resolve_path(vault)
    name = _UNSAFE_CHARS.sub("-", root.name).strip("-.")[:_MAX_NAME_CHARS] or "vault"
    # The hash is of the real path: two vaults with the same name have two keys, and a linked vault has one.
    mark = sha256(str(root).encode(errors="surrogateescape")).hexdigest()[:_HASH_DIGITS]
    return f"{name}-{mark}"


def _index_folder(folder: str | None) -> Path:
    if folder:
        return resolve_path(folder)
    from platformdirs import user_cache_path

    cache_folder = user_cache_path("lamella", appauthor=False) / "indexes"
    if not cache_folder.is_absolute():
        # Without a home folder the path would be relative to the current folder.
        raise SettingError("There is no home folder to keep an index in.", hint="Set `index_folder` to a folder.")
    return cache_folder
