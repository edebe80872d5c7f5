"""The HTML report is one file without scripts and addresses, and escapes what it shows."""

import re
from decimal import Decimal
from html.parser import HTMLParser

from lamella.doctor.analysis import ConversationTotals, Diagnosis, Finding, TimelinePoint
from lamella.doctor.causes import LossCause
from lamella.doctor.html_report import render_report

FINDING = Finding(
    cause=LossCause.TIME_IN_PROMPT, where="<system>", requests=[2, 3], tokens=500, cost=Decimal("1.5"),
    before="<script>alert(1)</script>", after="b",
)  # fmt: skip
DIAGNOSIS = Diagnosis(
    requests=3,
    input=3_000,
    reached=1_000,
    reachable=2_000,
    spent=Decimal(3),
    lost=Decimal("1.5"),
    conversation_count=1,
    conversations=[
        ConversationTotals(number=1, label="<b>", model="m", requests=3, input=3_000, reached=1_000, reachable=2_000)
    ],
    findings=[FINDING],
    timeline=[
        TimelinePoint(first=one, last=one, at=None, input=1_000, cost=Decimal(1), lost=Decimal(one // 2))
        for one in (1, 2, 3)
    ],
    tokens_by_kind={"system": 2_000, "user": 900, "tool": 100},
)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_report_has_four_plots_and_balanced_tags() -> None:
    tags = _Tags()
    tags.feed(render_report(DIAGNOSIS))
    assert tags.open == []
    assert tags.seen.count("svg") == 4


def test_report_escapes_texts_of_the_log_and_loads_nothing() -> None:
    page = render_report(DIAGNOSIS)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert re.findall(r"https?://|src=|href=|url\(", page) == []


def test_treemap_areas_are_in_proportion_to_tokens() -> None:
    page = render_report(DIAGNOSIS)
    boxes = re.findall(r'width="([\d.]+)" height="([\d.]+)" fill="#\w+"><title>(\w+) ([\d,]+)', page)
    areas = {kind: (float(width) + 2) * (float(height) + 2) for width, height, kind, _ in boxes}
    assert set(areas) == {"system", "user", "tool"}
    assert abs(areas["system"] / areas["user"] - 2_000 / 900) < 0.05


def test_empty_diagnosis_gives_a_page() -> None:
    assert "Nothing to repair" in render_report(Diagnosis())
