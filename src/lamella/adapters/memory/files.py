"""Memory files: one for facts and one for recent conversations, in a folder that people may look into and write to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from lamella.adapters.files.locking import locked
from lamella.adapters.files.reading import read_plain
from lamella.adapters.files.writing import make_folder, replace_file, write_new
from lamella.adapters.memory.lines import Found, append_line, find_facts, make_fact, replace_lines, write_fact
from lamella.adapters.writing.diffs import render_diff
from lamella.core.prompt.layers.memory import LONGEST_FACT
from lamella.core.text.content import encode_text, normalise
from lamella.engine.checks import check_text
from lamella.errors import BadInputError, CallError, SourceUnreadableError, StoreUnavailableError
from lamella.holdings import Fact, FactKind, NoteChange

FACTS, RECENT = "facts.md", "recent.md"
# A file that people read: more than this is not meant to be remembered.
MAX_MEMORY_BYTES = 256_000

_HEADINGS = {FACTS: "Saved facts", RECENT: "Recent conversations"}
_LOCK = ".lock"


class MemoryFiles:
    """A memory in a folder. Facts have numbers, from 1, in the order in which they are told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = RLock()

    def read(self) -> Sequence[Fact]:
        """Every fact in the order of its file, then a line for each recent conversation, the latest last."""
        return [fact for _, found in self._find_all() for fact, _, _ in found]

    def _find_all(self) -> list[tuple[str, list[Found]]]:
        return [(file, find_facts(self._read(file), recent=file == RECENT)) for file in (FACTS, RECENT)]

    def add(self, text: str, *, kind: FactKind = FactKind.SAVED, chat: str = "") -> tuple[Fact, bool]:
        """One more fact, and whether it is new: one that is there is not written twice, whatever its case.

        A recent conversation has one line, its latest.
        """
        file = RECENT if kind is FactKind.RECENT else FACTS
        fact = make_fact(_check(text), kind, chat=chat)
        with self._changing():
            same, after = self._join(fact, file, self._read(file))
            if same is not None:
                return same, False
            self._write(file, after)
        return fact, True

    def plan(self, text: str, *, kind: FactKind = FactKind.SAVED) -> NoteChange:
        """What adding a fact would change, as a difference of its file; nothing where it is there already."""
        before, path = self._read(FACTS), str(self.folder / FACTS)
        _, after = self._join(make_fact(_check(text), kind), FACTS, before)
        diff = render_diff(path, before or None, after)
        return NoteChange(path=path, before=before or None, after=after, diff=diff, remembers=True)

    def _join(self, fact: Fact, file: str, before: str) -> tuple[Fact | None, str]:
        """The fact that is there already, if one says the same; and the text of a file with this one."""
        there = find_facts(before, recent=file == RECENT)
        same = next((one for one, _, _ in there if one.text.casefold() == fact.text.casefold()), None)
        if same is not None and same.chat == fact.chat:
            return same, before
        if fact.chat:
            before = _without(before, [one for one in there if one[0].chat == fact.chat])
        after = append_line(before, write_fact(fact), heading=_HEADINGS[file])
        if all(one.text != fact.text for one, _, _ in find_facts(after, recent=file == RECENT)):
            raise BadInputError(
                f"{self.folder / file} has a comment that does not end: nothing below it is remembered.",
                hint="End it there with -->, and add this again.",
            )
        return None, after

    def remove(self, which: str) -> Fact:
        """Take a fact out, by its number, its id, or words that only it has."""
        return self._change(which, lambda _fact: None)

    def edit(self, which: str, text: str) -> Fact:
        """Another text in place of a fact: it is the user's then, whoever noted it."""

        def change(old: Fact) -> Fact:
            kind = old.kind if old.kind is FactKind.RECENT else FactKind.SAVED
            return make_fact(_check(text), kind, chat=old.chat)

        return self._change(which, change)

    def forget(self, chat: str) -> bool:
        """Take out what tells of a conversation, by its key; whether there was something."""
        if all(fact.chat != chat for fact in self.read()):
            return False
        with self._changing():
            text = self._read(RECENT)
            telling = [one for one in find_facts(text, recent=True) if one[0].chat == chat]
            if telling:
                self._write(RECENT, _without(text, telling))
        return bool(telling)

    def _change(self, which: str, change: Callable[[Fact], Fact | None]) -> Fact:
        """What a fact is afterwards, or was before it was taken out."""
        with self._changing():
            facts = [(file, one) for file, found in self._find_all() for one in found]
            file, found = facts[_choose(which, [one[0] for _, one in facts])]
            after = change(found[0])
            line = None if after is None else write_fact(after)
            self._write(file, replace_lines(self._read(file), found, line))
        return after or found[0]

    def _read(self, file: str) -> str:
        path = self.folder / file
        hint = "Mend it, or move it away."
        try:
            if path.is_symlink():
                # In a folder that somebody else made, it would lead to any file of the user's.
                raise SourceUnreadableError(f"{path} is a link, and none is followed here.", hint="Put the file there.")
            return normalise(
                read_plain(path, limit=MAX_MEMORY_BYTES, hint="Take out of it what is not to be sent.").decode()
            )
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(f"{path} is not UTF-8 at byte {error.start:,}.", hint=hint) from error
        except OSError as error:
            raise SourceUnreadableError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error

    def _write(self, file: str, text: str) -> None:
        path, data = self.folder / file, encode_text(text)
        if len(data) > MAX_MEMORY_BYTES:
            raise CallError(
                f"With that {path} would have {len(data):,} bytes; {MAX_MEMORY_BYTES:,} are read.",
                hint="Take out of it what is no longer so.",
            )
        (replace_file if path.exists() else write_new)(path, data)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Alone while files are read and written again: of two that add something at once none loses a line."""
        try:
            with self._lock:
                make_folder(self.folder)
                with locked(self.folder / _LOCK):
                    yield
        except OSError as error:
            raise StoreUnavailableError(
                f"The memory in {self.folder} cannot be written: {error.strerror or error}.",
                hint="Permit writing there, or set memory_folder to another folder.",
            ) from error


def _check(text: str) -> str:
    said = " ".join(check_text(text, "the fact").split())
    if len(said) > LONGEST_FACT:
        raise CallError(
            f"A fact of {len(said):,} characters is too long; {LONGEST_FACT:,} are taken.",
            hint="Say it shorter, or write a note and attach it.",
        )
    if not any(character.isalnum() for character in said):
        raise CallError("There is nothing to remember in that.", hint="Say it in words.")
    return said


def _choose(which: str, facts: Sequence[Fact]) -> int:
    """The place of the fact that is meant."""
    listed = list(range(len(facts)))
    wanted = " ".join(check_text(which, "the fact").split()).casefold()
    by_number = [at for at in listed if wanted == str(at + 1)]
    by_name = [at for at in listed if wanted in (facts[at].id, facts[at].text.casefold())]
    by_words = [at for at in listed if wanted and wanted in facts[at].text.casefold()]
    found = by_name or by_number or by_words
    if len(found) == 1 or (found and found is not by_words):
        return found[0]
    if found:
        numbers = ", ".join(str(at + 1) for at in found[:5])
        raise CallError(f"{len(found)} facts have these words: {numbers}.", hint="Name one by its number.")
    raise CallError(
        f"No fact is {which!r}; there are {len(facts):,}.", hint="Name one by its number, its id or words of it."
    )


def _without(text: str, found: Sequence[Found]) -> str:
    for one in reversed(found):
        text = replace_lines(text, one, None)
    return text
