"""Exact tokens: what a summary must not say in other words, and the list that carries it beside the summary."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from lamella.core.text.patterns import ADDRESS, CODE_SPAN, EXTENSIONS, LINK, RUN, SLASHED_PROSE, value_pattern

_SHELL = re.compile(
    "bash|bat|cmd|console|fish|powershell|ps1|sh|shell|shell-session|shellsession|terminal|zsh", re.IGNORECASE
)

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_PROMPT = re.compile(r"[ \t]*\$ +(?=\D)(\S.*)")
_LETTER = re.compile(r"[^\W\d_]")
_DOTFILE = re.compile(r"\.[a-z][\w-]{1,30}")
# After one of these a dot and a name are a method, not a file.
_CALLED = frozenset(")]}")

_AFTER_A_NAME = ".+%@~-"
# Without one of these there is neither a command nor code nor a link.
_MARKS = ("`", "$ ", "~~~", "[[")

# A number without a unit can stand for anything.
_BARE = re.compile(r"[-+\u2212]?\d+(?:[.,]\d+)*")

# A path with spaces in it is one where it stands in quotation marks, or has a backslash before each space.
_QUOTED_PATH = re.compile(
    r"(?<!\w)[\"'\u201c\u2018\u201e\u00ab](?P<path>(?:[A-Za-z]:[\\/]|\\\\|~?/|\.{1,2}[\\/])[^\n\"'\u201d\u2019\u201c\u00bb]{1,250})"
    r"[\"'\u201d\u2019\u201c\u00bb]"
)
_ESCAPED_PATH = re.compile(r"(?<![\w.@+~%/-])(?:~|\.{1,2})?/(?:[\w.@+~%/-]|\\ ){1,250}+")

_Span = tuple[int, int]


def find_exact(text: str, *, former: bool = False) -> tuple[str, ...]:
    """Paths, addresses, numbers, dates, commands and ids of a text, verbatim, by first appearance, each once.

    ``former`` finds what was exact before ids with one letter and numbers of two digits were.
    """
    found = [match.span() for match in value_pattern(former=former).finditer(text)]
    found += [_trim_address(match) for match in ADDRESS.finditer(text)]
    # Every sentence ends with what may be part of a name; most of them end nothing else.
    runs = [match for match in RUN.finditer(text) if "/" in match[0] or "." in match[0].rstrip(_AFTER_A_NAME)]
    found += _names(text, runs) if runs else ()
    found += _marked(text) if any(mark in text for mark in _MARKS) else ()
    found += _spaced_paths(text) if not former and ("/" in text or "\\" in text) else ()
    found.sort(key=lambda span: (span[0], -span[1]))
    kept: dict[str, None] = {}
    reached = 0
    for start, end in found:
        if reached <= start < end:
            kept.setdefault(text[start:end])
            reached = end
    return tuple(kept)


# The same texts are looked at in every plan, and reading one takes longer than everything else that is done with it.
read_exact = lru_cache(maxsize=1 << 14)(find_exact)


def list_exact(texts: Iterable[str], *, cap: int, count: Callable[[str], int], former: bool = False) -> str:
    """The exact tokens of the texts, one a line, never over the cap; what does not fit is counted in the last line.

    They stand in their order. What has no room is what is worth least: bare numbers, then what stands in many of the
    texts, of equals the newest, which is likelier to be said again in the turns that are kept. One token that is too
    long by itself does not keep the others out. ``former`` keeps the oldest of those that were exact before.
    """
    every = [find_exact(text, former=True) if former else read_exact(text) for text in texts]
    found = Counter(token for tokens in every for token in tokens)
    if not found:
        return ""
    ranked = list(found) if former else rank_exact(found)
    room = cap
    kept: list[str] = []
    for token in ranked:
        if room <= 0:
            break
        weight = count(f"{token}\n")
        if weight <= room:
            kept.append(token)
            room -= weight
    order = {token: at for at, token in enumerate(found)}
    while (ledger := _render(sorted(kept, key=order.__getitem__), len(found) - len(kept))) and count(ledger) > cap:
        if not kept:
            return ""
        kept.pop()
    return ledger


def rank_exact(found: Mapping[str, int]) -> list[str]:
    """Exact tokens by what they are worth, given in how many texts each stands: names before numbers, rare first."""
    return sorted(found, key=lambda token: (_BARE.fullmatch(token) is not None, found[token]))


def _render(kept: list[str], left_out: int) -> str:
    return "\n".join([*kept, f"and {left_out:,} more"] if left_out else kept)


def _marked(text: str) -> list[_Span]:
    """What marks of its own say to be exact: commands, code, and links between notes."""
    return [*_commands(text), *_code(text), *_links(text)]


def _commands(text: str) -> Iterator[_Span]:
    """Lines after a ``$``, and the lines of a shell's code block; where some have a prompt, the others are output."""
    fence = ""
    block: list[tuple[int, str]] | None = None
    start = 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
            block = [] if _SHELL.fullmatch(mark[2]) else None
        elif mark and mark[1].startswith(fence):
            yield from _block(block or [])
            fence, block = "", None
        elif block is not None:
            block.append((start, line))
        else:
            yield from _prompted(start, line)
        start += len(line) + 1
    yield from _block(block or [])


def _block(lines: list[tuple[int, str]]) -> Iterator[_Span]:
    prompted = [span for start, line in lines for span in _prompted(start, line)]
    if prompted:
        yield from prompted
        return
    for start, line in lines:
        if not line.lstrip().startswith("#"):
            yield _strip((start, start + len(line)), line)


def _prompted(start: int, line: str) -> Iterator[_Span]:
    prompt = _PROMPT.match(line)
    if prompt:
        yield _strip((start + prompt.start(1), start + prompt.end(1)), prompt[1])


def _strip(span: _Span, text: str) -> _Span:
    """The span without the white space around it."""
    return span[0] + len(text) - len(text.lstrip()), span[1] - len(text) + len(text.rstrip())


def _code(text: str) -> Iterator[_Span]:
    for match in CODE_SPAN.finditer(text):
        if match[2].strip():
            yield _strip(match.span(2), match[2])


def _links(text: str) -> Iterator[_Span]:
    for match in LINK.finditer(text):
        if match[1].strip():
            yield _strip(match.span(1), match[1])


def _spaced_paths(text: str) -> list[_Span]:
    quoted = [match.span("path") for match in _QUOTED_PATH.finditer(text) if " " in match["path"]]
    return [*quoted, *(match.span() for match in _ESCAPED_PATH.finditer(text))] if "\\ " in text else quoted


def _trim_address(match: re.Match[str]) -> _Span:
    """An address without what ends the sentence or the bracket that it stands in."""
    address = match[0].rstrip(".,;:!?*_")
    unopened = address.count(")") - address.count("(")
    closed = len(address) - len(address.rstrip(")]}"))
    address = address[: len(address) - min(max(unopened, 0), closed)].rstrip(".,;:!?*_")
    return match.start(), match.start() + len(address)


def _names(text: str, runs: Iterable[re.Match[str]]) -> Iterator[_Span]:
    """Those of some runs of characters that are paths or files."""
    for match in runs:
        start = match.start()
        run = match[0].rstrip(_AFTER_A_NAME)
        name = run.lstrip("+%-")
        start += len(run) - len(name)
        end = start + len(name)
        in_tag = text[start - 1 : start] == "<" or text[end : end + 1] == ">"
        called = name.startswith(".") and text[start - 1 : start] in _CALLED
        if (_is_file(name) and not called) or (not in_tag and _is_path(name)):
            yield start, end


def _is_path(name: str) -> bool:
    return "/" in name and _LETTER.search(name) is not None and name.casefold() not in SLASHED_PROSE


def _is_file(name: str) -> bool:
    base = name.partition(":")[0].partition("#")[0]
    stem, dot, extension = base.rpartition(".")
    if dot and stem.strip(".@") and not stem.startswith("@") and "/" not in extension:
        return extension.casefold() in EXTENSIONS
    return _DOTFILE.fullmatch(base) is not None
