"""Selecting: from a question and a budget to a selection, over files on a disk or files that are given."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from lamella.adapters.retrieval.database import IndexFile, is_damage
from lamella.adapters.sources.code.fitting import BudgetFit, ShowableCode
from lamella.adapters.sources.code.index.history import refresh_history
from lamella.adapters.sources.code.index.ranking import CodeRanking, RankedFile
from lamella.adapters.sources.code.index.refreshing import CodeRefresher, Tell
from lamella.adapters.sources.code.index.tables import CODE_TABLES, CodeTables, MemoryTables
from lamella.adapters.sources.code.repository.contents import FindSecrets, find_content_fault, hash_content
from lamella.adapters.sources.code.repository.files import (
    CodeFiles,
    CodeListing,
    FolderFiles,
    GivenFiles,
    Hides,
    read_code,
)
from lamella.adapters.sources.code.skeletons.skeleton import MISSING, RULES, build_skeleton
from lamella.errors import CallError, SourceMissingError
from lamella.holdings import CodeFile, CodeForm, CodeSelection

_NOT_CHOSEN = "{rank:,} of {count:,} in the ranking, and the budget is used up"
_LEFT_TOLD = 3
# What speaks for a file whatever the question is.
_ANYHOW = {"recent"}


class SecretLook(Protocol):
    """What tells a secret in a text: letters that one of them cannot be without, and where they are one."""

    @property
    def anchors(self) -> tuple[str, ...]: ...

    @property
    def find(self) -> FindSecrets: ...


class CodeSelector:
    """Chooses from the files of one place. What was learned of them lasts as long as the tables do."""

    def __init__(self, tables: CodeTables, files: CodeFiles, *, secrets: SecretLook) -> None:
        self._tables, self._files, self._secrets = tables, files, secrets
        self._missed = False

    def select(
        self,
        question: str,
        *,
        root: str,
        budget: int,
        count: Callable[[str], int],
        touched: Collection[str] = (),
        tell: Tell | None = None,
    ) -> CodeSelection:
        """The files that fit a question best, in a budget; ``root`` is what the place is called."""
        refresher = CodeRefresher(self._tables, self._files, anchors=self._secrets.anchors, find=self._secrets.find)
        listing = refresher.refresh(tell=tell)
        if isinstance(self._files, FolderFiles):
            refresh_history(self._tables, self._files.git)
        if not listing.states:
            raise _nothing_there(root, listing)
        ranked = CodeRanking(self._tables).rank(question, among=listing.states.keys(), touched=touched)
        self._missed = False
        fit = BudgetFit(root, question, budget=budget, count=count, show=self._show)
        files, overview, text, tokens = fit.fit(ranked, count=len(ranked))
        if not files:
            raise _too_small(budget, ranked[0].path, tokens)
        told = (*listing.told, *([MISSING] if self._missed else []), *self._tell_poor(files, budget))
        return CodeSelection(
            root=root,
            question=question,
            budget=budget,
            tokens=tokens,
            text=text,
            overview=overview,
            files=tuple(files),
            left_out=(*listing.left_out, *_list_behind(ranked, {one.path for one in files})),
            told=told,
        )

    def _tell_poor(self, files: Sequence[CodeFile], budget: int) -> Iterator[str]:
        """What is to be known of a selection that is of little use."""
        if all(one.parts.keys() <= _ANYHOW for one in files):
            yield "No file has anything of the question: these are the ones that changed last. Try other words."
        shown = (self._show(one.path) for one in files)
        if all(one.form is CodeForm.NAME for one in files) and any(one and one.text.strip() for one in shown):
            yield (
                f"Nothing fits into {budget:,} tokens but names: no file in full, and none as a skeleton."
                " Give a larger budget."
            )

    def _show(self, path: str) -> ShowableCode | None:
        data, fault = read_code(self._files, path)
        if fault is not None:
            return None
        # It may have changed since it was indexed: what is shown is looked at again.
        text, fault = find_content_fault(data, anchors=self._secrets.anchors, find=self._secrets.find)
        return None if fault is not None else ShowableCode(text, lambda: self._find_skeleton(path, data, text))

    def _find_skeleton(self, path: str, data: bytes, text: str) -> str:
        """The skeleton of a text, as it was made before if it was."""
        ending = path.rpartition(".")[2]
        key = hash_content(data + b"\0" + ending.encode("utf-8", "replace"))
        rows = self._tables.run("SELECT text FROM skeletons WHERE hash = ? AND rules = ?", (key, RULES))
        if rows:
            return str(rows[0][0])
        skeleton, missed = build_skeleton(path, text)
        self._missed |= missed
        if not missed:
            self._tables.run("INSERT OR REPLACE INTO skeletons VALUES (?, ?, ?)", (key, RULES, skeleton))
        return skeleton


def select_folder(
    folder: Path,
    question: str,
    *,
    index: Path,
    secrets: SecretLook,
    hides: Hides | None = None,
    root: str,
    budget: int,
    count: Callable[[str], int],
    touched: Collection[str] = (),
    tell: Tell | None = None,
) -> CodeSelection:
    """A selection from a folder, with an index that lasts; one that is damaged is made anew."""
    files = FolderFiles(folder, hides=hides)
    kept = IndexFile(index, tables=CODE_TABLES)
    try:
        selector = CodeSelector(kept, files, secrets=secrets)

        def select() -> CodeSelection:
            return selector.select(question, root=root, budget=budget, count=count, touched=touched, tell=tell)

        try:
            return select()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            kept.make_anew(f"it was damaged ({error})", damaged=True)
            return select()
    finally:
        kept.close()


def select_given(
    given: Mapping[str, str],
    question: str,
    *,
    secrets: SecretLook,
    budget: int,
    count: Callable[[str], int],
    touched: Collection[str] = (),
) -> CodeSelection:
    """A selection from files that came with their contents; nothing of them is kept."""
    tables = MemoryTables()
    try:
        selector = CodeSelector(tables, GivenFiles(given), secrets=secrets)
        return selector.select(question, root="", budget=budget, count=count, touched=touched)
    finally:
        tables.close()


def _list_behind(ranked: Sequence[RankedFile], chosen: Collection[str]) -> list[tuple[str, str]]:
    return [
        (one.path, _NOT_CHOSEN.format(rank=rank, count=len(ranked)))
        for rank, one in enumerate(ranked, start=1)
        if one.path not in chosen
    ]


def _nothing_there(root: str, listing: CodeListing) -> SourceMissingError:
    some = "; ".join(f"{path}: {why}" for path, why in listing.left_out[:_LEFT_TOLD])
    return SourceMissingError(
        f"There is nothing to choose from in {root or 'what was given'}: {len(listing.left_out):,} left out.",
        hint=f"Left out are, among others: {some}." if some else "It has no files.",
    )


def _too_small(budget: int, path: str, tokens: int) -> CallError:
    return CallError(
        f"A budget of {budget:,} tokens does not hold the name of one file: {path} would be the first, and saying "
        f"what is chosen takes {tokens:,} without it.",
        hint="Give a larger budget; 20,000 hold a few files and many skeletons.",
    )
