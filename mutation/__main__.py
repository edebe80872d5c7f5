"""Puts faults into packages and reports which no test notices: ``python -m mutation [PACKAGE ...]``."""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from mutation.baseline import Baseline, load_baseline, save_baseline
from mutation.packages import OtherTests, OwnTests, PackageScore, Project, score_package, score_sample
from mutation.source_copy import ROOT, Outcome

CORE = Project(
    root=ROOT,
    source=ROOT / "src",
    packages=ROOT / "src" / "lamella" / "core",
    own_tests=("tests/unit/core/{package}",),
    other_tests=("tests/unit/core", "tests/behaviour", "tests/golden"),
    modules=("lamella.wiring",),
)
OUTSIDE_CORE = Project(
    root=ROOT,
    source=ROOT / "src",
    packages=ROOT / "src" / "lamella",
    own_tests=(
        "tests/unit/{package}",
        "tests/unit/test_{package}.py",
        "tests/conformance/{package}",
        "tests/{package}",
    ),
    excluded=("core",),
    modules=("lamella.cli.app", "lamella.server.app", "lamella.wiring"),
)
# The share of faults outside core that the tests of their own package must notice.
MIN_KILLED_SHARE = 0.8


def main(arguments: Sequence[str]) -> int:
    """Test the packages that are named, or all of core; 1 if more faults survive than may."""
    # Raised as an exception, so that the copies are removed on the way out.
    signal.signal(signal.SIGTERM, _exit)
    baseline = load_baseline()
    options = _parse_options(arguments, baseline)
    if options.outside_core:
        return _test_outside_core(options.package, size=options.sample, seeds=options.seed)
    return _test_core(options.package or CORE.find_packages(), baseline, size=options.sample, record=options.record)


def _test_core(packages: Sequence[str], baseline: Baseline, *, size: int, record: bool) -> int:
    """A sample of faults in each package of core, checked against the baseline or recorded as a new one."""
    survivors: dict[str, int] = {}
    problems: list[str] = []
    other_tests = OtherTests(CORE.other_tests)
    for package in packages:
        score = score_package(CORE, package, other_tests, size=size, seed=baseline.seed)
        print("\n".join(describe_score(score)), flush=True)
        survivors[package] = len(score.survivors)
        if not record and (problem := baseline.find_problem(package, survivors[package])):
            problems.append(f"{package}: {problem}")
    if record:
        save_baseline(baseline.lower(survivors))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _test_outside_core(packages: Sequence[str], *, size: int, seeds: Sequence[int]) -> int:
    """For each seed one sample of faults in all these packages together; only a package's own tests are run."""
    own_tests = OwnTests(OUTSIDE_CORE)
    problems: list[str] = []
    for seed in seeds:
        score = score_sample(OUTSIDE_CORE, packages or OUTSIDE_CORE.find_packages(), own_tests, size=size, seed=seed)
        print("\n".join(describe_score(score)), flush=True)
        killed = score.count(Outcome.KILLED_BY_OWN_TESTS)
        if killed < MIN_KILLED_SHARE * len(score.outcomes):
            problems.append(
                f"{score.name}: {killed} of {len(score.outcomes)} killed, fewer than {MIN_KILLED_SHARE:.0%}"
            )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def describe_score(score: PackageScore) -> Iterator[str]:
    """A line with the counts of a package, then a line for each mutant that survived."""
    counts = ", ".join(f"{score.count(outcome)} {outcome}" for outcome in Outcome)
    yield f"{score.name}: {len(score.outcomes)} mutants, {counts}"
    yield from (f"  src/{mutant.path}:{mutant.line}  {mutant.change}" for mutant in score.survivors)


def _exit(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def _parse_options(arguments: Sequence[str], baseline: Baseline) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("package", nargs="*", help="packages to test; default: all of core")
    parser.add_argument(
        "--outside-core", action="store_true", help="one sample of the packages outside core, with their own tests only"
    )
    parser.add_argument("--sample", type=int, help=f"mutants (default: {baseline.sample} per package of core, else 20)")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="seeds of the samples outside core")
    parser.add_argument("--record", action="store_true", help="record baselines of core that are lower, or new")
    options = parser.parse_args(arguments)
    packages = (OUTSIDE_CORE if options.outside_core else CORE).find_packages()
    if unknown := sorted(set(options.package) - set(packages)):
        parser.error(f"there is no package {', '.join(unknown)}; there are {', '.join(packages)}")
    if options.sample is None:
        options.sample = 20 if options.outside_core else baseline.sample
    if options.record and (options.outside_core or options.sample < baseline.sample):
        parser.error(f"a baseline is recorded for packages of core, {baseline.sample} mutants each")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
