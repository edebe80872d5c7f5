"""Write the golden files again: ``python -m tests.golden.regenerate``, from the root of the repository."""

from tests.golden.cases import EXPECTED, OUTPUTS, every_case, run_case
from tests.golden.renderers import record_digests
from tests.golden.snapshots.story import describe, golden_file


def regenerate() -> None:
    EXPECTED.mkdir(exist_ok=True)
    for old in EXPECTED.iterdir():
        old.unlink()
    for case in every_case():
        for ending, option in OUTPUTS.items():
            case.expected(ending).write_text(run_case(case, option), encoding="utf-8", newline="\n")
    record_digests()
    # What a format has written it has written: another one gets a file of its own.
    if not golden_file().exists():
        golden_file().write_text(describe(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    regenerate()
