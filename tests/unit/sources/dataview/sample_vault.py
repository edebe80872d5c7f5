"""A small vault of books, in memory, and questions to it."""

from collections.abc import Mapping, Sequence
from datetime import date

from lamella.errors import SourceUnreadableError
from lamella.files import FileStat
from lamella.sources.dataview.notes import FileState
from lamella.sources.dataview.results import DataviewCache, DataviewEngine, QueryAnswer

DUNE = """---
tags: [book/scifi]
rating: 5
author: "[[Frank Herbert]]"
read: 2026-03-01
---
A desert. #Classic
pages:: 412
## To do
- [ ] Lend it to Jo [due:: 2026-11-20]
    - [x] Find it
- [x] Buy it ✅ 2026-01-02
"""
EMMA = """---
tags: book
rating: 4
aliases: [Miss Woodhouse]
---
(pages:: 320) See [[Dune]].
"""
BOOKS = {
    "Books/Dune.md": DUNE,
    "Books/Emma.md": EMMA,
    "Books/Unread/Ulysses.md": "---\ntags: [book]\nrating: null\n---\n[pages:: 732] `[pages:: 1]`\n",
    "Home.md": "# Home\n[[Books/Emma]]\n",
    "People/Frank Herbert.md": "Wrote [[Dune]]. #person\n**Born**:: 1920-10-08\nDied On:: 1986-02-11\n",
    "daily/2026-11-15.md": "Read [[Emma]] and [[Dune|the desert]].\n- [ ] call #phone\n- [/] think 📅 2026-11-16\n",
}
TODAY = date(2026, 11, 15)
MOMENT = 1_700_000_000_000_000_000


class TextFiles:
    """Notes in memory: each is as old as it is long, unless told; ``reads`` counts how often one was read."""

    def __init__(self, texts: Mapping[str, str] = BOOKS) -> None:
        self.texts = dict(texts)
        self.times: dict[str, int] = {}
        self.reads: list[str] = []
        self.left_out: list[str] = []
        self.is_settled = True

    def list_states(self) -> Sequence[FileState]:
        return [
            FileState(path=path, file_stat=self._tell(path, text), is_settled=self.is_settled)
            for path, text in sorted(self.texts.items())
        ]

    def _tell(self, path: str, text: str) -> FileStat:
        time = self.times.get(path, MOMENT)
        return FileStat(size=len(text), modified_ns=time, changed_ns=time, inode=1, device=1)

    def read_text(self, path: str) -> str:
        self.reads.append(path)
        if "\x00" in self.texts[path]:
            raise SourceUnreadableError(f"{path} is not UTF-8.", hint="Save it.")
        return self.texts[path]

    def list_unreadable(self) -> Sequence[str]:
        return self.left_out


def open_answers(texts: Mapping[str, str] = BOOKS, *, today: date | None = TODAY) -> DataviewEngine:
    return DataviewEngine(TextFiles(texts), DataviewCache(), None if today is None else lambda: today)


def ask(query: str, texts: Mapping[str, str] = BOOKS, *, path: str = "Home.md") -> QueryAnswer:
    return open_answers(texts).answer(query, path=path)


def rows(query: str, texts: Mapping[str, str] = BOOKS, *, path: str = "Home.md") -> list[str]:
    """The rows that a query answers, as they are told."""
    answer = ask(query, texts, path=path)
    assert not answer.error, answer.error
    return answer.text.split("\n")[1:]
