"""Quotations: what a text puts in quotation marks or after ``>``, and whether it says that the user said so."""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from lamella.core.text.patterns import CODE_SPAN
from lamella.core.text.scripts import WORD_ENDS, WORD_STARTS

_Span = tuple[int, int]

# What opens a quotation, and what then closes it. Some marks do both: German ends with what English begins with.
_CLOSERS = {
    "“": "”",
    "„": "“”",
    "”": "”",
    "«": "»",
    "»": "«»",
    "「": "」",
    "『": "』",
    "❝": "❞",
    "〝": "〞〟",
    "\uff02": "\uff02",
    "\u2018": "\u2019",
    "\u201a": "\u2018\u2019",
    "\u2039": "\u203a",
    "\u203a": "\u2039\u203a",
    "《": "》",
    "〈": "〉",
    "❛": "❜",
}
_CURVED = re.compile("[“”„«»「」『』❝❞〝〞〟\uff02\u2018\u2019\u201a\u2039\u203a《》〈〉❛❜]")
# A straight single mark quotes where no letter stands before it: elsewhere it is an apostrophe.
_SINGLE = re.compile(r"(?<![\w'])'(?=[^\s'])([^'\n]{1,300})(?<=[^\s'])'(?![\w'])")

# A straight mark opens before a word and closes after one; that of 5 inches does neither.
_STRAIGHT = re.compile('"')
_OPENS = re.compile(rf'{WORD_STARTS}"(?=\S)')
_CLOSES = re.compile(rf'(?<=\S)"{WORD_ENDS}')
_AROUND = ' \t"“”„«»「」『』'
_QUOTED_LINE = re.compile(r"^ {0,3}>+ (.*)$", re.MULTILINE)

# Marks that only look like those above, and those that markup has.
_DOUBLE, _LONE = (
    "“”„\u201f«»❝❞〝〞〟\uff02\u2033\u2036\u276e\u276f「」『』《》〈〉｢｣﹁﹂﹃﹄\u2e42\u275f\u2760\u02dd\U0001f676\U0001f677\U0001f678",
    "\u2018\u2019\u201a\u201b\u2039\u203a❛❜\u00b4`\uff07\u2032\u2035",
)
# The brackets of editors, which Unicode counts among what opens and closes a quotation.
_EDITORIAL = "".join(map(chr, (*range(0x2E02, 0x2E06), 0x2E09, 0x2E0A, 0x2E0C, 0x2E0D, 0x2E1C, 0x2E1D, 0x2E20, 0x2E21)))
_STRAIGHTENED = str.maketrans({**dict.fromkeys(_DOUBLE + _EDITORIAL, '"'), **dict.fromkeys(_LONE, "'")})
_ENTITIES = re.compile("&(?:quot|[lrb]dquo|[lr]aquo|#0*34|#x0*22);|</?q>|<<(?=\\w)|(?<=[\\w.!?])>>", re.IGNORECASE)
_DOUBLED = re.compile("'{2,}|\"{2,}")
_FENCED = re.compile("[ \\t]*(?:`{3,}|~{3,})[^`]{0,20}")

_QUOTED = "\0"
_LISTED = re.compile(r"[ \t]*(?:[-*+>•]|\d{1,9}[.)])(?:[ \t]|$)|[ \t]*$")

_ONLY_QUOTED = re.compile(rf"[\W_]*{_QUOTED}[\W_]*")

# The second full stop of an abbreviation such as e.g. ends no sentence.
_ENDS = r"(?:(?<!\.\w)\.|[!?…])[*_)]*(?=\s|$)|[。\uff01\uff1f]"
_TOLD = "told|informed|reminded|advised|warned|promised|showed|shown|given|gave|offered|answered|to|for|with"
_TOLD_ID = "memberi ?tahu|menjawab|meminta|menanyai|mengingatkan|menawarkan|menyarankan|kepada|untuk|bagi"
_THINGS = r"interface|guides?|manual|stor(?:y|ies)|ids?|names?|agents?|experience|accounts?|tables?"

# The user is no speaker where the user is spoken to, or is the user of a user interface.
_EVENTS = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<ends>{_ENDS})|(?P<asked>\basked (?:the )?users?\b)"
    rf"|(?P<other>\b(?:assistant|model|asisten)\b|\busers? (?:{_THINGS})\b"
    rf"|(?<!according )\b(?:{_TOLD}) (?:the )?users?\b|\b(?:{_TOLD_ID}) pengguna\b"
    rf"|\busers? (?:was|were|has been|have been) (?:asked|{_TOLD})\b)"
    r"|(?P<user>\b(?:users?|humans?|customers?|pengguna|pelanggan)\b)",
    re.IGNORECASE,
)


class Quotation(NamedTuple):
    """A quoted span as it stands in the text; ``by_user`` if its sentence names the user as the one who said it."""

    text: str
    by_user: bool


class _Attribution:
    """Who said what: whoever is named last before a quotation, else first after it, else by what leads to its list."""

    def __init__(self) -> None:
        self.verdicts: list[bool] = []
        self.named: bool | None = None
        self.waiting = 0
        self.lead = False

    def meet(self, event: str | None) -> None:
        match event:
            case "quoted":
                self.waiting += 1
                if self.named is not None:
                    self._settle(by_user=self.named)
            case "ends":
                self.end_sentence()
            case _:
                # "…" asked the user: after a quotation the user is the one who asks.
                self._settle(by_user=event != "other")
                self.named = event == "user"

    def end_sentence(self) -> None:
        self._settle(by_user=self.lead)
        self.named = None

    def settle_led(self) -> None:
        self._settle(by_user=True)

    def _settle(self, *, by_user: bool) -> None:
        self.verdicts += [by_user] * self.waiting
        self.waiting = 0


def find_quotations(text: str) -> tuple[Quotation, ...]:
    """Every span between quotation marks of any kind or code marks, and every line after ``>``, in order."""
    spans = list_spans(text)
    if not spans:
        return ()
    outer = _merge(spans)
    verdicts = iter(zip(outer, _attribute(_mask(text, outer)), strict=True))
    found: list[Quotation] = []
    reached, by_user = -1, False
    for start, end in spans:
        if start >= reached:
            (_, reached), by_user = next(verdicts)
        found.append(Quotation(text=text[start:end], by_user=by_user))
    return tuple(found)


def mask_quotations(text: str, *, stands: Callable[[str], bool]) -> str:
    """The text without those of its quotations that stand somewhere; of the others only the marks are left out."""
    spans = list_spans(text)
    hidden = [one for one in spans if stands(text[slice(*one)])]
    marks = {at for start, end in spans for at in (start - 1, end)}
    covered = {at for start, end in hidden for at in range(start, end)}
    return "".join("" if at in marks else "\0" if at in covered else one for at, one in enumerate(text))


def straighten(text: str) -> str:
    """The text with one mark for every mark that doubles, one for every single one: whatever pair opens, any closes.

    A quotation that is not closed has its end at the end of its line.
    """
    return "\n".join(line if _FENCED.fullmatch(line) else _straighten_line(line) for line in text.split("\n"))


def _straighten_line(line: str) -> str:
    plain = _DOUBLED.sub('"', _ENTITIES.sub('"', line).translate(_STRAIGHTENED))
    return f'{plain}"' if plain.count('"') % 2 and _OPENS.match(plain, plain.rfind('"')) else plain


def list_spans(text: str) -> list[_Span]:
    """Where the quotations of a text begin and end, without their marks, in order; one may stand in another."""
    marked = {match.span(1) for match in _SINGLE.finditer(text)} | {m.span(2) for m in CODE_SPAN.finditer(text)}
    every = {*_curved(text), *_straight(text), *_lines(text), *marked}
    return sorted(span for span in every if span[0] < span[1])


def _lines(text: str) -> Iterator[_Span]:
    """Lines after ``>``, without the quotation marks that some put around them as well."""
    for match in _QUOTED_LINE.finditer(text):
        start = match.start(1) + len(match[1]) - len(match[1].lstrip(_AROUND))
        yield start, max(start, match.start(1) + len(match[1].rstrip(_AROUND)))


def _curved(text: str) -> Iterator[_Span]:
    open_marks: list[tuple[str, int]] = []
    for match in _CURVED.finditer(text):
        if open_marks and match[0] in _CLOSERS[open_marks[-1][0]]:
            yield open_marks.pop()[1], match.start()
        elif match[0] in _CLOSERS:
            open_marks.append((match[0], match.end()))


def _straight(text: str) -> Iterator[_Span]:
    for mark, following in pairwise(match.start() for match in _STRAIGHT.finditer(text)):
        if _OPENS.match(text, mark) and _CLOSES.match(text, following) and "\n\n" not in text[mark:following]:
            yield mark + 1, following


def _merge(spans: Sequence[_Span]) -> list[_Span]:
    """Spans inside or across others as one."""
    merged: list[_Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _mask(text: str, spans: Sequence[_Span]) -> str:
    """The text with one mark for each quotation; a sentence that ends inside its quotation ends after it."""
    pieces: list[str] = []
    reached = 0
    for start, end in spans:
        ends_sentence = (
            text[end - 1] in ".!?" and text[end + 1 : end + 2].isspace() and text[end + 2 : end + 3].isupper()
        )
        pieces += (text[reached:start].replace(_QUOTED, " "), _QUOTED, "." if ends_sentence else "")
        reached = end + ends_sentence
    return "".join([*pieces, text[reached:].replace(_QUOTED, " ")])


class _Place(Enum):
    """Where a line stands: in talk of its own, after a line that leads to others, under that, or after a gap there."""

    TALK = auto()
    LED = auto()
    UNDER = auto()
    GAP = auto()


def _attribute(said: str) -> list[bool]:
    """For each mark of a quotation, whether the words are said to be the user's."""
    reading = _Attribution()
    by_user, place = False, _Place.TALK
    for line in said.split("\n"):
        listed = _LISTED.match(line) is not None
        goes_on = listed or _goes_on(line, place)
        if listed or line.startswith("#"):
            reading.end_sentence()
        elif reading.lead:
            # Whoever the next line names did not say what stands in the list already.
            reading.settle_led()
        reading.lead = goes_on and by_user
        last: str | None = None
        for event in _EVENTS.finditer(line):
            reading.meet(event.lastgroup)
            last = last if event.lastgroup in ("quoted", "ends") else event.lastgroup
        leads = not listed and (line.rstrip(" *_").endswith(":") or line.startswith("#"))
        by_user = last == "user" if leads else goes_on and by_user
        place = _Place.LED if leads else _follow(line, place, goes_on=goes_on)
    reading.end_sentence()
    return reading.verdicts


def _goes_on(line: str, place: _Place) -> bool:
    """Whether a line of talk stands under what leads to it; after a gap most stand for themselves."""
    if place is _Place.GAP:
        return line.startswith((" ", "\t")) or _ONLY_QUOTED.fullmatch(line) is not None
    return place is not _Place.TALK and not line.startswith("#")


def _follow(line: str, place: _Place, *, goes_on: bool) -> _Place:
    """Where the line after one stands that leads to nothing itself."""
    if not goes_on:
        return _Place.TALK
    if line.strip():
        return _Place.UNDER
    # What leads to a paragraph or a list may stand apart from it.
    return _Place.GAP if place is _Place.UNDER else place
