"""Pages whose shell commands run in their order on the conversation that their Python makes."""

from pathlib import Path
from shutil import copytree

from tests.contracts.places import ROOT
from tests.journeys.pages import check_page


def test_the_commands_of_the_page_on_obsidian_work_in_the_order_they_stand_in(tmp_path: Path) -> None:
    copytree(ROOT / "examples" / "vault", tmp_path / "Notes")
    check_page("obsidian.md", tmp_path, commands=4)


def test_the_commands_of_the_page_on_what_was_sent_work_in_the_order_they_stand_in(tmp_path: Path) -> None:
    check_page("seeing-what-was-sent.md", tmp_path, commands=7)
