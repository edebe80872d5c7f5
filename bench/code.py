"""Choosing files of repositories beside SQLite's own full-text search with its defaults, over the same files.

What is found is counted on questions that no weight was chosen by; the other half is told beside it.
"""

import math
import os
import re
import shutil
import sqlite3
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.codebases import Codebase, Question, make_codebases, split_questions
from bench.verdicts import Verdicts
from lamella.code import CodeForm, CodeSelection, select_code

FIRST = 10
BUDGET = 20_000
FEW, MANY = 1_000, 10_000
ROUNDS = 3
_WORD = re.compile(r"[^\W_]+")
_BIAS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Whether a needed file was among the first ten, was in the budget, and was there in full; ours, then plain."""

    first: tuple[bool, bool]
    chosen: tuple[bool, bool]
    full: tuple[bool, bool]


class PlainCode:
    """FTS5 as it comes: a row for each file, its own tokenizer and ranking, words joined by OR; whole files."""

    def __init__(self, root: Path, paths: Sequence[str], count: Callable[[str], int]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE plain USING fts5(path UNINDEXED, body)")
        self._texts = {path: (root / path).read_text("utf-8") for path in paths}
        self._database.executemany("INSERT INTO plain VALUES (?, ?)", self._texts.items())
        self._count, self._tokens = count, dict[str, int]()

    def rank(self, question: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
        sql = "SELECT path FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 200"
        return [path for (path,) in self._database.execute(sql, (match,))]

    def choose(self, ranked: Sequence[str], budget: int = BUDGET) -> set[str]:
        """Whole files in the order of the ranking, passing over those that do not fit."""
        chosen = set()
        for path in ranked:
            if path not in self._tokens:
                self._tokens[path] = self._count(self._texts[path])
            if self._tokens[path] <= budget:
                budget -= self._tokens[path]
                chosen.add(path)
        return chosen


def bench_code(verdicts: Verdicts) -> None:
    """What is found beside full-text search; the second question beside the first; growth."""
    with TemporaryDirectory() as folder:
        os.environ["LAMELLA_INDEX_FOLDER"] = f"{folder}/indexes"
        try:
            _bench_quality(verdicts, Path(folder))
            _bench_again(verdicts, Path(folder))
            _bench_growth(verdicts, Path(folder))
        finally:
            del os.environ["LAMELLA_INDEX_FOLDER"]


def _bench_quality(verdicts: Verdicts, folder: Path) -> None:
    halves: tuple[dict[str, list[Found]], ...] = ({}, {})
    for codebase in make_codebases(folder / "bases"):
        for half, asked in zip(halves, split_questions(codebase.questions), strict=True):
            half.setdefault(codebase.name, []).extend(find_all(codebase, asked))
    for name, half in zip(("chosen by", "held out"), halves, strict=True):
        print(f"code, questions {name}:", flush=True)
        for group, found in (*half.items(), ("all", [one for some in half.values() for one in some])):
            _print_scores(group, found)
    held = [one for some in halves[1].values() for one in some]
    verdicts.at_least("code: a needed file among the first ten, over FTS5", _ratio([one.first for one in held]), 1.05)
    verdicts.at_least("code: a needed file in 20,000 tokens, over FTS5", _ratio([one.chosen for one in held]), 1.3)


def find_all(codebase: Codebase, questions: Sequence[Question]) -> Iterator[Found]:
    """What becomes of each question, ours and plainly; both choose from the same files."""
    if not questions:
        return
    count = _make_counter()
    plain: PlainCode | None = None
    for question in questions:
        selection = select_code(codebase.root, question.text, budget=BUDGET)
        assert count(selection.text) <= BUDGET, "a selection is over its budget"
        if plain is None:
            plain = PlainCode(codebase.root, list_candidates(selection), count)
        ranked = plain.rank(question.text)
        yield _judge(question, selection, ranked, plain.choose(ranked))


def list_candidates(selection: CodeSelection) -> list[str]:
    """All files that could have been chosen: those that were, and those that the budget has left out."""
    behind = [path for path, why in selection.left_out if why.endswith("used up")]
    return sorted([*(one.path for one in selection.files), *behind])


def _judge(question: Question, selection: CodeSelection, ranked: Sequence[str], whole: set[str]) -> Found:
    ours = selection.files
    shown = {one.path for one in ours if one.form is not CodeForm.NAME}
    full = {one.path for one in ours if one.form is CodeForm.FULL}
    first = {one.path for one in ours[:FIRST]}

    def has(paths: set[str]) -> bool:
        return bool(question.needed & paths)

    return Found(
        first=(has(first), has(set(ranked[:FIRST]))),
        chosen=(has(shown), has(whole)),
        full=(has(full), has(whole)),
    )


def _print_scores(group: str, found: Sequence[Found]) -> None:
    shares = {
        name: [sum(getattr(one, name)[side] for one in found) / len(found) for side in (0, 1)]
        for name in ("first", "chosen", "full")
    }
    told = {"first": "among ten", "chosen": "in the budget", "full": "there in full"}
    print(
        f"  {group:>8}, {len(found):3} questions: "
        + "; ".join(f"{told[name]} {ours:.3f}, FTS5 {plain:.3f}" for name, (ours, plain) in shares.items()),
        flush=True,
    )


def _ratio(found: Sequence[tuple[bool, bool]]) -> float:
    return sum(ours for ours, _ in found) / (sum(plain for _, plain in found) + _BIAS)


def _make_counter() -> Callable[[str], int]:
    from lamella.tokenizers.counter import OfflineTokenCounter

    return OfflineTokenCounter().get_tokenizer(None).count


def _bench_again(verdicts: Verdicts, folder: Path) -> None:
    """The second question on a repository beside the first, in the time of the machine: git is another process."""
    root = max((folder / "bases").glob("project-*"))
    ratios = []
    for number in range(ROUNDS):
        os.environ["LAMELLA_INDEX_FOLDER"] = f"{folder}/again-{number}"
        first = _time(lambda: select_code(root, "How is the budget of a prompt counted?", budget=BUDGET))
        second = _time(lambda: select_code(root, "Where are retries of a provider decided?", budget=BUDGET))
        print(f"  project: first question {first:.2f} s, second {second:.2f} s", flush=True)
        ratios.append(second / first)
    verdicts.at_most("code: the second question over the first", median(ratios), 0.2)


def _bench_growth(verdicts: Verdicts, folder: Path) -> None:
    """So many files of the packages that are installed, chosen from for the first time."""
    roots = [_copy_files(folder / f"many-{count}", count) for count in (FEW, MANY)]
    sizes = [sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) for root in roots]
    slopes = []
    for number in range(ROUNDS):
        times = []
        for root, count, size in zip(roots, (FEW, MANY), sizes, strict=True):
            os.environ["LAMELLA_INDEX_FOLDER"] = f"{folder}/growth-{number}"
            first = _time(partial(select_code, root, "parse the headers of a response", budget=BUDGET))
            second = _time(partial(select_code, root, "render a table in colours", budget=BUDGET))
            times.append(first)
            print(
                f"  {count:,} files, {size / 1e6:.0f} MB: {first:.1f} s, the second question {second:.2f} s", flush=True
            )
        slopes.append(math.log(times[1] / times[0]) / math.log(sizes[1] / sizes[0]))
    verdicts.at_most("code: growth of the first question with the bytes, log-log slope", median(slopes), 1.05)


def _copy_files(root: Path, count: int) -> Path:
    home = Path(sysconfig.get_path("purelib"))
    files = [path for path in sorted(home.rglob("*.py")) if path.stat().st_size < 100_000]
    for number in range(count):
        # Spread over all of them, so that few files are like many; once more from the beginning where there are fewer.
        source = files[number * len(files) // count]
        place = root / f"{number % 97:02}" / f"{number:05}-{source.name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
    return root


def _time(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
