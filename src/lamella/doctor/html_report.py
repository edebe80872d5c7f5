"""A diagnosis as one HTML file with its plots as SVG. It loads nothing and has no scripts."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from html import escape
from itertools import accumulate

from lamella.doctor.analysis import ConversationTotals, Diagnosis, Finding, TimelinePoint

_WIDTH, _HEIGHT, _MARGIN = 860, 220, 46
_MAX_BARS = 30
_BAR_HEIGHT, _ROW_HEIGHT = 14, 20
_MAX_LISTED_REQUESTS = 30
_LABEL_WIDTH = 190
_SMALLEST_SHOWN = Decimal("0.01")
_COLOURS = (
    "#2f6f8f",
    "#c4622d",
    "#5b8c3e",
    "#8a5a9e",
    "#b08b2e",
    "#4a6fa5",
    "#a34848",
    "#5f7470",
    "#94762e",
    "#3f8f83",
)
_SPENT, _LOST, _CACHED, _POSSIBLE = "#2f6f8f", "#c0392b", "#5b8c3e", "#c9dcbf"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2429; --paper: #fff; --line: #cdd5da; --soft: #5a666e; --tint: #f3f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebee; --paper: #15191c; --line: #3a444b; --soft: #a3afb7; --tint: #1e2428; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
body { max-width: 900px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
.axis { stroke: var(--line); } .numbers { display: flex; flex-wrap: wrap; gap: 1em; padding: 0; list-style: none; }
.numbers li { background: var(--tint); padding: .6em 1em; border-radius: 6px; } .numbers b { display: block; font-size: 1.3em; }
.finding { border-left: 4px solid #c0392b; padding: .2em 1em; margin: 1em 0; background: var(--tint); }
pre { overflow-x: auto; margin: .3em 0; color: var(--soft); white-space: pre-wrap; } .soft { color: var(--soft); }
"""


def render_report(diagnosis: Diagnosis, *, unread: int = 0) -> str:
    """Return the report as an HTML page."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>lamella doctor</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>What these prompts cost</h1>",
        _render_numbers(diagnosis, unread),
        "<h2>Findings, most expensive first</h2>",
        *(_render_finding(number, one) for number, one in enumerate(diagnosis.findings, start=1)),
        "" if diagnosis.findings else "<p>Nothing to repair: each prefix that could be cached was cached.</p>",
        _render_figure(
            "Cost over time", "Money spent so far, and the part of it that was lost", _draw_costs(diagnosis.timeline)
        ),
        _render_figure(
            "Cached share per conversation",
            f"Share of the input that the cache served, on top of what it could have served; the {_MAX_BARS} most expensive",
            _draw_shares(diagnosis.conversations[:_MAX_BARS]),
        ),
        _render_figure(
            "Breaks on a timeline", "Each mark is a request whose prefix was not served", _draw_breaks(diagnosis)
        ),
        _render_figure("Tokens by kind", "All input tokens of all requests", _draw_treemap(diagnosis.tokens_by_kind)),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _render_numbers(diagnosis: Diagnosis, unread: int) -> str:
    numbers = {
        "requests": f"{diagnosis.requests:,}",
        "conversations": f"{diagnosis.conversation_count:,}",
        "input tokens": f"{diagnosis.input:,}",
        "served by the cache": f"{diagnosis.reached_share:.0%}",
        "possible": f"{diagnosis.reachable_share:.0%}",
        "spent": _money(diagnosis.spent),
        "lost": _money(diagnosis.lost),
    }
    if diagnosis.estimated_requests:
        numbers["requests predicted, not reported"] = f"{diagnosis.estimated_requests:,}"
    if unread:
        numbers["records not recognised"] = f"{unread:,}"
    if diagnosis.unpriced:
        numbers["without a known price"] = ", ".join(diagnosis.unpriced)
    items = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for name, value in numbers.items())
    return f'<ul class="numbers">{items}</ul>'


def _render_finding(number: int, finding: Finding) -> str:
    listed = ", ".join(f"{one:,}" for one in finding.requests[:_MAX_LISTED_REQUESTS])
    more = len(finding.requests) - _MAX_LISTED_REQUESTS
    rest = f" and {more:,} more" if more > 0 else ""
    cost = "" if finding.cost is None else f"lost {_money(finding.cost)}, "
    lines = [
        f'<section class="finding"><h3>{number}. {escape(finding.description)}</h3>',
        f"<p><code>{escape(finding.cause)}</code> in <code>{escape(finding.where)}</code> · {cost}{finding.tokens:,} tokens"
        f" · requests {listed}{rest}</p>",
        f"<p>{escape(finding.detail)}</p>" if finding.detail else "",
        f"<pre>before  {escape(finding.before)}\nafter   {escape(finding.after)}</pre>"
        if finding.before or finding.after
        else "",
        f"<p><b>What to do:</b> {escape(finding.fix)}</p></section>",
    ]
    return "\n".join(line for line in lines if line)


def _render_figure(title: str, caption: str, drawing: str) -> str:
    if not drawing:
        return ""
    return f'<h2>{escape(title)}</h2><p class="soft">{escape(caption)}</p>{drawing}'


def _svg(height: float, parts: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _text(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _draw_costs(timeline: Sequence[TimelinePoint]) -> str:
    """Draw the money spent and lost up to each request."""
    spent = list(accumulate(point.cost for point in timeline))
    lost = list(accumulate(point.lost for point in timeline))
    if not spent or not spent[-1]:
        return ""
    base, top = _HEIGHT - _MARGIN / 2, 12.0
    step = (_WIDTH - 2 * _MARGIN) / max(1, len(spent) - 1)

    def line(values: Sequence[Decimal], colour: str) -> str:
        points = " ".join(
            f"{_MARGIN + at * step:.1f},{base - float(value / spent[-1]) * (base - top):.1f}"
            for at, value in enumerate(values)
        )
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'

    parts = [
        f'<path class="axis" d="M{_MARGIN} {top} V{base} H{_WIDTH - _MARGIN}" fill="none"/>',
        line(spent, _SPENT),
        line(lost, _LOST),
        _text(_MARGIN + 6, top + 10, f"spent {_money(spent[-1])}"),
        _text(_MARGIN + 6, top + 26, f"lost {_money(lost[-1])}"),
        f'<rect x="{_MARGIN + 130}" y="{top + 2}" width="18" height="4" fill="{_SPENT}"/>',
        f'<rect x="{_MARGIN + 130}" y="{top + 18}" width="18" height="4" fill="{_LOST}"/>',
        _text(_MARGIN, _HEIGHT - 6, _format_moment(timeline[0])),
        _text(_WIDTH - _MARGIN, _HEIGHT - 6, _format_moment(timeline[-1]), anchor="end"),
    ]
    return _svg(_HEIGHT, parts, "Cost over time")


def _draw_shares(conversations: Sequence[ConversationTotals]) -> str:
    if not conversations:
        return ""
    parts: list[str] = []
    room = _WIDTH - _LABEL_WIDTH - 70
    for row, one in enumerate(conversations):
        y = row * _ROW_HEIGHT
        possible = one.reachable / one.input if one.input else 0.0
        parts += [
            _text(_LABEL_WIDTH - 8, y + 12, f"{one.number} {one.label}"[:28].strip(), anchor="end"),
            f'<rect x="{_LABEL_WIDTH}" y="{y}" width="{room * possible:.1f}" height="{_BAR_HEIGHT}" fill="{_POSSIBLE}"/>',
            f'<rect x="{_LABEL_WIDTH}" y="{y}" width="{room * one.share:.1f}" height="{_BAR_HEIGHT}" fill="{_CACHED}"/>',
            _text(_LABEL_WIDTH + room * max(possible, one.share) + 6, y + 12, f"{one.share:.0%} of {possible:.0%}"),
        ]
    return _svg(len(conversations) * _ROW_HEIGHT, parts, "Cached share per conversation")


def _draw_breaks(diagnosis: Diagnosis) -> str:
    """Draw a row for each cause, with a mark at each request that shows it."""
    rows: dict[str, set[int]] = {}
    for finding in diagnosis.findings:
        rows.setdefault(finding.cause.value, set()).update(finding.requests)
    if not rows:
        return ""
    room = _WIDTH - _LABEL_WIDTH - 20
    step = room / max(1, diagnosis.requests - 1)
    parts: list[str] = []
    for row, (cause, numbers) in enumerate(rows.items()):
        y = row * _ROW_HEIGHT + _ROW_HEIGHT / 2
        parts.append(_text(_LABEL_WIDTH - 8, y + 4, cause, anchor="end"))
        parts.append(f'<path class="axis" d="M{_LABEL_WIDTH} {y} H{_LABEL_WIDTH + room}"/>')
        # Marks on the same pixel are one mark.
        places = sorted({round(_LABEL_WIDTH + (number - 1) * step) for number in numbers})
        colour = _COLOURS[row % len(_COLOURS)]
        parts += [f'<rect x="{x - 1}" y="{y - 6}" width="3" height="12" fill="{colour}"/>' for x in places]
    height = len(rows) * _ROW_HEIGHT + 18
    parts.append(_text(_LABEL_WIDTH, height - 2, "request 1"))
    parts.append(_text(_LABEL_WIDTH + room, height - 2, f"{diagnosis.requests:,}", anchor="end"))
    return _svg(height, parts, "Breaks on a timeline")


def _draw_treemap(tokens_by_kind: Mapping[str, int]) -> str:
    kinds = sorted(((count, kind) for kind, count in tokens_by_kind.items() if count > 0), reverse=True)
    if not kinds:
        return ""
    total = sum(count for count, _ in kinds)
    parts: list[str] = []
    boxes = _squarify([count for count, _ in kinds], 0.0, 0.0, float(_WIDTH), float(_HEIGHT))
    for number, ((count, kind), (x, y, width, height)) in enumerate(zip(kinds, boxes, strict=True)):
        label = f"{kind} {count:,} ({count / total:.0%})"
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width - 2):.1f}" height="{max(0.0, height - 2):.1f}" '
            f'fill="{colour}"><title>{escape(label)}</title></rect>'
        )
        if width > 7 * len(label) and height > _ROW_HEIGHT:
            parts.append(f'<text x="{x + 6:.1f}" y="{y + 16:.1f}" style="fill:#fff">{escape(label)}</text>')
    return _svg(_HEIGHT, parts, "Tokens by kind")


def _squarify(
    values: Sequence[int], x: float, y: float, width: float, height: float
) -> Iterator[tuple[float, float, float, float]]:
    """Yield a box for each value, in order, with an area in proportion; boxes are as square as simple rows allow."""
    left, remaining = list(values), float(sum(values))
    while left:
        is_wide = width >= height
        side, other = (height, width) if is_wide else (width, height)
        count = 1
        while count < len(left) and _worst(left[: count + 1], side, other, remaining) <= _worst(
            left[:count], side, other, remaining
        ):
            count += 1
        row, left = left[:count], left[count:]
        depth = other * sum(row) / remaining
        at = 0.0
        for value in row:
            length = side * value / sum(row)
            yield (x, y + at, depth, length) if is_wide else (x + at, y, length, depth)
            at += length
        remaining -= sum(row)
        if is_wide:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth


def _worst(row: Sequence[int], side: float, other: float, total: float) -> float:
    """Return the ratio of the least square box of a row."""
    depth = other * sum(row) / total
    lengths = [side * value / sum(row) for value in row]
    return max(max(depth / length, length / depth) if length and depth else float("inf") for length in lengths)


def _format_moment(point: TimelinePoint) -> str:
    return f"{point.at:%Y-%m-%d %H:%M}" if point.at else f"request {point.first:,}"


def _money(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount >= _SMALLEST_SHOWN or not amount else f"${amount:.6f}"
