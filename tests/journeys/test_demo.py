"""The demo: it prints what the page shows, and a reader who knows the two notes finds most of its answers right."""

from tests.contracts.console import blocks, commands, is_as_printed, run_command
from tests.contracts.repository import ROOT

RIGHT = ("7:30", "19:00", "10:30", "138")
AT_LEAST = 3


def test_demo_prints_its_page_and_three_of_four_answers_are_right() -> None:
    """Greedy decoding gives the same words on one machine; on another one of them may be another."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    consoles = [block.body for block in blocks(page) if block.language == "console"]
    (shown,) = [command.output for body in consoles for command in commands(body) if command.line == "make demo"]
    printed = run_command("make demo")
    assert is_as_printed(shown, printed), printed
    answers = printed.split("\nturn ")[:-1]
    assert len(answers) == len(RIGHT), printed
    told = [right in answer.rpartition("tokens cached")[2] for right, answer in zip(RIGHT, answers, strict=True)]
    assert sum(told) >= AT_LEAST, printed
