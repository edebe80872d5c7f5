"""The memory beyond single conversations, in Markdown files that people may read and edit.

``MemoryFileStore`` has one file for facts and one for recent conversations. ``parse_facts`` finds the facts of a file,
and ``replace_fact_lines`` and ``append_line`` change it. Each line is a fact, with or without a bullet; indented lines
below belong to it. Headings, rules, blank lines and comments are not facts: they belong to the person who reads the
file, and they stay unchanged.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock

from lamella.conversation.validation import check_text
from lamella.core.prompt.layers.model import MAX_FACT_CHARS, normalize_fact_line
from lamella.core.text.content import encode_text, normalize_line_ends
from lamella.errors import BadInputError, InvalidOperationError, SourceUnreadableError, StoreUnavailableError
from lamella.files import file_lock, make_data_folder, read_regular_file, replace_file, write_new_file
from lamella.ports import Fact, FactKind, FileChange
from lamella.vault_writer import render_diff

_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_COMMENT = re.compile(r"<!--(.*?)(?:-->|$)")
_MODEL_COMMENT = "noted by a model"
_CHAT_COMMENT_PREFIX = "chat "
_ID_DIGITS = 8

# A fact, the number of its first line in the file, and the number of the first line after it.
LocatedFact = tuple[Fact, int, int]


def parse_facts(text: str, *, is_recent_file: bool) -> list[LocatedFact]:
    """Return every fact in the text of a file. With ``is_recent_file``, the lines are about recent conversations."""
    found: list[LocatedFact] = []
    for start, end, raw in _iter_fact_lines(text):
        plain = _COMMENT.sub(" ", raw)
        bullet = _BULLET.match(plain)
        fact = normalize_fact_line(plain[bullet.end() :] if bullet else plain)
        if any(character.isalnum() for character in fact):
            found.append((_make_fact(fact, raw, is_recent_file=is_recent_file), start, end))
    return found


def _iter_fact_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield possible facts: the first line number, the line number after the last, and the lines joined to one."""
    start, parts, in_comment = 0, [""], False
    for number, line in enumerate(text.split("\n")):
        is_continuation = bool(parts[0]) and line[:1].isspace() and line.strip() and not _BULLET.match(line)
        if is_continuation and not in_comment:
            parts.append(line)
            continue
        if parts[0]:
            yield start, number, " ".join(parts)
        in_comment, plain = _strip_comment(line, in_comment=in_comment)
        start, parts = number, ["" if not plain.strip() or _HEADING.match(plain) else line if plain == line else plain]
    if parts[0]:
        yield start, start + len(parts), " ".join(parts)


def _strip_comment(line: str, *, in_comment: bool) -> tuple[bool, str]:
    """Return whether a comment is open after a line, and the part of the line outside multi-line comments."""
    if in_comment:
        _, ends, line = line.partition("-->")
        if not ends:
            return True, ""
    open_at = line.rfind("<!--")
    opens = open_at >= 0 and "-->" not in line[open_at:]
    return opens, line[:open_at] if opens else line


def _make_fact(text: str, raw: str, *, is_recent_file: bool) -> Fact:
    """Build a fact. Comments on its line say whether a model noted it, or which conversation it is about."""
    comments = [comment.strip() for comment in _COMMENT.findall(raw)]
    chat = next(
        (one.removeprefix(_CHAT_COMMENT_PREFIX).strip() for one in comments if one.startswith(_CHAT_COMMENT_PREFIX)), ""
    )
    kind = FactKind.RECENT if is_recent_file else FactKind.NOTED if _MODEL_COMMENT in comments else FactKind.SAVED
    return Fact(id=sha256(text.encode()).hexdigest()[:_ID_DIGITS], kind=kind, text=text, conversation_key=chat)


def normalize_fact(text: str, kind: FactKind, *, conversation_key: str = "") -> Fact:
    """Build a fact exactly as its line would be read back from the file."""
    return parse_facts(
        _render_line(_escape_comments(text), kind, conversation_key), is_recent_file=kind is FactKind.RECENT
    )[0][0]


def render_fact(fact: Fact) -> str:
    """Render the line of a fact."""
    return _render_line(fact.text, fact.kind, fact.conversation_key)


def _render_line(text: str, kind: FactKind, conversation_key: str) -> str:
    # A conversation key is letters and digits, or a name in old data. Dashes that could end the comment are removed.
    mark = (
        _MODEL_COMMENT
        if kind is FactKind.NOTED
        else f"{_CHAT_COMMENT_PREFIX}{conversation_key.replace('--', '')}"
        if conversation_key
        else ""
    )
    line = f"- {' '.join(text.split())}"
    return f"{line} <!-- {mark} -->" if mark else line


def _escape_comments(text: str) -> str:
    """Return the text with comment delimiters broken up, so that they stay readable and delimit nothing."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def append_line(text: str, line: str, *, heading: str) -> str:
    """Return the text of a file with one more line at its end. An empty file gets a heading first."""
    before = text.rstrip("\n") or f"# {heading}\n"
    return f"{before}\n{line}\n"


def replace_fact_lines(text: str, located_fact: LocatedFact, line: str | None) -> str:
    """Return the text of a file with a fact replaced by ``line``, or removed if ``line`` is None."""
    _, start, end = located_fact
    lines = text.split("\n")
    return "\n".join((*lines[:start], *([] if line is None else [line]), *lines[end:]))


# The files of a memory.

FACTS_FILE, RECENT_FILE = "facts.md", "recent.md"
# Size limit of a memory file. People read it, and its lines are sent to models, so it is not meant to be longer.
MAX_MEMORY_BYTES = 256_000

_HEADINGS = {FACTS_FILE: "Saved facts", RECENT_FILE: "Recent conversations"}
_LOCK_FILE = ".lock"


class MemoryFileStore:
    """A memory in a folder. Facts are numbered from 1, in the order in which ``read`` returns them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = RLock()

    def read(self) -> Sequence[Fact]:
        """Return every fact in the order of its file, then one line for each recent conversation, the latest last."""
        return [fact for _, found in self._read_all_facts() for fact, _, _ in found]

    def _read_all_facts(self) -> list[tuple[str, list[LocatedFact]]]:
        return [
            (file, parse_facts(self._read_file(file), is_recent_file=file == RECENT_FILE))
            for file in (FACTS_FILE, RECENT_FILE)
        ]

    def add(self, text: str, *, kind: FactKind = FactKind.SAVED, conversation_key: str = "") -> tuple[Fact, bool]:
        """Add a fact, and return it with whether it is new.

        A fact that exists already, in any case, is not written twice. A recent conversation has one line, its latest.
        """
        file = RECENT_FILE if kind is FactKind.RECENT else FACTS_FILE
        fact = normalize_fact(_validate_fact_text(text), kind, conversation_key=conversation_key)
        with self._lock_memory_file():
            same, after = self._with_fact(fact, file, self._read_file(file))
            if same is not None:
                return same, False
            self._write_file(file, after)
        return fact, True

    def plan_add(self, text: str, *, kind: FactKind = FactKind.SAVED) -> FileChange:
        """Return the change that adding a fact would make to its file. It is empty if the fact exists already."""
        before, path = self._read_file(FACTS_FILE), str(self.folder / FACTS_FILE)
        _, after = self._with_fact(normalize_fact(_validate_fact_text(text), kind), FACTS_FILE, before)
        diff = render_diff(path, before or None, after)
        return FileChange(path=path, before=before or None, after=after, diff=diff, is_memory=True)

    def _with_fact(self, fact: Fact, file: str, before: str) -> tuple[Fact | None, str]:
        """Return the existing fact with the same text, if there is one, and the text of the file with this fact."""
        facts = parse_facts(before, is_recent_file=file == RECENT_FILE)
        same = next((one for one, _, _ in facts if one.text.casefold() == fact.text.casefold()), None)
        if same is not None and same.conversation_key == fact.conversation_key:
            return same, before
        if fact.conversation_key:
            before = _without_facts(before, [one for one in facts if one[0].conversation_key == fact.conversation_key])
        after = append_line(before, render_fact(fact), heading=_HEADINGS[file])
        # Below a comment that is not closed, the new line would be part of the comment.
        if all(one.text != fact.text for one, _, _ in parse_facts(after, is_recent_file=file == RECENT_FILE)):
            raise BadInputError(
                f"{self.folder / file} has a comment that does not end: nothing below it is remembered.",
                hint="End it there with -->, and add this again.",
            )
        return None, after

    def remove(self, selector: str) -> Fact:
        """Remove a fact, by its number, its id, or words that occur only in it, and return it."""
        return self._change_fact(selector, lambda _fact: None)

    def edit(self, selector: str, text: str) -> Fact:
        """Replace the text of a fact. It then counts as saved by the user, even if a model noted it."""

        def change(old: Fact) -> Fact:
            kind = old.kind if old.kind is FactKind.RECENT else FactKind.SAVED
            return normalize_fact(_validate_fact_text(text), kind, conversation_key=old.conversation_key)

        return self._change_fact(selector, change)

    def forget_conversation(self, conversation_key: str) -> bool:
        """Remove the lines about a conversation, by its key, and return whether there were any."""
        # Checked first without the locks: ``_locked`` would create the folder even if there is nothing to remove.
        if all(fact.conversation_key != conversation_key for fact in self.read()):
            return False
        with self._lock_memory_file():
            text = self._read_file(RECENT_FILE)
            from_conversation = [
                one for one in parse_facts(text, is_recent_file=True) if one[0].conversation_key == conversation_key
            ]
            if from_conversation:
                self._write_file(RECENT_FILE, _without_facts(text, from_conversation))
        return bool(from_conversation)

    def _change_fact(self, selector: str, change: Callable[[Fact], Fact | None]) -> Fact:
        """Replace one fact, or remove it if ``change`` returns None. Return the new fact, or the removed one."""
        with self._lock_memory_file():
            facts = [(file, one) for file, found in self._read_all_facts() for one in found]
            file, found = facts[_find_fact_index(selector, [one[0] for _, one in facts])]
            after = change(found[0])
            line = None if after is None else render_fact(after)
            self._write_file(file, replace_fact_lines(self._read_file(file), found, line))
        return after or found[0]

    def _read_file(self, file: str) -> str:
        path = self.folder / file
        hint = "Mend it, or move it away."
        try:
            if path.is_symlink():
                # In a folder that another person made, a link could lead to any file of the user.
                raise SourceUnreadableError(f"{path} is a link, and none is followed here.", hint="Put the file there.")
            return normalize_line_ends(
                read_regular_file(path, limit=MAX_MEMORY_BYTES, hint="Take out of it what is not to be sent.").decode()
            )
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(f"{path} is not UTF-8 at byte {error.start:,}.", hint=hint) from error
        except OSError as error:
            raise SourceUnreadableError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error

    def _write_file(self, file: str, text: str) -> None:
        path, data = self.folder / file, encode_text(text)
        if len(data) > MAX_MEMORY_BYTES:
            raise InvalidOperationError(
                f"With that {path} would have {len(data):,} bytes; {MAX_MEMORY_BYTES:,} are read.",
                hint="Take out of it what is no longer so.",
            )
        (replace_file if path.exists() else write_new_file)(path, data)

    @contextmanager
    def _lock_memory_file(self) -> Iterator[None]:
        """Lock the memory while files are read and rewritten.

        Otherwise a line could be lost if two writers add facts at once. The thread lock covers this process, the lock
        file covers other processes.
        """
        try:
            with self._lock:
                make_data_folder(self.folder)
                with file_lock(self.folder / _LOCK_FILE):
                    yield
        except OSError as error:
            raise StoreUnavailableError(
                f"The memory in {self.folder} cannot be written: {error.strerror or error}.",
                hint="Permit writing there, or set memory_folder to another folder.",
            ) from error


def _validate_fact_text(text: str) -> str:
    """Return a fact as one line; raise if it is too long or has no letters or digits."""
    fact = " ".join(check_text(text, "the fact").split())
    if len(fact) > MAX_FACT_CHARS:
        raise InvalidOperationError(
            f"A fact of {len(fact):,} characters is too long; {MAX_FACT_CHARS:,} are taken.",
            hint="Say it shorter, or write a note and attach it.",
        )
    if not any(character.isalnum() for character in fact):
        raise InvalidOperationError("There is nothing to remember in that.", hint="Say it in words.")
    return fact


def _find_fact_index(selector: str, facts: Sequence[Fact]) -> int:
    """Return the index of the fact that ``selector`` names: by id or whole text, by number, or by words."""
    listed = list(range(len(facts)))
    target = " ".join(check_text(selector, "the fact").split()).casefold()
    by_number = [at for at in listed if target == str(at + 1)]
    by_name = [at for at in listed if target in (facts[at].id, facts[at].text.casefold())]
    by_words = [at for at in listed if target and target in facts[at].text.casefold()]
    found = by_name or by_number or by_words
    if len(found) == 1 or (found and found is not by_words):
        return found[0]
    if found:
        numbers = ", ".join(str(at + 1) for at in found[:5])
        raise InvalidOperationError(f"{len(found)} facts have these words: {numbers}.", hint="Name one by its number.")
    raise InvalidOperationError(
        f"No fact is {selector!r}; there are {len(facts):,}.", hint="Name one by its number, its id or words of it."
    )


def _without_facts(text: str, located_facts: Sequence[LocatedFact]) -> str:
    # From the last to the first, so that the line numbers of the others stay valid.
    for one in reversed(located_facts):
        text = replace_fact_lines(text, one, None)
    return text
