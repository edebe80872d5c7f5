"""Draw docs/images/prompt-over-turns.svg: the prompt of six turns, with and without Lamella.

Run it by hand after `make setup`: `python examples/prompt_picture.py`. It needs the standard library only. All numbers
come from `lamella replay examples/walkthrough.json --json` in the default layout. The left half is the naive way that
replay compares costs with: each message carries the full text of the notes attached to it, and no earlier ones.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPT = ROOT / "examples" / "walkthrough.json"
PICTURE = ROOT / "docs" / "images" / "prompt-over-turns.svg"

# Layer: name in the legend, colour of new text, colour of cached text, colour of a label on cached text.
LAYERS = {
    "L1_SYSTEM": ("system prompt", "#6f42c1", "#d9ccf0", "#3d1f7a"),
    "L2_PREVIOUS": ("notes of earlier turns", "#0f766e", "#b7dfda", "#0b4f4a"),
    "L3_TURN": ("attached in this turn", "#c2570c", "#f5d3b5", "#7a3505"),
    "L4_STRIP": ("history", "#475569", "#cbd5e1", "#1e293b"),
    "L5_USER": ("your message", "#1d4ed8", "#c3d3fb", "#1e3a8a"),
}
WIDTH, HEIGHT = 980, 520
COLUMN, GAP, BASE, CHART = 62, 8, 380, 265
LEFT, RIGHT = 44, 524
INK, QUIET, RED = "#1f2328", "#57606a", "#c1121f"

# A block of the prompt: layer, tokens, whether the cache serves it, label.
Block = tuple[str, int, bool, str]


def main() -> None:
    """Replay the transcript and write the picture."""
    command = [str(Path(sys.executable).parent / "lamella"), "replay", str(TRANSCRIPT), "--json"]
    replay = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    turns, typed = replay["turns"], json.loads(TRANSCRIPT.read_text(encoding="utf-8"))["turns"]
    sent = [sent_blocks(turn, turns[index - 1] if index else None) for index, turn in enumerate(turns)]
    naive = naive_blocks(turns, typed)
    check_nothing_is_cached(naive, turns)
    scale = CHART / max(sum(block[1] for block in column) for column in (*sent, *naive))

    totals = replay["totals"]
    parts = [heading(LEFT, "Naive: the notes again in each message", "0 % of all tokens from the cache")]
    share = f"{totals['cache_read_share']:.0%}".replace("%", " %")
    parts.append(
        heading(
            RIGHT,
            "Lamella, default layout: each note once",
            f"{share} of all tokens from the cache",
        )
    )
    for x, columns, cost in ((LEFT, naive, "naive"), (RIGHT, sent, "amount")):
        for index, column in enumerate(columns):
            parts.append(draw_column(x + index * (COLUMN + GAP), column, scale))
            parts.append(label_column(x + index * (COLUMN + GAP) + COLUMN / 2, turns[index], cost))
    for index, turn in enumerate(turns):
        if turn["cache"]["read"]:
            top = BASE - sum(block[1] for block in sent[index]) * scale
            share = f"{turn['cache']['read'] / turn['tokens']['total']:.0%}".replace("%", " %")
            middle = RIGHT + index * (COLUMN + GAP) + COLUMN / 2
            parts.append(text(middle, top - 6, share, colour=LAYERS["L2_PREVIOUS"][1], anchor="middle"))
    parts += mark_naive(naive, typed, scale)
    parts += mark_changes(turns, scale)
    saved = f"All six turns: ${float(totals['naive_cost']):.3f}", f"All six turns: ${float(totals['cost']):.3f}"
    parts += [text(x, BASE + 62, line, size=14, weight="bold") for x, line in zip((LEFT, RIGHT), saved, strict=True)]
    parts.append(legend())
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(frame("\n".join(parts)), encoding="utf-8")
    sys.stdout.write(f"wrote {PICTURE.relative_to(ROOT)}\n")


def sent_blocks(turn: dict, previous: dict | None) -> list[Block]:
    """Return the blocks of a request in the order in which they are sent."""
    # The cache serves whole messages of the previous request, as long as the prefix is the same.
    cached = len(previous["messages"]) if previous and turn["prefix"]["cause"] == "none" else 0
    placed = []
    for layer in turn["envelope"]["layers"]:
        for segment in layer["segments"]:
            if segment["place"] is None or not segment["tokens"]:
                continue
            number = 0 if segment["place"] == "system" else int(segment["place"].removeprefix("message:"))
            label = label_of(segment["id"]) if segment["form"] == "full" and segment["kind"] == "note" else ""
            placed.append((number, (layer["id"], segment["tokens"], number < cached, label)))
    return [block for _, block in sorted(placed, key=lambda pair: pair[0])]


def naive_blocks(turns: list[dict], typed: list[dict]) -> list[list[Block]]:
    """Return the naive requests: system prompt, history as typed, the texts attached now, the message."""
    note_tokens: dict[str, int] = {}
    columns = []
    for turn, told in zip(turns, typed, strict=True):
        for layer in turn["envelope"]["layers"]:
            for segment in layer["segments"]:
                if segment["kind"] == "note" and segment["form"] == "full":
                    note_tokens[segment["id"]] = segment["tokens"]
        tokens = turn["tokens"]["by_layer"]
        column: list[Block] = [(layer, tokens[layer], False, "") for layer in ("L1_SYSTEM", "L4_STRIP")]
        for attachment in told.get("attach", ()):
            if attachment["kind"] == "note":
                column.append(("L3_TURN", note_tokens[attachment["path"]], False, label_of(attachment["path"])))
            else:
                column.append(("L3_TURN", tokens["L3_TURN"], False, ""))
        columns.append([*column, ("L5_USER", tokens["L5_USER"], False, "")])
    return columns


def check_nothing_is_cached(naive: list[list[Block]], turns: list[dict]) -> None:
    """Fail if replay's naive cost is too low for a request that is read in full: then the left half would be wrong."""
    full_price = float(turns[0]["cost"]["naive"]) / sum(block[1] for block in naive[0])
    for column, turn in zip(naive, turns, strict=True):
        if float(turn["cost"]["naive"]) < 0.75 * full_price * sum(block[1] for block in column):
            raise SystemExit(f"turn {turn['turn']}: a part of the naive request is cached; draw it pale")


def label_of(path: str) -> str:
    """Return the short name of a note."""
    return Path(path).stem


def draw_column(x: float, column: list[Block], scale: float) -> str:
    """Return the blocks of one request, stacked from the start of the prompt at the bottom."""
    parts, y = [], float(BASE)
    for layer, tokens, cached, label in column:
        height = tokens * scale
        y -= height
        _, new, pale, on_pale = LAYERS[layer]
        fill = pale if cached else new
        edge = f' stroke="{pale if not cached else new}" stroke-width="0.6"' if height > 4 else ""
        parts.append(f'<rect x="{x}" y="{y:.1f}" width="{COLUMN}" height="{height:.1f}" fill="{fill}"{edge}/>')
        if label and height > 14:
            colour = on_pale if cached else "#ffffff"
            parts.append(text(x + COLUMN / 2, y + height / 2 + 4, label, size=9, colour=colour, anchor="middle"))
    return "\n".join(parts)


def label_column(middle: float, turn: dict, cost: str) -> str:
    """Return the turn's number and cost, below its column."""
    name = text(middle, BASE + 17, f"turn {turn['turn']}", anchor="middle")
    return name + text(middle, BASE + 32, f"${float(turn['cost'][cost]):.4f}", size=11, colour=QUIET, anchor="middle")


def mark_naive(naive: list[list[Block]], typed: list[dict], scale: float) -> list[str]:
    """Mark where the second naive request differs from the first, and the turns that lack the notes."""
    x, y = LEFT + COLUMN + GAP, BASE - naive[1][0][1] * scale
    jagged = f"M{x - 7} {y:.1f} l12 -4 l12 8 l12 -8 l12 8 l12 -8 l12 8 l4 -4"
    parts = [f'<path d="{jagged}" fill="none" stroke="{RED}" stroke-width="2.5"/>']
    words_at = BASE - 200
    lines = ("Prefix change: the notes moved", "to the newest message, so the", "cache cannot serve them.")
    line_x = x + COLUMN + GAP / 2
    parts.append(f'<path d="M{line_x} {y:.1f} V{words_at - 10}" fill="none" stroke="{RED}" stroke-width="1.5"/>')
    parts += [text(line_x + 8, words_at + 15 * row, line, size=12, colour=RED) for row, line in enumerate(lines)]
    seen, without = False, []
    for index, turn in enumerate(typed):
        notes = [one for one in turn.get("attach", ()) if one["kind"] == "note"]
        if seen and not notes:
            without.append(str(index + 1))
            top = BASE - sum(block[1] for block in naive[index]) * scale
            middle = LEFT + index * (COLUMN + GAP) + COLUMN / 2
            parts.append(text(middle, top - 18, "no whole", size=10, colour=QUIET, anchor="middle"))
            parts.append(text(middle, top - 6, "note", size=10, colour=QUIET, anchor="middle"))
        seen = seen or bool(notes)
    words = f"Turns {' and '.join(without)} are cheap because they carry no whole note."
    parts.append(text(LEFT, BASE + 80, words, size=12, colour=QUIET))
    return parts


def mark_changes(turns: list[dict], scale: float) -> list[str]:
    """Mark each prefix change that replay reports; say so if there is none."""
    changed = [
        (at, turn["prefix"]) for at, turn in enumerate(turns) if turn["prefix"]["cause"] not in ("none", "first_turn")
    ]
    if not changed:
        return [text(RIGHT, BASE + 80, "No prefix change in six turns.", size=12, colour=QUIET)]
    at, prefix = changed[0]
    x, y = RIGHT + at * (COLUMN + GAP), BASE - prefix["common_tokens"] * scale
    words = f"Prefix change: {prefix['cause'].replace('_', ' ')}, {prefix['segment']}"
    line = f'<path d="M{x - 6} {y:.1f} h{COLUMN + 12}" stroke="{RED}" stroke-width="2.5"/>'
    return [line, text(RIGHT, BASE + 80, words, size=12, colour=RED)]


def heading(x: float, title: str, below: str) -> str:
    """Return the title of one half and the line below it."""
    return text(x, 44, title, size=17, weight="bold") + text(x, 66, below, size=13, colour=QUIET)


def legend() -> str:
    """Return the colours of the layers and their names."""
    parts, x, y = [], float(LEFT), HEIGHT - 22
    for name, new, pale, _ in LAYERS.values():
        parts.append(f'<rect x="{x}" y="{y - 10}" width="11" height="12" fill="{new}"/>')
        parts.append(f'<rect x="{x + 11}" y="{y - 10}" width="11" height="12" fill="{pale}"/>')
        parts.append(text(x + 28, y, name))
        x += 46 + 6.2 * len(name)
    parts.append(text(WIDTH - LEFT, y, "strong: new · pale: cached", weight="bold", anchor="end"))
    return "\n".join(parts)


def text(
    x: float, y: float, words: str, *, size: int = 12, colour: str = INK, weight: str = "normal", anchor: str = "start"
) -> str:
    """Return one line of text."""
    look = f'font-size="{size}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{words}</text>'


def frame(body: str) -> str:
    """Return the whole picture on a white card, which is readable on a dark page, too."""
    described = (
        "The prompt of six turns as columns. Naive: nothing is cached. Lamella: each note is sent once, then cached."
    )
    fonts = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{described}" font-family="{fonts}">
<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" fill="#ffffff" stroke="#d0d7de"/>
{body}
</svg>
"""


if __name__ == "__main__":
    main()
