"""Find the images that a note embeds with ``![…]`` or ``![[…]]`` outside of code."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from lamella.core.text.content import iter_lines_with_code_flag

_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif", ".heic", ".tif", ".tiff")
_ADDRESS_PREFIXES = ("http://", "https://", "data:image/")

# All patterns below are possessive and stop where the next opening begins. A text that consists of openings only is
# therefore scanned once, not once per opening.
_TOKEN = re.compile(r"\\[\s\S]|`++|%%|<!--|\$\$?|!\[\[|!?\[|\]|\n[ \t]*+\n")
_WIKI_EMBED = re.compile(r"!\[\[([^\[\]\n|#]++)(?:[|#][^\[\]\n]*+)?\]\]")
_INLINE_MATH = re.compile(r"\$[^\s$](?:[^$\n]*[^\s$\\])?\$(?!\d)")
_BLANK_LINE = re.compile(r"\n[ \t]*+\n")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]")
_CLOSING_TOKENS = {"%%": "%%", "<!--": "-->", "$$": "$$"}

_LINK_GAP = r"[ \t]*+(?:\n[ \t]*+)?+"
_LINK_TITLE = r"""(?:"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'|\((?:\\.|[^()\\\n])*+\))"""
_REFERENCE_LABEL = re.compile(r"\[((?:[^\[\]\\\n]++|\\.)*+)\]")
_REFERENCE_DEFINITION = re.compile(
    rf"^ {{0,3}}\[((?:[^\[\]\\\n]++|\\.)++)\]:{_LINK_GAP}(?:<([^<>\n]*+)>|(\S++))", re.MULTILINE
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

# At least as many characters as the smallest icon has; anything shorter is an example in a text about data URLs.
_BASE64_IMAGE = re.compile(r"data:(image/[\w.+-]{1,40})[^,\s()<>\"']{0,80},([A-Za-z0-9+/=_%-]{64,})")


def embedded_images(text: str) -> tuple[str, ...]:
    """Return the targets of a note's embedded images, in order and without duplicates.

    Code, comments and formulas are skipped.
    """
    if "![" not in text:
        return ()
    prose = "\n".join(_iter_prose_lines(text))
    found = _EmbedScanner(prose).iter_targets()
    return tuple(dict.fromkeys(target for target in found if _is_image_target(target)))


def is_url(target: str) -> bool:
    """Return whether a target is a web address or a ``data:`` image, not a file name."""
    return target[:11].lower().startswith(_ADDRESS_PREFIXES)


def replace_pasted_images(text: str) -> str:
    """Replace each image that was pasted as base64 with a note of its type and length."""
    return _BASE64_IMAGE.sub(lambda pasted: f"{pasted[1]} of {len(pasted[2]):,} characters, left out", text)


def _is_image_target(target: str) -> bool:
    return is_url(target) or target.lower().partition("?")[0].partition("#")[0].endswith(_IMAGE_SUFFIXES)


def _iter_prose_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, with lines of code as empty ones.

    Indented lines below a list item belong to the item and are not code.
    """
    blank, listed, indented = True, False, False
    for line, fenced in iter_lines_with_code_flag(text):
        deep = line.startswith(("    ", "\t"))
        indented = deep and not listed and (blank or indented)
        yield "" if fenced or indented else line
        blank = not line.strip()
        if not blank and not deep:
            listed = _LIST_ITEM.match(line) is not None


def _balanced_pattern(letters: str, *, depth: int) -> str:
    """Return a pattern for text with balanced parentheses, nested up to ``depth`` levels.

    The fixed depth makes the match give up early on parentheses that are never closed.
    """
    text = rf"(?:{letters}|\\.)*+"
    for _ in range(depth):
        text = rf"(?:{letters}|\\.|\({text}\))*+"
    return text


@cache
def _target_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns for a target in parentheses: the strict Markdown form, and one that allows spaces.

    The second accepts addresses of people who do not know that a space ends the address.
    """
    unspaced, spaced = _balanced_pattern(r"[^()\\\s]++", depth=3), _balanced_pattern(r"[^()\\\n]++", depth=3)
    bare = rf"<((?:[^<>\\\n]++|\\.)*+)>|((?![<\s]){unspaced})"
    strict = re.compile(rf"\({_LINK_GAP}(?:{bare})(?:[ \t\n]{_LINK_GAP}{_LINK_TITLE})?+{_LINK_GAP}\)")
    return strict, re.compile(rf"\({_LINK_GAP}({spaced}){_LINK_GAP}\)")


class _EmbedScanner:
    """One pass through a text that collects embed targets.

    ``_stack`` has the open brackets: the position of each, and whether it embeds. The other fields cache what was
    already searched for (positions of backticks, end of the paragraph, closers that do not occur, link definitions),
    so that the pass stays linear.
    """

    def __init__(self, prose: str) -> None:
        self._prose = prose
        self._stack: list[tuple[int, bool]] = []
        self._ticks: dict[int, list[int]] | None = None
        self._block = -1
        self._unclosed: set[str] = set()
        self._defined: dict[str, str] | None = None

    def iter_targets(self) -> Iterator[str]:
        at = 0
        while (token := _TOKEN.search(self._prose, at)) is not None:
            target, at = "", token.end()
            match token[0][0]:
                case "`":
                    at = self._skip_code(token)
                case "%" | "<" | "$":
                    at = self._skip_comment_or_math(token)
                case "\n":
                    # A bracket does not span two paragraphs. Step back by one character, since the line break that
                    # ends this blank line may begin the next one.
                    self._stack.clear()
                    at -= 1
                case "]":
                    target, at = self._read_closing(at)
                case "!" | "[":
                    target, at = self._read_opening(token)
            if target:
                yield target

    def _read_opening(self, token: re.Match[str]) -> tuple[str, int]:
        """Return the target of a wiki embed, or an empty string, and the position to continue at."""
        wiki = _WIKI_EMBED.match(self._prose, token.start()) if token[0] == "![[" else None
        if wiki is not None:
            return wiki[1].rstrip("\\").strip(), wiki.end()
        embeds = token[0] != "["
        # In a ``![[`` that is no wiki embed the last ``[`` opens a bracket of its own, so scanning continues before it.
        begun = token.start() + 1 + embeds
        self._stack.append((begun, embeds))
        return "", begun

    def _skip_code(self, ticks: re.Match[str]) -> int:
        """Return the end of the code span that these backticks open, or the end of the backticks.

        As many backticks close the span; they must be in the same paragraph.
        """
        if self._ticks is None:
            self._ticks = {}
            for run in re.finditer("`++", self._prose):
                self._ticks.setdefault(len(run[0]), []).append(run.start())
        same = self._ticks.get(len(ticks[0]), [])
        after = bisect_right(same, ticks.start())
        if after == len(same) or same[after] > self._find_block_end(ticks.end()):
            return ticks.end()
        return same[after] + len(ticks[0])

    def _find_block_end(self, at: int) -> int:
        if self._block < at:
            blank = _BLANK_LINE.search(self._prose, at)
            self._block = blank.start() if blank else len(self._prose)
        return self._block

    def _skip_comment_or_math(self, token: re.Match[str]) -> int:
        """Return the end of the comment or formula, or the end of the token if it opens neither."""
        if token[0] == "$":
            formula = _INLINE_MATH.match(self._prose, token.start())
            return formula.end() if formula else token.end()
        closer = _CLOSING_TOKENS[token[0]]
        if closer in self._unclosed:
            return token.end()
        end = self._prose.find(closer, token.end())
        if end < 0:
            self._unclosed.add(closer)
            return token.end()
        return end + len(closer)

    def _read_closing(self, at: int) -> tuple[str, int]:
        """Return what the bracket that closes before ``at`` embeds, and the position to continue at.

        The target is empty for links that do not embed.
        """
        if not self._stack:
            return "", at
        begun, embeds = self._stack.pop()
        target, end = self._read_target(at, begun)
        return target if embeds else "", end

    def _read_target(self, at: int, start: int) -> tuple[str, int]:
        opens = at + self._prose.startswith("\n(", at)
        if self._prose.startswith("(", opens):
            strict, spaced = _target_patterns()
            if (found := strict.match(self._prose, opens)) is not None:
                return _unescape_target(found[1] if found[1] is not None else found[2]), found.end()
            if (found := spaced.match(self._prose, opens)) is not None:
                return _unescape_target(_strip_title(found[1])), found.end()
        label = _REFERENCE_LABEL.match(self._prose, at)
        name = label[1] if label is not None and label[1].strip() else self._prose[start : min(at - 1, start + 1_000)]
        return self._resolve_reference(name), at if label is None else label.end()

    def _resolve_reference(self, label: str) -> str:
        if self._defined is None:
            self._defined = {}
            for found in _REFERENCE_DEFINITION.finditer(self._prose) if "]:" in self._prose else ():
                self._defined.setdefault(
                    _normalize_label(found[1]), _unescape_target(found[2] if found[2] is not None else found[3])
                )
        return self._defined.get(_normalize_label(label), "") if self._defined else ""


def _normalize_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _unescape_target(target: str) -> str:
    """Return a target without Markdown escapes and HTML entities."""
    target = target.strip()
    return _ESCAPE.sub(r"\1", target).replace("&amp;", "&") if "\\" in target or "&" in target else target


def _strip_title(content: str) -> str:
    """Return an address that may contain spaces, without the title behind it."""
    content = content.strip()
    opener = {'"': '"', "'": "'", ")": "("}.get(content[-1:])
    begins = content.rfind(opener, 0, -1) if opener else -1
    return content[:begins].rstrip() if begins > 0 and content[begins - 1].isspace() else content
