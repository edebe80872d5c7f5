"""Pictures that a note embeds: what stands in it between ``![`` and its end, wherever that is no code."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from lamella.core.text.fences import walk_lines

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif", ".heic", ".tif", ".tiff")
_ADDRESSES = ("http://", "https://", "data:image/")

# Everything below is possessive and stops where the next opening begins: a text of nothing but openings is read once,
# and not again from each of them.
_TOKEN = re.compile(r"\\[\s\S]|`++|%%|<!--|\$\$?|!\[\[|!?\[|\]|\n[ \t]*+\n")
_WIKI = re.compile(r"!\[\[([^\[\]\n|#]++)(?:[|#][^\[\]\n]*+)?\]\]")
_MATH = re.compile(r"\$[^\s$](?:[^$\n]*[^\s$\\])?\$(?!\d)")
_BLANK = re.compile(r"\n[ \t]*+\n")
_LIST = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]")
_CLOSERS = {"%%": "%%", "<!--": "-->", "$$": "$$"}

_GAP = r"[ \t]*+(?:\n[ \t]*+)?+"
_TITLE = r"""(?:"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'|\((?:\\.|[^()\\\n])*+\))"""
_LABEL = re.compile(r"\[((?:[^\[\]\\\n]++|\\.)*+)\]")
_DEFINITION = re.compile(rf"^ {{0,3}}\[((?:[^\[\]\\\n]++|\\.)++)\]:{_GAP}(?:<([^<>\n]*+)>|(\S++))", re.MULTILINE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

# As many characters as the smallest icon has; what is shorter is an example of one.
_PASTED = re.compile(r"data:(image/[\w.+-]{1,40})[^,\s()<>\"']{0,80},([A-Za-z0-9+/=_%-]{64,})")


def embedded_images(text: str) -> tuple[str, ...]:
    """The targets of a note's embedded pictures, in order, each once; code, comments and formulas embed nothing."""
    if "![" not in text:
        return ()
    prose = "\n".join(_walk_prose(text))
    found = _Scan(prose).find()
    return tuple(dict.fromkeys(target for target in found if _names_picture(target)))


def is_address(target: str) -> bool:
    """Whether a target leads to the web, or is a picture as letters, rather than the name of a file."""
    return target[:11].lower().startswith(_ADDRESSES)


def fold_pasted(text: str) -> str:
    """A text with the pictures that were pasted into it as letters named by their size."""
    return _PASTED.sub(lambda pasted: f"{pasted[1]} of {len(pasted[2]):,} characters, left out", text)


def _names_picture(target: str) -> bool:
    return is_address(target) or target.lower().partition("?")[0].partition("#")[0].endswith(_ENDINGS)


def _walk_prose(text: str) -> Iterator[str]:
    """The lines of a text, those of code as empty ones. What is indented below an item of a list is part of it."""
    blank, listed, indented = True, False, False
    for line, fenced in walk_lines(text):
        deep = line.startswith(("    ", "\t"))
        indented = deep and not listed and (blank or indented)
        yield "" if fenced or indented else line
        blank = not line.strip()
        if not blank and not deep:
            listed = _LIST.match(line) is not None


def _balance(letters: str, *, depth: int) -> str:
    """A pattern for text whose parentheses close, so deep and no deeper: what nobody closes is given up soon."""
    text = rf"(?:{letters}|\\.)*+"
    for _ in range(depth):
        text = rf"(?:{letters}|\\.|\({text}\))*+"
    return text


@cache
def _target_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What may follow a bracket: an address and a title, or what people write who do not know that a space ends one."""
    unspaced, spaced = _balance(r"[^()\\\s]++", depth=3), _balance(r"[^()\\\n]++", depth=3)
    bare = rf"<((?:[^<>\\\n]++|\\.)*+)>|((?![<\s]){unspaced})"
    strict = re.compile(rf"\({_GAP}(?:{bare})(?:[ \t\n]{_GAP}{_TITLE})?+{_GAP}\)")
    return strict, re.compile(rf"\({_GAP}({spaced}){_GAP}\)")


class _Scan:
    """One walk through a text. ``stack`` holds the brackets that are open: where each is, and whether it embeds."""

    def __init__(self, prose: str) -> None:
        self._prose = prose
        self._stack: list[tuple[int, bool]] = []
        self._ticks: dict[int, list[int]] | None = None
        self._block = -1
        self._unclosed: set[str] = set()
        self._defined: dict[str, str] | None = None

    def find(self) -> Iterator[str]:
        at = 0
        while (token := _TOKEN.search(self._prose, at)) is not None:
            target, at = "", token.end()
            match token[0][0]:
                case "`":
                    at = self._pass_code(token)
                case "%" | "<" | "$":
                    at = self._pass_closed(token)
                case "\n":
                    # What a blank line stands in is two paragraphs; the break itself may be followed by another.
                    self._stack.clear()
                    at -= 1
                case "]":
                    target, at = self._close(at)
                case "!" | "[":
                    target, at = self._open(token)
            if target:
                yield target

    def _open(self, token: re.Match[str]) -> tuple[str, int]:
        """What a link of a wiki embeds, or nothing yet; and where reading goes on."""
        wiki = _WIKI.match(self._prose, token.start()) if token[0] == "![[" else None
        if wiki is not None:
            return wiki[1].rstrip("\\").strip(), wiki.end()
        embeds = token[0] != "["
        # Of three signs that are no link of a wiki the last opens a bracket of its own.
        begun = token.start() + 1 + embeds
        self._stack.append((begun, embeds))
        return "", begun

    def _pass_code(self, ticks: re.Match[str]) -> int:
        """The end of what these backticks open, else their own: as many of them close it, in the same paragraph."""
        if self._ticks is None:
            self._ticks = {}
            for run in re.finditer("`++", self._prose):
                self._ticks.setdefault(len(run[0]), []).append(run.start())
        same = self._ticks.get(len(ticks[0]), [])
        after = bisect_right(same, ticks.start())
        if after == len(same) or same[after] > self._end_block(ticks.end()):
            return ticks.end()
        return same[after] + len(ticks[0])

    def _end_block(self, at: int) -> int:
        if self._block < at:
            blank = _BLANK.search(self._prose, at)
            self._block = blank.start() if blank else len(self._prose)
        return self._block

    def _pass_closed(self, token: re.Match[str]) -> int:
        """The end of a comment or formula, else of what looked like one."""
        if token[0] == "$":
            formula = _MATH.match(self._prose, token.start())
            return formula.end() if formula else token.end()
        closer = _CLOSERS[token[0]]
        if closer in self._unclosed:
            return token.end()
        end = self._prose.find(closer, token.end())
        if end < 0:
            self._unclosed.add(closer)
            return token.end()
        return end + len(closer)

    def _close(self, at: int) -> tuple[str, int]:
        """What a bracket that closes before ``at`` embeds, nothing for links; and where reading goes on."""
        if not self._stack:
            return "", at
        begun, embeds = self._stack.pop()
        target, end = self._read_target(at, begun)
        return target if embeds else "", end

    def _read_target(self, at: int, begun: int) -> tuple[str, int]:
        opens = at + self._prose.startswith("\n(", at)
        if self._prose.startswith("(", opens):
            strict, spaced = _target_patterns()
            if (found := strict.match(self._prose, opens)) is not None:
                return _clean(found[1] if found[1] is not None else found[2]), found.end()
            if (found := spaced.match(self._prose, opens)) is not None:
                return _clean(_cut_title(found[1])), found.end()
        label = _LABEL.match(self._prose, at)
        name = label[1] if label is not None and label[1].strip() else self._prose[begun : min(at - 1, begun + 1_000)]
        return self._look_up(name), at if label is None else label.end()

    def _look_up(self, label: str) -> str:
        if self._defined is None:
            self._defined = {}
            for found in _DEFINITION.finditer(self._prose) if "]:" in self._prose else ():
                self._defined.setdefault(_fold_label(found[1]), _clean(found[2] if found[2] is not None else found[3]))
        return self._defined.get(_fold_label(label), "") if self._defined else ""


def _fold_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _clean(target: str) -> str:
    """A target without the marks that only its writing needs."""
    target = target.strip()
    return _ESCAPE.sub(r"\1", target).replace("&amp;", "&") if "\\" in target or "&" in target else target


def _cut_title(content: str) -> str:
    """An address with spaces, without the title behind it."""
    content = content.strip()
    opener = {'"': '"', "'": "'", ")": "("}.get(content[-1:])
    begins = content.rfind(opener, 0, -1) if opener else -1
    return content[:begins].rstrip() if begins > 0 and content[begins - 1].isspace() else content
