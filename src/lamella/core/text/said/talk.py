"""The outline of talk: what stands for earlier turns where no summary does."""

import re
from collections.abc import Callable, Iterator, Sequence

from lamella.core.text.fences import walk_lines

# Tried in order until the newest turn fits: 160 Chinese characters may weigh as much as the whole cap.
_WIDTHS = (160, 80, 40, 20)

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_MARKUP = re.compile(r"[ \t]*(?:(?:[#>*+-]+|\d{1,9}[.)])[ \t]+)*")
# The second full stop of an abbreviation such as e.g. ends no sentence.
_SENTENCE_ENDS = re.compile(r"(?:(?<!\.\w)\.|[!?…])[\"'”\u2019)*_]*(?=\s|$)|[。\uff01\uff1f]")


def build_talk_outline(turns: Sequence[tuple[str, str]], *, cap: int, count: Callable[[str], int]) -> str:
    """A line per turn of typed text and reply, in order; the newest that fit the cap, and how many came before them."""
    kept: list[str] = []
    for width in _WIDTHS:
        kept = _keep_newest(turns, width=width, cap=cap, count=count)
        if kept:
            break
    outline = _render(kept, len(turns) - len(kept))
    return outline if count(outline) <= cap else ""


def _keep_newest(turns: Sequence[tuple[str, str]], *, width: int, cap: int, count: Callable[[str], int]) -> list[str]:
    kept: list[str] = []
    room = cap
    for typed, reply in reversed(turns):
        line = f"- Asked: {clip(typed, width)} Answered: {clip(first_sentence(reply), width)}"
        room -= count(f"{line}\n")
        if room < 0:
            break
        kept.insert(0, line)
    while kept and count(_render(kept, len(turns) - len(kept))) > cap:
        del kept[0]
    return kept


def _render(kept: Sequence[str], left_out: int) -> str:
    if not left_out:
        return "\n".join(kept)
    turns = "1 earlier turn is" if left_out == 1 else f"{left_out:,} earlier turns are"
    return "\n".join([f"[{turns} left out.]", *kept])


def first_sentence(reply: str) -> str:
    """The beginning of the first paragraph that is neither code nor a heading; else the first heading."""
    paragraph = " ".join(_first_paragraph(reply))
    if not paragraph:
        headings = (line for line, is_code in walk_lines(reply) if not is_code and _HEADING.match(line))
        return _MARKUP.sub("", next(headings, "(code)" if reply.strip() else ""), count=1)
    end = _SENTENCE_ENDS.search(paragraph)
    return paragraph[: end.end()] if end else paragraph


def _first_paragraph(reply: str) -> Iterator[str]:
    begun = False
    for line, is_code in walk_lines(reply):
        text = "" if is_code or _HEADING.match(line) else _MARKUP.sub("", line, count=1).strip()
        if text:
            yield text
        elif begun:
            return
        begun = begun or bool(text)


def clip(text: str, width: int) -> str:
    """The text on one line, cut at a space where it is wider than allowed."""
    words = text.split(maxsplit=width)
    line = " ".join(words[:width]) or "(nothing)"
    if len(line) <= width and len(words) <= width:
        return line
    cut = line[:width]
    space = cut.rfind(" ")
    return (cut[:space] if space > width // 2 else cut).rstrip() + " …"
