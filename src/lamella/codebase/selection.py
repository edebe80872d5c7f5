"""Select code for a question within a budget, and render the selection.

``select_from_folder`` selects from a folder on disk with a persistent index, and ``select_from_texts`` from files given
with their contents. ``BudgetFitter`` decides which ranked files appear in full, as skeletons or by name. Whole files
come first, up to a share of the budget, then skeletons, then names; budget that is left over turns the first skeletons
into whole files. Finally the rendered result is counted, and files are removed from its end until it fits.
"""

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from os.path import commonpath
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple, Protocol

from lamella.codebase.index import (
    CODE_TABLES,
    CodeIndexRefresher,
    CodeRanker,
    CodeTables,
    InMemoryTables,
    ProgressCallback,
    RankedFile,
    refresh_commit_tables,
)
from lamella.codebase.repository import (
    CodeFiles,
    CodeListing,
    FindSecrets,
    FolderFiles,
    InlineFiles,
    IsHidden,
    decode_code_file,
    hash_content,
    try_read_code_bytes,
)
from lamella.codebase.skeletons import PARSER_MISSING_HINT, SKELETON_VERSION, build_skeleton, focus_skeleton
from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy
from lamella.core.text.content import escape_line
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, SourceNotFoundError
from lamella.ports import CodeFile, CodeForm, CodeSelection
from lamella.retrieval.database import IndexFile, is_damage_error

_QUESTION_CHARS = 200
_BACKTICK_RUN = re.compile(r"`{3,}")


def code_path(root: str, path: str) -> str:
    """Return the path of a file, with the name of its root folder in front."""
    return (PurePosixPath(root or ".") / path).as_posix()


def make_overview_artifact(root: str, *, question: str, text: str, policy: AttachmentPolicy | None = None) -> Artifact:
    """Return the overview artifact of a selection. Detaching it detaches all files of the selection."""
    source = ArtifactSource(path=root or ".", query=question, via=format_selection_link(root))
    return make_artifact(ArtifactKind.CODEBASE, text=text, source=source, policy=policy)


def make_code_artifact(
    root: str, path: str, *, text: str, policy: AttachmentPolicy | None = None, is_rereadable: bool = False
) -> Artifact:
    """Return the artifact of one file of a selection, in full."""
    source = ArtifactSource(path=code_path(root, path), via=format_selection_link(root), is_rereadable=is_rereadable)
    return make_artifact(ArtifactKind.CODE, text=text, source=source, policy=policy)


def format_selection_link(root: str) -> str:
    """Return the ``via`` value that links files to the selection they came with."""
    return f"{ArtifactKind.CODEBASE}:{root or '.'}"


def make_selection_artifacts(
    selection: CodeSelection, *, policy: AttachmentPolicy | None = None, read: bool = False
) -> list[Artifact]:
    """Return all artifacts of a selection: its overview, then its files in full."""
    root = selection.root
    overview = make_overview_artifact(root, question=selection.question, text=selection.overview, policy=policy)
    full = (one for one in selection.files if one.form is CodeForm.FULL)
    return [
        overview,
        *(make_code_artifact(root, one.path, text=one.text, policy=policy, is_rereadable=read) for one in full),
    ]


def render_file(root: str, path: str, text: str) -> str:
    """Return a whole file as it appears in a prompt."""
    return render_block(make_code_artifact(root, path, text=text))


def render_selection(root: str, question: str, files: Sequence[CodeFile], *, total_files: int) -> tuple[str, str]:
    """Return the overview of a selection from ``total_files`` files, and the whole selection as prompt text."""
    overview = render_overview(root, question, files, total_files=total_files)
    blocks = [render_block(make_overview_artifact(root, question=question, text=overview))]
    blocks += [render_file(root, one.path, one.text) for one in files if one.form is CodeForm.FULL]
    return overview, "".join(blocks)


def render_overview(root: str, question: str, files: Sequence[CodeFile], *, total_files: int) -> str:
    """Return the overview text: a summary of the selection, the skeletons, and the names.

    The summary names the root folder. If that is an absolute path, the files are named without it, so that the size of
    the overview hardly depends on where the folder is.
    """
    parent = "" if PurePosixPath(root).is_absolute() else root
    by_form = {form: [one for one in files if one.form is form] for form in CodeForm}
    asked = " ".join(question.split())
    shown = asked if len(asked) <= _QUESTION_CHARS else f"{asked[:_QUESTION_CHARS]}…"
    text = (
        f"Chosen from {total_files:,} files of {escape_line(root or '.')} for the question: {escape_line(shown)}\n"
        f"{len(by_form[CodeForm.FULL]):,} in full, {len(by_form[CodeForm.SKELETON]):,} as skeletons, "
        f"{len(by_form[CodeForm.NAME]):,} by name. Attach a path for its whole text."
    )
    pieces = [text, *(render_skeleton(parent, one.path, one.text) for one in by_form[CodeForm.SKELETON])]
    return "\n\n".join((*pieces, *_iter_names(parent, by_form[CodeForm.NAME])))


def render_skeleton(root: str, path: str, text: str) -> str:
    """Return a skeleton in a code block under the name of its file."""
    return f"## {escape_line(code_path(root, path))}\n{_render_code_block(text)}"


def render_name(root: str, path: str) -> str:
    """Return a list item with the name of a file."""
    return f"- {escape_line(code_path(root, path))}"


def _render_code_block(text: str) -> str:
    """Put a text in a code block, with a fence longer than any run of backticks in the text."""
    longest = max((len(found) for found in _BACKTICK_RUN.findall(text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}\n{text}\n{marks}"


def _iter_names(root: str, files: Iterable[CodeFile]) -> Iterator[str]:
    names = [render_name(root, one.path) for one in files]
    if names:
        yield "\n".join(("## Others that may matter", *names))


# The share of the budget for whole files, and for whole files and skeletons together. Tuned on one half of the
# questions of ``bench/code.py`` (2026-11-17).
_FULL_FILES_SHARE, _SHOWN_CODE_SHARE = 0.55, 0.96

# A file that scores below this share of the best score is not shown in full before others are shown as skeletons.
_MIN_FULL_SCORE_SHARE = 0.35
# The share of the budget that one skeleton may take, and characters per token. A longer skeleton is cut down to the
# lines that match the question.
_SKELETON_BUDGET_SHARE, _CHARS_PER_TOKEN = 0.06, 4
# How many files are considered, and how many are listed by name.
_MAX_CONSIDERED_FILES = 150
_MAX_NAMED_FILES = 60
_NAMES_HEADING_TOKENS = 12
_SCORE_DIGITS = 4
# After this many files that do not fit, no smaller one is searched for: files that far down hardly match the question.
_MAX_MISSES = 25


class CodeViews(NamedTuple):
    """The forms in which a file can be shown: its text, and a function that builds its skeleton."""

    text: str
    skeleton: Callable[[], str]


LoadCodeViews = Callable[[str], CodeViews | None]


class BudgetFitter:
    """Fits one selection to a budget. ``load_views`` returns the views of a file.

    The rendered text names no folder above the files: neither ``root``, nor the folder ``parent`` with which all paths
    begin. So the same files are selected wherever a repository is. The overview, which is attached, names ``root``.
    """

    def __init__(
        self,
        root: str,
        question: str,
        *,
        budget: int,
        count_tokens: Callable[[str], int],
        load_views: LoadCodeViews,
        parent: str = "",
    ) -> None:
        self._root, self._parent, self._question = root, parent, question
        self._budget, self._count_tokens, self._load_code_views = budget, count_tokens, load_views
        self._views: dict[str, CodeViews | None] = {}
        self._token_counts: dict[tuple[str, CodeForm], int] = {}

    def fit(self, ranked: Sequence[RankedFile], *, total_files: int) -> tuple[list[CodeFile], str, str, int]:
        """Return the selected files, the overview, the whole rendered text, and its tokens.

        The list of files is empty if not even one name fits. ``total_files`` is the number of files to select from.
        """
        used = self._count_tokens(render_selection("", self._question, [], total_files=total_files)[1])
        remaining_tokens = max(0, self._budget - used)
        chosen = self._choose_form_of_each_file(ranked[:_MAX_CONSIDERED_FILES], remaining_tokens)
        return self._render_selection(
            [self._to_code_file(one, chosen[one.path]) for one in ranked if one.path in chosen], total_files
        )

    def _choose_form_of_each_file(self, ranked: Sequence[RankedFile], available_tokens: int) -> dict[str, CodeForm]:
        """Return the form of each selected file."""
        chosen: dict[str, CodeForm] = {}
        best = ranked[0].score if ranked else 0.0
        close = [one for one in ranked if one.score >= _MIN_FULL_SCORE_SHARE * best]
        # Files that the question names may use the budget of all others. Files that merely match may not.
        named = [one for one in ranked if "named" in one.score_parts]
        spent = int(available_tokens * _SHOWN_CODE_SHARE) - self._add_files(
            named, CodeForm.FULL, chosen, available_tokens=int(available_tokens * _SHOWN_CODE_SHARE)
        )
        left = self._add_files(
            close, CodeForm.FULL, chosen, available_tokens=int(available_tokens * _FULL_FILES_SHARE) - spent
        )
        left = self._add_files(
            ranked,
            CodeForm.SKELETON,
            chosen,
            available_tokens=left
            + int(available_tokens * _SHOWN_CODE_SHARE)
            - int(available_tokens * _FULL_FILES_SHARE),
        )
        left += available_tokens - int(available_tokens * _SHOWN_CODE_SHARE)
        left = self._upgrade_skeletons(ranked, chosen, left - min(left, _NAMES_HEADING_TOKENS + _MAX_NAMED_FILES))
        left += min(_NAMES_HEADING_TOKENS + _MAX_NAMED_FILES, available_tokens)
        self._add_files(
            ranked[: len(chosen) + _MAX_NAMED_FILES],
            CodeForm.NAME,
            chosen,
            available_tokens=left - _NAMES_HEADING_TOKENS,
        )
        return chosen

    def _add_files(
        self, ranked: Iterable[RankedFile], form: CodeForm, chosen: dict[str, CodeForm], *, available_tokens: int
    ) -> int:
        """Add files in this form to ``chosen`` while they fit, and return the tokens that are left."""
        missed = 0
        for one in ranked:
            if one.path in chosen:
                continue
            weight = self._count_file_tokens(one.path, form) if missed < _MAX_MISSES else None
            if weight is None or weight > available_tokens:
                missed += 1
                continue
            chosen[one.path] = form
            available_tokens -= weight
        return available_tokens

    def _upgrade_skeletons(
        self, ranked: Iterable[RankedFile], chosen: dict[str, CodeForm], available_tokens: int
    ) -> int:
        """Turn skeletons into whole files as far as they fit, and return the tokens that are left."""
        for one in ranked:
            if chosen.get(one.path) is CodeForm.SKELETON:
                full, short = (
                    self._count_file_tokens(one.path, CodeForm.FULL),
                    self._count_file_tokens(one.path, CodeForm.SKELETON),
                )
                if full is not None and short is not None and full - short <= available_tokens:
                    chosen[one.path] = CodeForm.FULL
                    available_tokens -= full - short
        return available_tokens

    def _render_selection(self, files: list[CodeFile], total_files: int) -> tuple[list[CodeFile], str, str, int]:
        """Render the selection, removing files from its end until it fits the budget.

        The whole text is counted, because its tokens are not the sum of the tokens of its parts. Names are removed
        first, then skeletons, then whole files.
        """
        while True:
            named = [replace(one, path=self._get_path_for_counting(one.path)) for one in files]
            _, text = render_selection("", self._question, named, total_files=total_files)
            tokens = self._count_tokens(text)
            if tokens <= self._budget or not files:
                overview = render_overview(self._root, self._question, files, total_files=total_files)
                return files, overview, text, tokens
            worst = next((form for form in reversed(CodeForm) if any(one.form is form for one in files)), CodeForm.NAME)
            last = max(at for at, one in enumerate(files) if one.form is worst)
            del files[last]

    def _to_code_file(self, one: RankedFile, form: CodeForm) -> CodeFile:
        shown = self._load_rendered_file(one.path)
        text = "" if shown is None or form is CodeForm.NAME else shown.text
        if shown is not None and form is CodeForm.SKELETON:
            text = self._shorten_skeleton(shown)
        weight = self._count_file_tokens(one.path, form) or 0
        parts = {name: round(value, _SCORE_DIGITS) for name, value in one.score_parts.items()}
        score = round(one.score, _SCORE_DIGITS)
        return CodeFile(path=one.path, form=form, text=text, tokens=weight, score=score, score_parts=parts)

    def _count_file_tokens(self, path: str, form: CodeForm) -> int | None:
        """Return the tokens of a file in a form; None if the file has no such form."""
        key = (path, form)
        if key not in self._token_counts:
            self._token_counts[key] = self._count_form_tokens(path, form)
        return self._token_counts[key] if self._token_counts[key] >= 0 else None

    def _count_form_tokens(self, path: str, form: CodeForm) -> int:
        if form is CodeForm.NAME:
            return self._count_tokens(render_name("", self._get_path_for_counting(path))) + 1
        shown = self._load_rendered_file(path)
        if shown is None or not shown.text.strip():
            return -1
        # Source code has more than one token per fifteen bytes. A text this much longer than the budget cannot fit, and
        # is not counted at all.
        if form is CodeForm.FULL:
            too_long = len(shown.text) > 30 * self._budget
            return (
                -1 if too_long else self._count_tokens(render_file("", self._get_path_for_counting(path), shown.text))
            )
        skeleton = self._shorten_skeleton(shown)
        full = self._count_file_tokens(path, CodeForm.FULL)
        weight = (
            self._count_tokens(render_skeleton("", self._get_path_for_counting(path), skeleton)) + 2 if skeleton else -1
        )
        return -1 if full is not None and weight > full else weight

    def _get_path_for_counting(self, path: str) -> str:
        return path.replace("\\", "/").removeprefix(self._parent) if self._parent else path

    def _shorten_skeleton(self, shown: CodeViews) -> str:
        return focus_skeleton(
            shown.skeleton(), self._question, max_chars=int(self._budget * _SKELETON_BUDGET_SHARE * _CHARS_PER_TOKEN)
        )

    def _load_rendered_file(self, path: str) -> CodeViews | None:
        if path not in self._views:
            self._views[path] = self._load_code_views(path)
        return self._views[path]


# Selection.

_NOT_CHOSEN_REASON = "{rank:,} of {count:,} in the ranking, and the budget is used up"
_MAX_SHOWN_REASONS = 3
# Score parts that do not depend on the question.
_QUESTION_INDEPENDENT_PARTS = {"recent"}


class SecretMatcher(Protocol):
    """Detects secrets in a text.

    A text without any of the ``anchors`` contains no secret, which saves calling ``find_secrets``.
    """

    @property
    def anchors(self) -> tuple[str, ...]: ...

    @property
    def find_secrets(self) -> FindSecrets: ...


class CodeSelector:
    """Selects from the files of one folder. Indexed data lasts as long as the tables do."""

    def __init__(self, tables: CodeTables, files: CodeFiles, *, secrets: SecretMatcher) -> None:
        self._tables, self._files, self._secrets = tables, files, secrets
        self._lacked_parser = False

    def select(
        self,
        question: str,
        *,
        root_label: str,
        budget: int,
        count_tokens: Callable[[str], int],
        touched: Collection[str] = (),
        report: ProgressCallback | None = None,
    ) -> CodeSelection:
        """Return the files that match a question best, within a budget of tokens.

        ``root`` is the display name of the folder. ``touched`` are paths that the conversation has used already.
        """
        refresher = CodeIndexRefresher(
            self._tables, self._files, anchors=self._secrets.anchors, find_secrets=self._secrets.find_secrets
        )
        listing = refresher.refresh(report=report)
        if isinstance(self._files, FolderFiles):
            refresh_commit_tables(self._tables, self._files.git)
        if not listing.states:
            raise _no_files_error(root_label, listing)
        ranked = CodeRanker(self._tables).rank(question, candidates=listing.states.keys(), recent_paths=touched)
        self._lacked_parser = False
        fit = BudgetFitter(
            root_label,
            question,
            budget=budget,
            count_tokens=count_tokens,
            load_views=self._load_rendered_file,
            parent=_common_absolute_folder(listing.states),
        )
        files, overview, text, tokens = fit.fit(ranked, total_files=len(ranked))
        if not files:
            raise _budget_too_small_error(budget, ranked[0].path, tokens)
        reasons = (
            *listing.warnings,
            *([PARSER_MISSING_HINT] if self._lacked_parser else []),
            *self._poor_selection_warnings(files, budget),
        )
        return CodeSelection(
            root=root_label,
            question=question,
            budget=budget,
            tokens=tokens,
            text=text,
            overview=overview,
            files=tuple(files),
            left_out=(*listing.left_out, *_list_unselected(ranked, {one.path for one in files})),
            warnings=reasons,
        )

    def _poor_selection_warnings(self, files: Sequence[CodeFile], budget: int) -> Iterator[str]:
        """Yield warnings about a selection that is of little use."""
        if all(one.score_parts.keys() <= _QUESTION_INDEPENDENT_PARTS for one in files):
            yield "No file matches the question, so the last changed files were selected. Try other words."
        shown = (self._load_rendered_file(one.path) for one in files)
        if all(one.form is CodeForm.NAME for one in files) and any(one and one.text.strip() for one in shown):
            yield (
                f"Nothing fits into {budget:,} tokens but names: no file in full, and none as a skeleton."
                " Give a larger budget."
            )

    def _load_rendered_file(self, path: str) -> CodeViews | None:
        data, fault = try_read_code_bytes(self._files, path)
        if fault is not None:
            return None
        # The file may have changed since it was indexed, so its content is checked again before it is shown.
        text, fault = decode_code_file(data, anchors=self._secrets.anchors, find_secrets=self._secrets.find_secrets)
        return None if fault is not None else CodeViews(text, lambda: self._get_skeleton(path, data, text))

    def _get_skeleton(self, path: str, data: bytes, text: str) -> str:
        """Return the skeleton of a text, from the index if it is there."""
        ending = path.rpartition(".")[2]
        key = hash_content(data + b"\0" + ending.encode("utf-8", "replace"))
        rows = self._tables.execute("SELECT text FROM skeletons WHERE hash = ? AND rules = ?", (key, SKELETON_VERSION))
        if rows:
            return str(rows[0][0])
        skeleton, missed = build_skeleton(path, text)
        self._lacked_parser |= missed
        # A skeleton made without a parser is not saved, so that installing the parser has an effect.
        if not missed:
            self._tables.execute("INSERT OR REPLACE INTO skeletons VALUES (?, ?, ?)", (key, SKELETON_VERSION, skeleton))
        return skeleton


def select_from_folder(
    folder: Path,
    question: str,
    *,
    index: Path,
    secrets: SecretMatcher,
    is_hidden: IsHidden | None = None,
    root: str,
    budget: int,
    count_tokens: Callable[[str], int],
    touched: Collection[str] = (),
    report: ProgressCallback | None = None,
) -> CodeSelection:
    """Return a selection from a folder, using a persistent index. A damaged index is rebuilt."""
    files = FolderFiles(folder, is_hidden=is_hidden)
    kept = IndexFile(index, tables=CODE_TABLES)
    try:
        selector = CodeSelector(kept, files, secrets=secrets)

        def select() -> CodeSelection:
            return selector.select(
                question, root_label=root, budget=budget, count_tokens=count_tokens, touched=touched, report=report
            )

        try:
            return select()
        except sqlite3.DatabaseError as error:
            if not is_damage_error(error):
                raise
            kept.reset(f"it was damaged ({error})", damaged=True)
            return select()
    finally:
        kept.close()


def select_from_texts(
    texts: Mapping[str, str],
    question: str,
    *,
    secrets: SecretMatcher,
    budget: int,
    count_tokens: Callable[[str], int],
    touched: Collection[str] = (),
) -> CodeSelection:
    """Return a selection from files given with their contents; nothing is stored."""
    tables = InMemoryTables()
    try:
        selector = CodeSelector(tables, InlineFiles(texts), secrets=secrets)
        return selector.select(question, root_label="", budget=budget, count_tokens=count_tokens, touched=touched)
    finally:
        tables.close()


def _common_absolute_folder(paths: Iterable[str]) -> str:
    """Return the folder, with its slash, in which all of these absolute paths are; empty if they are relative."""
    found = list(paths)
    if not all(PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute() for path in found):
        return ""
    folders = [PureWindowsPath(path).parent.as_posix().rstrip("/") + "/" for path in found]
    return commonpath(folders).rpartition("/")[0] + "/"


def _list_unselected(ranked: Sequence[RankedFile], chosen: Collection[str]) -> list[tuple[str, str]]:
    return [
        (one.path, _NOT_CHOSEN_REASON.format(rank=rank, count=len(ranked)))
        for rank, one in enumerate(ranked, start=1)
        if one.path not in chosen
    ]


def _no_files_error(root: str, listing: CodeListing) -> SourceNotFoundError:
    some = "; ".join(f"{path}: {why}" for path, why in listing.left_out[:_MAX_SHOWN_REASONS])
    return SourceNotFoundError(
        f"No files to select from in {root or 'the given files'}: {len(listing.left_out):,} were left out.",
        hint=f"Left out, among others: {some}." if some else "It has no files.",
    )


def _budget_too_small_error(budget: int, path: str, tokens: int) -> InvalidOperationError:
    return InvalidOperationError(
        f"A budget of {budget:,} tokens is too small for the name of one file, {path}: the list of files alone "
        f"takes {tokens:,} tokens.",
        hint="Give a larger budget; 20,000 tokens are enough for a few files and many skeletons.",
    )
