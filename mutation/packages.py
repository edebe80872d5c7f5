"""Packages under test: which there are, which tests are theirs, and how many of their mutants survive."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TypeVar

from mutation.mutants import Mutant, sample_mutants
from mutation.source_copy import Outcome, SourceCopy, Suite

PROCESSES = 2

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Folders of the source and of its packages, and the paths of tests relative to ``root``.

    ``own_tests`` are patterns such as ``tests/unit/{package}``. ``modules`` are imported before the first test, with
    all the libraries they need, so that no run has to import those again.
    """

    root: Path
    source: Path
    packages: Path
    own_tests: tuple[str, ...]
    other_tests: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def find_packages(self) -> list[str]:
        """Names of the packages, and of the modules beside them that have tests of their own, sorted."""
        folders = [path.parent.name for path in self.packages.glob("*/__init__.py")]
        modules = [path.stem for path in self.packages.glob("*.py") if self._has_tests(path.stem)]
        return sorted(name for name in (*folders, *modules) if name not in self.excluded)

    def find_files(self, package: str) -> list[Path]:
        """The Python files of a package or module, sorted."""
        return sorted([*self.packages.glob(f"{package}.py"), *(self.packages / package).rglob("*.py")])

    def own_tests_of(self, package: str) -> tuple[str, ...]:
        """Paths of a package's own tests, including those that do not exist."""
        return tuple(pattern.format(package=package) for pattern in self.own_tests)

    def _has_tests(self, package: str) -> bool:
        return any((self.root / path).exists() for path in self.own_tests_of(package))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageScore:
    """Outcomes of the mutants of a package, or of a sample with a name."""

    name: str
    outcomes: tuple[tuple[Mutant, Outcome], ...]

    def count(self, outcome: Outcome) -> int:
        """Number of mutants with this outcome."""
        return sum(found is outcome for _, found in self.outcomes)

    @property
    def survivors(self) -> list[Mutant]:
        """Mutants that no test noticed, by file and line."""
        alive = (mutant for mutant, outcome in self.outcomes if outcome is Outcome.SURVIVED)
        return sorted(alive, key=lambda mutant: (mutant.path, mutant.line, mutant.change))


class OtherTests:
    """The tests that run after a package's own. They are timed once for all packages, since that takes minutes."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._tests = tests
        self._seconds: int | None = None

    def measure(self, copy: SourceCopy, *, own: Sequence[str]) -> Suite | None:
        """The other tests without a package's own, with a time limit; None if there are none."""
        without_own = tuple(f"--ignore={path}" for path in own)
        if self._seconds is None:
            measured = copy.measure(self._tests)
            if measured is None:
                return None
            self._seconds = measured.seconds
        return Suite(tests=(*copy.find_existing(self._tests), *without_own), seconds=self._seconds)


class OwnTests:
    """Each package's own tests, timed at the first mutant of the package and then kept for all samples."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._suites: dict[str, Suite | None] = {}
        self._locks = {package: Lock() for package in project.find_packages()}

    def measure(self, copy: SourceCopy, package: str) -> Suite | None:
        """The tests of a package, with a time limit; None if it has none."""
        with self._locks[package]:
            if package not in self._suites:
                self._suites[package] = copy.measure(self._project.own_tests_of(package))
            return self._suites[package]


def score_package(project: Project, package: str, other_tests: OtherTests, *, size: int, seed: int) -> PackageScore:
    """Test a sample of a package's mutants with its own tests and then with the others."""
    mutants = sample_mutants(project.source, project.find_files(package), size=size, seed=seed)
    own = project.own_tests_of(package)
    if not mutants:
        return PackageScore(name=package, outcomes=())
    with (
        ThreadPoolExecutor(max_workers=1) as measuring,
        _open_folder() as folder,
        _SourceCopies(project, Path(folder), count=min(PROCESSES, len(mutants))) as copies,
    ):
        own_suite = copies.borrow(lambda copy: copy.measure(own))
        # The other tests are timed while the first mutants are tested, most of which need none of them.
        other_suite = measuring.submit(copies.borrow, lambda copy: other_tests.measure(copy, own=own))
        outcomes = copies.test_all(
            mutants, lambda copy, mutant: copy.test_mutant(mutant, own=own_suite, others=other_suite.result)
        )
    return PackageScore(name=package, outcomes=outcomes)


def score_sample(
    project: Project, packages: Sequence[str], own_tests: OwnTests, *, size: int, seed: int
) -> PackageScore:
    """Test one sample of the mutants of all these packages, each with the tests of its own package only."""
    files = [path for name in packages for path in project.find_files(name)]
    mutants = sample_mutants(project.source, files, size=size, seed=seed)

    def test_mutant(copy: SourceCopy, mutant: Mutant) -> Outcome:
        package = (project.source / mutant.path).relative_to(project.packages).with_suffix("").parts[0]
        return copy.test_mutant(mutant, own=own_tests.measure(copy, package), others=lambda: None)

    with (
        _open_folder() as folder,
        _SourceCopies(project, Path(folder), count=min(PROCESSES, len(mutants))) as copies,
    ):
        return PackageScore(name=f"seed {seed}", outcomes=copies.test_all(mutants, test_mutant))


@contextmanager
def _open_folder() -> Iterator[str]:
    """Yield a temporary folder that tests can read as another user, as they do to test files without permissions."""
    with TemporaryDirectory(prefix="mutation-") as folder:
        Path(folder).chmod(0o755)
        yield folder


class _SourceCopies:
    """Copies of the source in a folder, each lent to one thread at a time."""

    def __init__(self, project: Project, folder: Path, *, count: int) -> None:
        self._project, self._folder, self._count = project, folder, count
        self._free: SimpleQueue[SourceCopy] = SimpleQueue()
        self._stack = ExitStack()

    def __enter__(self) -> "_SourceCopies":
        for number in range(self._count):
            copy = SourceCopy(
                source=self._project.source,
                copy=self._folder / str(number),
                project=self._project.root,
                modules=self._project.modules,
            )
            self._free.put(self._stack.enter_context(copy))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def borrow(self, use: Callable[[SourceCopy], Result]) -> Result:
        """Call a function with a copy that no other thread uses."""
        copy = self._free.get()
        try:
            return use(copy)
        finally:
            self._free.put(copy)

    def test_all(
        self, mutants: Sequence[Mutant], test: Callable[[SourceCopy, Mutant], Outcome]
    ) -> tuple[tuple[Mutant, Outcome], ...]:
        """Test the mutants, as many at a time as there are copies."""
        pool = ThreadPoolExecutor(max_workers=max(1, self._count))
        try:
            outcomes = pool.map(lambda mutant: self.borrow(lambda copy: test(copy, mutant)), mutants)
            return tuple(zip(mutants, outcomes, strict=True))
        finally:
            pool.shutdown(cancel_futures=True)
