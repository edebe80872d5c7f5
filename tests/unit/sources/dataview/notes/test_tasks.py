"""Tasks: detection, fields, and nesting."""

from datetime import datetime

import pytest

from lamella.sources.dataview.notes import ParsedTask, is_task, parse_tasks


def read(text: str) -> list[ParsedTask]:
    return list(parse_tasks((number, line, "S") for number, line in enumerate(text.split("\n"), 1)))


@pytest.mark.parametrize("line", ["- [ ] a", "* [x] a", "+ [/] a", "1. [ ] a", "  2) [-] a", "> - [ ] a", "\t- [ ]"])
def test_item_with_a_box_is_a_task(line: str) -> None:
    assert is_task(line)
    assert len(read(line)) == 1


@pytest.mark.parametrize("line", ["[ ] a", "- a", "- [] a", "- [ab] c", "-[ ] a", "- [ ](b) c", "text - [ ] a"])
def test_other_line_is_no_task(line: str) -> None:
    assert not is_task(line)
    assert read(line) == []


def test_task_has_dates_and_fields() -> None:
    (task,) = read("- [x] pay #home [due:: 2026-11-15] [who:: Jo] ✅ 2026-11-14 `#no [x:: 1]`")
    day = datetime(2026, 11, 15)  # noqa: DTZ001 - notes name no zone
    assert task.fields == {"due": day, "who": "Jo", "completion": day.replace(day=14)}
    assert (task.tags, task.status, task.is_completed, task.line, task.section) == (("#home",), "x", True, 1, "S")
    assert task.text.startswith("pay #home")


def test_emoji_mark_task_dates() -> None:
    (task,) = read("- [ ] a 📅 2026-01-01 \u2795 2026-01-02 🛫 2026-01-03 ⏳ 2026-01-04")
    dates = {name: value.day for name, value in task.fields.items() if isinstance(value, datetime)}
    assert dates == {"due": 1, "created": 2, "start": 3, "scheduled": 4}


def test_indented_tasks_are_children() -> None:
    tasks = {
        task.text: task
        for task in read("- [ ] a\n  - [ ] b\n    - [ ] c\n  - plain\n  - [ ] d\n\n- [ ] e\ntext\n  - [ ] f")
    }
    assert [[child.text for child in tasks[name].children] for name in "abcdef"] == [
        ["b", "d"],
        ["c"],
        [],
        [],
        ["f"],
        [],
    ]
