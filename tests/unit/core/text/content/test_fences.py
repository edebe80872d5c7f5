"""Code fences: what is inside one is code."""

import pytest

from lamella.core.text.content import iter_lines_with_code_flag


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```\nb\n```\nc", [False, True, True, True, False]),
        ("~~~py\n```\n~~~", [True, True, True]),
        ("````\n```\n````\nx", [True, True, True, False]),
        ("```\nnever closed\n# h", [True, True, True]),
        ("    ```\nindented", [False, False]),
        ("   ```\nx\n   ```\ny", [True, True, True, False]),
        ("``\nx", [False, False]),
        ("```x``` is inline\ny", [False, False]),
        ("``` a`b\ny", [False, False]),
        ("~~~ a`b ~~~\ny\n~~~", [True, True, True]),
        ("```py a b\ny\n```", [True, True, True]),
        ("```\n```py\nx\n``` \t\ny", [True, True, True, True, False]),
        ("```\n~~~\n`````\ny", [True, True, True, False]),
    ],
)
def test_code_lines_are_flagged(text: str, code: list[bool]) -> None:
    assert [is_code for _, is_code in iter_lines_with_code_flag(text)] == code


def test_lines_are_returned_unchanged() -> None:
    text = "a\n\n```\n  b \n```\n"
    assert "\n".join(line for line, _ in iter_lines_with_code_flag(text)) == text
