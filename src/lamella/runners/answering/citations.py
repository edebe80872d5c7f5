"""Citations: ``[^n]`` in an answer, held to the sources that there are and numbered as they are first mentioned.

An answer is changed while it comes. Only what may be a part of a citation is held back, so that what was shown and what
is written down are the same at every moment.
"""

import re
from collections.abc import Sequence

from lamella.core.log.events.reply import CitedSource
from lamella.core.text.fences import INLINE_CODE

# Code in a line, which is left alone; or a citation, of one number or several, with the space before it, which goes
# with one that is removed.
_TOKEN = re.compile(
    rf"(?P<code>{INLINE_CODE})"
    r"|(?P<space>(?<![ \t])[ \t]*+)\[\^ ?(?P<numbers>\d++(?:[,;] ?\^?\d++)*+) ?\]"
)
# What stands at the end of a text and may become a citation, and how long it may get: what goes on beyond is none.
_BEGUN = re.compile(r"\[(?:\^[\d,; ^]*+)?")
_LONGEST_BEGUN = 2_000
_BLANKS = 80
# More digits than any number of sources has.
_DIGITS = 6
_NUMBER = re.compile(r"\d+")
# A line by which a model tells a source itself: the list at the end is made of those that there are.
_DEFINITION = re.compile(r" {0,3}\[\^ ?(\d++) ?\]:")
# The beginning of a line that may become one, or the mark of a fence.
_UNSURE = re.compile(r" {0,3}(?:\[(?:\^ ?(?:\d++ ?(?:\](?::.*)?)?)?)?|`{1,2}|~{1,2}|(?:`{3,}|~{3,}).*)?\Z")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<words>.*)\Z")
_TICKS = re.compile(r"`+")
# Code in a line is short: what has not ended after so many characters is none.
_LONGEST_CODE = 400
_BELOW = " > "
_UNLINKED = frozenset("[]|#^\n")


class CitationEditor:
    """Numbers the citations of one answer by their first mention, and removes those of sources that are not there.

    ``offered`` are the sources by the numbers that the model was told, beginning with 1.
    """

    def __init__(self, offered: Sequence[CitedSource]) -> None:
        self._offered = tuple(offered)
        self._numbers: dict[CitedSource, int] = {}
        # Those that the model told in a list of its own.
        self._told: dict[CitedSource, None] = {}
        self._held = ""
        # Whether nothing of the line was given yet, the fence that it stands in, and the number that was given last.
        self._fresh = True
        self._fence = ""
        self._last: int | None = None
        self._breaks = 0

    @property
    def sources(self) -> tuple[CitedSource, ...]:
        """The sources that were cited, by their new numbers."""
        return tuple(self._numbers)

    def take(self, text: str) -> str:
        """What can be shown once this much more has come."""
        return self._note(self._go_on(text))

    def end(self, *, called: bool) -> str:
        """What was held back; an answer in words that cites ends with a list of its sources."""
        rest = self._note(self._end_line(self._held) or "")
        self._held, self._fence = "", ""
        if not called and not self._numbers:
            # It says what it rests on, if not where: as good as a citation of the whole.
            self._numbers = {source: number for number, source in enumerate(self._told, start=1)}
        if called or not self._numbers:
            return rest
        listed = [f"[^{number}]: {name_source(source)}" for source, number in self._numbers.items()]
        return rest + "\n" * max(0, 2 - self._breaks) + "\n".join(listed)

    def _go_on(self, text: str) -> str:
        *lines, self._held = (self._held + text).split("\n")
        ended = [self._end_line(line) for line in lines]
        settled = self._settle(self._held)
        given = "".join(f"{line}\n" for line in ended if line is not None)
        if not settled:
            return given
        begun, self._held = self._held[:settled], self._held[settled:]
        self._fresh = False
        return given + (begun if self._fence else self._edit(begun))

    def _end_line(self, rest: str) -> str | None:
        """The rest of a line that has ended as it should be; nothing of one that only tells a source."""
        whole, self._fresh = self._fresh, True
        if whole and self._turn_fence(rest):
            return rest
        if self._fence:
            return rest
        if whole and (told := _DEFINITION.match(rest)):
            self._told |= dict.fromkeys(self._find(told[1]))
            return None
        edited = self._edit(rest)
        self._last = None
        return edited

    def _settle(self, text: str) -> int:
        """How much of a line that has not ended can no longer become something else."""
        if self._fresh and _UNSURE.match(text):
            return 0
        if self._fence:
            return len(text)
        return min(_find_open_code(text), _find_begun(text))

    def _turn_fence(self, line: str) -> bool:
        """Whether a whole line opens or closes a fence, which it then does."""
        mark = _FENCE.match(line)
        if mark is None:
            return False
        if self._fence:
            closes = mark["mark"].startswith(self._fence) and not mark["words"].strip()
            self._fence = "" if closes else self._fence
            return closes
        if mark["mark"][0] == "`" and "`" in mark["words"]:
            return False
        self._fence = mark["mark"]
        return True

    def _edit(self, text: str) -> str:
        """A text with its citations as they should be; it begins and ends in the middle of none."""
        given: list[str] = []
        at = 0
        for match in _TOKEN.finditer(text):
            self._pass(text[at : match.start()], given)
            if match["code"]:
                self._pass(match["code"], given)
            else:
                given.append(self._number(match))
            at = match.end()
        self._pass(text[at:], given)
        return "".join(given)

    def _pass(self, text: str, given: list[str]) -> None:
        given.append(text)
        self._last = None if text.strip() else self._last

    def _number(self, match: re.Match[str]) -> str:
        """A citation by its new numbers; nothing where no source has it, or where it was given just before."""
        shown = ""
        for source in self._find(match["numbers"]):
            new = self._numbers.setdefault(source, len(self._numbers) + 1)
            if new != self._last:
                shown += f"[^{new}]"
                self._last = new
        return match["space"] + shown if shown else ""

    def _find(self, numbers: str) -> list[CitedSource]:
        """The sources of some numbers, as far as there are such."""
        read = [int(digits) for digits in _NUMBER.findall(numbers) if len(digits.lstrip("0")) <= _DIGITS]
        known = [number for number in read if 0 < number <= len(self._offered)]
        return [self._offered[number - 1] for number in known]

    def _note(self, given: str) -> str:
        """Remember how many line breaks what was given ends in."""
        if given:
            ends = len(given) - len(given.rstrip("\n"))
            self._breaks = self._breaks + ends if ends == len(given) else ends
        return given


def name_source(source: CitedSource) -> str:
    """A source as a link to where it stands, as far as a link can say that."""
    path, _, _ = source.id.partition("#passage:")
    if _UNLINKED.intersection(path):
        return " ".join(path.split())
    headings = source.place.split(_BELOW) if source.place else []
    below = [] if any(_UNLINKED.intersection(one) for one in headings) else headings
    return f"[[{'#'.join((path, *below))}]]"


def _find_begun(text: str) -> int:
    """Where a citation begins that has no end yet, with the blanks before it; the end of the text where none does."""
    at = text.rfind("[")
    if at < 0 or len(text) - at > _LONGEST_BEGUN or not _BEGUN.fullmatch(text, at):
        at = len(text)
    before = text[max(0, at - _BLANKS) : at]
    return at - (len(before) - len(before.rstrip(" \t")))


def _find_open_code(text: str) -> int:
    """Where code begins in a line that has no end yet, or may go on; the end of the text where none does."""
    start = 0
    while (opening := _TICKS.search(text, start)) is not None:
        runs = _TICKS.finditer(text, opening.end())
        closing = next((run for run in runs if run[0] == opening[0] and run.end() < len(text)), None)
        if closing is None and len(text) - opening.start() <= _LONGEST_CODE:
            return opening.start()
        start = opening.end() if closing is None else closing.end()
    return len(text)
