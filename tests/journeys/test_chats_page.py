"""The page on conversations: its shell commands, run in their order on the conversation its Python makes."""

from pathlib import Path

from tests.journeys.pages import check_page


def test_the_commands_of_the_page_work_in_the_order_they_stand_in(tmp_path: Path) -> None:
    check_page("conversations.md", tmp_path, commands=13)
