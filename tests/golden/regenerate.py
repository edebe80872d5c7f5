"""Write the golden files again: ``python -m tests.golden.regenerate``, from the root of the repository."""

from tests.golden.cases import CONVERSATIONS, EXPECTED, OUTPUTS, every_case, naive_file, run_case, run_naive
from tests.golden.renderers import record_digests
from tests.golden.runners.scenarios import HERE as PLAYS
from tests.golden.runners.scenarios import every_play, perform
from tests.golden.snapshots.story import describe, golden_file


def regenerate() -> None:
    EXPECTED.mkdir(exist_ok=True)
    for old in EXPECTED.iterdir():
        old.unlink()
    for case in every_case():
        for ending, option in OUTPUTS.items():
            case.expected(ending).write_text(run_case(case, option), encoding="utf-8", newline="\n")
    for conversation in CONVERSATIONS:
        naive_file(conversation).write_text(run_naive(conversation), encoding="utf-8", newline="\n")
    record_digests()
    regenerate_plays()
    # What a format has written it has written: another one gets a file of its own.
    if not golden_file().exists():
        golden_file().write_text(describe(), encoding="utf-8", newline="\n")


def regenerate_plays() -> None:
    """What runners send."""
    PLAYS.mkdir(exist_ok=True)
    for old in PLAYS.iterdir():
        old.unlink()
    for play in every_play():
        play.expected.write_text(perform(play), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    regenerate()
