"""Exact tokens: paths, addresses, numbers, dates, commands and ids that a summary must not paraphrase.

``extract_exact_strings`` returns those of a text, and ``render_exact_strings`` lists those of several texts within a
token limit. The quantifiers of all patterns are possessive or bounded, so that no text causes backtracking.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache

from lamella.core.text.content import WORD_ENDS, WORD_STARTS

_UNITS = (
    "bits?|bytes?|[kKMGTP]i?B|[kM]bps|[MGT]bit|B|k|K|M|tokens?|chars?|characters?|karakter|words?|kata|lines?|baris"
    "|pages?|halaman|px|pt|rem|em|dpi|fps|rpm|ns|µs|us|ms|s|secs?|seconds?|detik|mins?|minutes?|menit|h|hrs?|hours?|jam"
    "|days?|hari|weeks?|minggu|months?|bulan|years?|tahun|kg|mg|g|km|cm|mm|nm|m|l|ml|[kMG]?Hz|[kM]W|kWh|mA|mAh|V"
    "|thousand|million|billion|trillion|ribu|juta|miliar|triliun|dollars?|euros?|rupiah|USD|EUR|IDR|GBP|x|times|kali"
)
_SCALES = "k|K|M|B|thousand|million|billion|ribu|juta|miliar|triliun"
_MONTHS = (
    "Jan(?:uary|uari)?|Feb(?:ruary|ruari)?|Mar(?:ch|et)?|Apr(?:il)?|May|Mei|Jun[ei]?|Jul[yi]?|Aug(?:ust)?|Agu(?:stus)?"
    "|Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cs](?:ember)?"
)
_NUMBER = r"\d++(?:[.,]\d++)*+"
_TIME_PATTERN = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d++)?)?(?: ?[AaPp](?:[Mm]|\.[Mm]\.))?(?:Z|[+-]\d{2}:?\d{2})?"

# Excludes the quotes, brackets and full stops of East Asian scripts, which end an address as a space does.
_ADDRESS_CHARACTER = r"[^\s<>\"'`\u3001\u3002\u300c-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"

CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^\n\r]{1,500}?)(?<!`)\1(?!`)")
WIKI_LINK = re.compile(r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]{0,200})?\]\]")
URL = re.compile(
    rf"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]{{1,20}}://|www\.|localhost:\d){_ADDRESS_CHARACTER}++", re.IGNORECASE
)

# A run of path characters with an optional line number: `src/app.py:12`, `notes/plan.md#L10-L20`.
PATH_CANDIDATE = re.compile(
    r"(?<![\w.@+~%/-])[\w@+~%-]*+[./][\w.@+~%/-]*+(?::\d++(?::\d++)?+)?+(?:#L?\d++(?:-L?\d++)?+)?+"
)

# Dates and times. Longer patterns come before shorter ones.
DATE_TIME_PATTERNS = (
    rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_TIME_PATTERN})?",
    r"\d{2,4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|\d{1,2}月\d{1,2}日",
    rf"\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})(?:,? \d{{4}})?",
    rf"(?:{_MONTHS}) (?:\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{4}})",
    rf"(?<!\d[.,:]){_TIME_PATTERN}",
    r"\d{1,2} ?[AaPp][Mm]",
)
_QUANTITY = rf"(?<!\d[.,])[-+\u2212]?{_NUMBER} ?(?:%|\u2030|°[CF]?|(?:{_UNITS}))"
# Values that begin at a word boundary. The first alternative that matches wins, so longer ones come first.
_VALUE_PATTERNS = (
    # Flags, files without an extension, Windows paths, e-mail addresses
    r"--[A-Za-z][\w-]*+",
    "(?:Dockerfile|Gemfile|Jenkinsfile|Justfile|Makefile|Procfile|Rakefile|Vagrantfile)",
    r"(?:[A-Za-z]:|\\)\\(?:[\w@+~%$-]|\.(?=\w)|\\(?=\w))++",
    r"(?<![.+%@-])[\w.+%-]{1,64}@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++",
    *DATE_TIME_PATTERNS,
    # Money, and numbers with a unit
    r"(?:(?:US|AU?|CA?)?\$|[€£¥₹₩]|Rp\.?|USD|EUR|IDR|GBP) ?" + _NUMBER + rf"(?: ?(?:{_SCALES}){WORD_ENDS})?",
    _QUANTITY,
    # UUIDs, hashes and other hexadecimal numbers, issues
    r"(?<!-)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    r"(?=[a-fA-F]*+\d)(?=\d*+[a-fA-F])[0-9a-fA-F]{7,}+",
    r"0x[0-9a-fA-F]++",
    r"[A-Z][A-Z0-9]{1,9}-\d{1,7}",
    r"(?<![&#/])#\d{1,7}",
    # Versions and IP addresses, other dates, decimals and groups of digits, whole numbers from three digits on
    r"(?<!\d[.,])(?:[vV]\d++(?:\.\d++)*+|\d++(?:\.\d++){2,}+)(?:[-+][0-9A-Za-z]++(?:[.+-][0-9A-Za-z]++)*+)?+(?::\d{1,5})?",
    r"\d{1,4}[/.]\d{1,2}[/.]\d{1,4}",
    r"(?<!\d[.,])[-+\u2212]?(?:\d++(?:[.,]\d++)++|\d{3,}+)",
)
_MORE_CURRENCY_CODES = (
    "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|HKD|INR|JPY|KRW|MXN|MYR|NOK|NZD|PHP|PLN|SEK|SGD|THB|TRY|TWD|VND|ZAR"
)
_GERMAN_MONTHS = (
    "Jan(?:uar)?|Feb(?:ruar)?|März|Mrz|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?|Sept?(?:ember)?|Okt(?:ober)?"
    "|Nov(?:ember)?|Dez(?:ember)?"
)
# Words of prose before a hyphen and a number. Only the number is exact there.
_PROSE_PREFIXES = (
    "about|all|circa|double|each|early|every|half|late|mid|multi|near|non|over|plus|post|pra|pre|single|sub|super|top"
    "|under"
)
# Added later: identifiers with a number, quarters, spaced groups of digits, signed and two-digit numbers. They are a
# list of their own because the history summary is rebuilt without them (``legacy``), so that it equals the bytes sent.
_LATER_VALUE_PATTERNS = (
    # MAC and IPv6 addresses, telephone numbers with a country code
    r"(?=[0-9a-fA-F]{1,4}[:-])(?:[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}|(?=[0-9a-fA-F:]{0,40}?::|(?:[0-9a-fA-F]{1,4}:){7})"
    r"(?:[0-9a-fA-F]{1,4}:){1,7}(?::|[0-9a-fA-F]{1,4})(?::?[0-9a-fA-F]{1,4}){0,6}(?:/\d{1,3})?)",
    r"\+\d{1,3}[ -](?:\(\d{1,4}\) ?)?\d{2,9}(?:[ /-]\d{2,9}){1,5}",
    # Networks, German dates, dimensions, digit groups with decimals behind the other mark, currencies
    r"(?=[-+\u2212\d])(?:\d{1,3}(?:\.\d{1,3}){3}/\d{1,2}"
    rf"|\d{{1,2}}\. ?(?:{_GERMAN_MONTHS})(?: \d{{4}})?"
    r"|\d{1,6}(?:[.,]\d{1,4})?(?: ?[x\u00d7] ?\d{1,6}(?:[.,]\d{1,4})?){1,3}(?: ?(?:[kcm]?m[\u00b2\u00b3]?|px|in))?"
    r"|(?<!\d[.,])[-+\u2212]?\d{1,3}(?:(?:\.\d{3})++,\d++|(?:,\d{3})++\.\d++)(?![.,]?\d)"
    rf"|(?<!\d[.,])[-+\u2212]?{_NUMBER} ?(?:{_MORE_CURRENCY_CODES}))",
    # Windows paths with spaces in folder names, IBANs in groups, currencies, names of constants
    r"(?:[A-Za-z]:|\\)\\(?:[\w@+~%$.()-]{1,60}(?: [\w@+~%$.()-]{1,60}){0,5}\\){1,20}(?:[\w@+~%$-]|\.(?=\w))++",
    r"(?=[A-Z][A-Z0-9_])(?:[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?"
    rf"|(?:{_MORE_CURRENCY_CODES}) ?{_NUMBER}|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++)",
    # Codes of capitals and digits (HAT266, M05KNL, 12A), telephone and other numbers in parts, powers of ten
    r"(?=[A-Z]*+\d)(?=\d*+[A-Z])(?<![.,:+-])[A-Z0-9]{3,34}+(?!-\w)",
    r"(?=[-+\u2212\d])(?:(?<!-)(?!\d{4}-\d{2}-\d{2}(?!\d))\+?\d{1,5}(?:-\d{1,9}){2,6}+(?!-)"
    r"|(?<!\d[.,])[-+\u2212]?(?:\d++(?:[.,]\d++)?+[eE][-+]?\d{1,3}(?![-\d])|\d{1,3}(?:_\d{3})++))",
    # Ids of any number of parts (K-37, INV-2026-0042, web-7d9f-x2lqz), also as names in a domain (db-02.internal)
    rf"(?!(?i:{_PROSE_PREFIXES})-)(?:[A-Z]|[a-z][A-Za-z0-9])[A-Za-z0-9]{{0,30}}-(?:[A-Za-z0-9]{{1,30}}-){{0,8}}"
    r"(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{1,40}(?:\.[a-z][a-z0-9-]{0,30}){0,5}+",
    r"(?=[A-Za-z_]*+\d)[A-Za-z][A-Za-z0-9]*+(?:_[A-Za-z0-9]++)++",
    r"(?:Q[1-4]|H[12])[ /-]?\d{4}",
    r"(?<!\d[ .,'\u2019])[-+\u2212]?\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})++(?:[.,]\d{1,6})?+(?![.,]?\d)",
    # Tried last, where nothing longer begins: ordinals, and names with a digit behind a letter (a7f93k2, utf8, p95)
    r"\d{2,3}(?:st|nd|rd|th)|(?<![.,:+-])(?=[0-9]*+[A-Za-z]++\d)[A-Za-z0-9]{2,40}+(?!-\w)(?![.,]\d)",
    r"(?<![\d/][.,/])(?<![/#&])[-+\u2212]\d++(?![/\d])",
    r"(?<!\d[.,])(?<![/#&+\u2212])\d{2,}+(?![/\d])",
)


@cache
def exact_value_pattern(*, legacy: bool = False) -> re.Pattern[str]:
    """Return the pattern of all exact values; ``legacy`` leaves out those added later.

    Compiling takes 25 ms (2026-11-17), and most commands need no values, so it is compiled on first use.
    """
    # Spaced groups of digits begin like shorter numbers, so the later patterns are tried first.
    # The lookahead after measured values keeps the K of "5 K-37" from being read as a unit.
    known = (
        _VALUE_PATTERNS
        if legacy
        else (f"{one}(?!(?<= [A-Z])-\\d)" if one == _QUANTITY else one for one in _VALUE_PATTERNS)
    )
    values = known if legacy else (*_LATER_VALUE_PATTERNS[:-3], *known, *_LATER_VALUE_PATTERNS[-3:])
    # No value begins with a lowercase word before a space. Skipping these avoids most of the work on prose.
    plain = r"(?![a-z]++(?:\s|$))"
    return re.compile(f"{WORD_STARTS}{plain}(?:{'|'.join(f'(?:{value}){WORD_ENDS}' for value in values)})")


@cache
def date_time_pattern() -> re.Pattern[str]:
    """Return the pattern of dates and times, including numeric dates with a four-digit year."""
    year = r"(?:19|20)\d{2}"
    numbers = rf"\d{{1,2}}[/.]\d{{1,2}}[/.]{year}|{year}[/.]\d{{1,2}}[/.]\d{{1,2}}"
    return re.compile(f"{WORD_STARTS}(?:{'|'.join(f'(?:{one}){WORD_ENDS}' for one in (*DATE_TIME_PATTERNS, numbers))})")


FILE_EXTENSIONS = frozenset(
    {
        "7z", "ai", "astro", "avi", "avif", "bak", "bash", "bat", "bib", "bmp", "c", "canvas", "cc", "cfg", "cjs",
        "class", "clj", "cmd", "conf", "cpp", "cs", "csproj", "css", "csv", "cxx", "db", "deb", "diff", "doc",
        "dockerfile", "docx", "dot", "drawio", "dwg", "ejs", "elm", "env", "epub", "erl", "ex", "exe", "exs", "fig",
        "flac", "fs", "gif", "go", "gradle", "graphql", "gz", "h", "hbs", "hcl", "hpp", "hs", "htm", "html", "ico",
        "ics", "ini", "ipynb", "iso", "jar", "java", "jl", "jpeg", "jpg", "js", "json", "json5", "jsonc", "jsonl",
        "jsx", "key", "kt", "kts", "less", "lisp", "lock", "log", "lua", "m4a", "make", "map", "md", "mdx", "mjs",
        "ml", "mov", "mp3", "mp4", "mpeg", "msg", "ndjson", "nix", "odp", "ods", "odt", "ogg", "org", "out", "parquet",
        "patch", "pbxproj", "pdf", "pem", "php", "pickle", "pkl", "pl", "plist", "png", "po", "ppt", "pptx", "prisma",
        "properties", "proto", "ps1", "psd", "py", "pyc", "pyi", "pyx", "r", "rar", "rb", "rs", "rst", "rtf", "sass",
        "scala", "scss", "sh", "sln", "so", "sql", "sqlite", "srt", "styl", "svelte", "svg", "swift", "tar", "tex",
        "tf", "tfvars", "tgz", "tif", "tiff", "toml", "ts", "tsv", "tsx", "ttf", "txt", "vb", "vim", "vtt", "vue",
        "wasm", "wav", "webm", "webp", "woff", "woff2", "xcf", "xls", "xlsx", "xml", "xz", "yaml", "yml", "zig", "zip",
        "zsh",
    }
)  # fmt: skip

# Slashes of prose. Any other word with a slash may be a folder, and losing a folder costs more than keeping a word.
SLASHED_PROSE = frozenset(
    {
        "and/or", "client/server", "dan/atau", "either/or", "he/she", "him/her", "his/her", "i/o", "input/output",
        "km/h", "m/s", "n/a", "on/off", "pro/con", "pros/cons", "read/write", "s/he", "she/he", "tcp/ip", "true/false",
        "w/o", "ya/tidak", "yes/no",
    }
)  # fmt: skip


# Extract exact tokens from texts, and list them.

_SHELL_LANGUAGE = re.compile(
    "bash|bat|cmd|console|fish|powershell|ps1|sh|shell|shell-session|shellsession|terminal|zsh", re.IGNORECASE
)

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_PROMPT_LINE = re.compile(r"[ \t]*\$ +(?=\D)(\S.*)")
_LETTER = re.compile(r"[^\W\d_]")
_DOTFILE = re.compile(r"\.[a-z][\w-]{1,30}")
# After one of these a dot and a name are a method call, not a file.
_BEFORE_METHOD_CALL = frozenset(")]}")

_TRAILING_PUNCTUATION = ".+%@~-"
# A text without any of these has no command, no code and no link.
_MARKUP_SIGNS = ("`", "$ ", "~~~", "[[")

# A number without a unit could mean anything, so it ranks last.
_BARE_NUMBER = re.compile(r"[-+\u2212]?\d+(?:[.,]\d+)*")

# A path with spaces is recognised only in quotation marks or with a backslash before each space.
_QUOTED_PATH = re.compile(
    r"(?<!\w)[\"'\u201c\u2018\u201e\u00ab](?P<path>(?:[A-Za-z]:[\\/]|\\\\|~?/|\.{1,2}[\\/])[^\n\"'\u201d\u2019\u201c\u00bb]{1,250})"
    r"[\"'\u201d\u2019\u201c\u00bb]"
)
_ESCAPED_PATH = re.compile(r"(?<![\w.@+~%/-])(?:~|\.{1,2})?/(?:[\w.@+~%/-]|\\ ){1,250}+")

_Span = tuple[int, int]


def extract_exact_strings(text: str, *, legacy: bool = False) -> tuple[str, ...]:
    """Return the paths, addresses, numbers, dates, commands and ids of a text, verbatim.

    They are ordered by first appearance, without duplicates. ``legacy`` applies the older rules, which had no ids with
    a single letter and no two-digit numbers.
    """
    found = [match.span() for match in exact_value_pattern(legacy=legacy).finditer(text)]
    found += [_url_span(match) for match in URL.finditer(text)]
    # Nearly every sentence ends with a full stop, which the pattern accepts. Only runs with more than that are checked.
    runs = [
        match
        for match in PATH_CANDIDATE.finditer(text)
        if "/" in match[0] or "." in match[0].rstrip(_TRAILING_PUNCTUATION)
    ]
    found += _path_spans(text, runs) if runs else ()
    found += _markup_spans(text) if any(mark in text for mark in _MARKUP_SIGNS) else ()
    found += _spaced_path_spans(text) if not legacy and ("/" in text or "\\" in text) else ()
    # At equal starts the longest span comes first, and the loop below skips every span that overlaps an earlier one.
    found.sort(key=lambda span: (span[0], -span[1]))
    kept: dict[str, None] = {}
    reached = 0
    for start, end in found:
        if reached <= start < end:
            kept.setdefault(text[start:end])
            reached = end
    return tuple(kept)


# Every plan extracts the tokens of the same texts, and extracting takes longer than everything else done with a text.
extract_exact_tokens_cached = lru_cache(maxsize=1 << 14)(extract_exact_strings)


def render_exact_strings(
    texts: Iterable[str], *, max_tokens: int, count: Callable[[str], int], legacy: bool = False
) -> str:
    """Return the exact tokens of the texts, one per line and at most ``max_tokens`` tokens long.

    The last line counts the tokens that do not fit. The list keeps the order of appearance. Dropped first are bare
    numbers, then tokens that occur in many of the texts, and among equals the newest, which the turns that are kept
    are likelier to repeat. A single token that is too long does not keep out the others. ``legacy`` applies the older
    rules and keeps the oldest tokens.
    """
    every = [
        extract_exact_strings(text, legacy=True) if legacy else extract_exact_tokens_cached(text) for text in texts
    ]
    found = Counter(token for tokens in every for token in tokens)
    if not found:
        return ""
    ranked = list(found) if legacy else rank_exact_strings(found)
    remaining = max_tokens
    kept: list[str] = []
    for token in ranked:
        if remaining <= 0:
            break
        weight = count(f"{token}\n")
        if weight <= remaining:
            kept.append(token)
            remaining -= weight
    order = {token: at for at, token in enumerate(found)}
    while (ledger := _render_list(sorted(kept, key=order.__getitem__), len(found) - len(kept))) and count(
        ledger
    ) > max_tokens:
        if not kept:
            return ""
        kept.pop()
    return ledger


def rank_exact_strings(text_counts: Mapping[str, int]) -> list[str]:
    """Sort exact tokens by value, most valuable first: names before numbers, rare before frequent.

    ``text_counts`` says in how many texts each token occurs.
    """
    return sorted(text_counts, key=lambda token: (_BARE_NUMBER.fullmatch(token) is not None, text_counts[token]))


def _render_list(kept: list[str], left_out: int) -> str:
    return "\n".join([*kept, f"and {left_out:,} more"] if left_out else kept)


def _markup_spans(text: str) -> list[_Span]:
    """Return the spans that markup marks as exact: commands, code, and links between notes."""
    return [*_command_spans(text), *_code_spans(text), *_link_spans(text)]


def _command_spans(text: str) -> Iterator[_Span]:
    """Yield lines after a ``$`` prompt and the lines of shell code blocks.

    If some lines of a block have a prompt, the others are output and are skipped.
    """
    fence = ""
    block: list[tuple[int, str]] | None = None
    start = 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
            block = [] if _SHELL_LANGUAGE.fullmatch(mark[2]) else None
        elif mark and mark[1].startswith(fence):
            yield from _shell_block_spans(block or [])
            fence, block = "", None
        elif block is not None:
            block.append((start, line))
        else:
            yield from _prompt_line_spans(start, line)
        start += len(line) + 1
    yield from _shell_block_spans(block or [])


def _shell_block_spans(lines: list[tuple[int, str]]) -> Iterator[_Span]:
    prompted = [span for start, line in lines for span in _prompt_line_spans(start, line)]
    if prompted:
        yield from prompted
        return
    for start, line in lines:
        if not line.lstrip().startswith("#"):
            yield _strip_span((start, start + len(line)), line)


def _prompt_line_spans(start: int, line: str) -> Iterator[_Span]:
    prompt = _PROMPT_LINE.match(line)
    if prompt:
        yield _strip_span((start + prompt.start(1), start + prompt.end(1)), prompt[1])


def _strip_span(span: _Span, text: str) -> _Span:
    """Return the span without surrounding white space."""
    return span[0] + len(text) - len(text.lstrip()), span[1] - len(text) + len(text.rstrip())


def _code_spans(text: str) -> Iterator[_Span]:
    for match in CODE_SPAN.finditer(text):
        if match[2].strip():
            yield _strip_span(match.span(2), match[2])


def _link_spans(text: str) -> Iterator[_Span]:
    for match in WIKI_LINK.finditer(text):
        if match[1].strip():
            yield _strip_span(match.span(1), match[1])


def _spaced_path_spans(text: str) -> list[_Span]:
    quoted = [match.span("path") for match in _QUOTED_PATH.finditer(text) if " " in match["path"]]
    return [*quoted, *(match.span() for match in _ESCAPED_PATH.finditer(text))] if "\\ " in text else quoted


def _url_span(match: re.Match[str]) -> _Span:
    """Return the span of an address without punctuation or brackets of the sentence around it."""
    address = match[0].rstrip(".,;:!?*_")
    unopened = address.count(")") - address.count("(")
    closed = len(address) - len(address.rstrip(")]}"))
    address = address[: len(address) - min(max(unopened, 0), closed)].rstrip(".,;:!?*_")
    return match.start(), match.start() + len(address)


def _path_spans(text: str, candidates: Iterable[re.Match[str]]) -> Iterator[_Span]:
    """Yield the spans of those runs that are paths or file names."""
    for match in candidates:
        start = match.start()
        run = match[0].rstrip(_TRAILING_PUNCTUATION)
        name = run.lstrip("+%-")
        start += len(run) - len(name)
        end = start + len(name)
        in_tag = text[start - 1 : start] == "<" or text[end : end + 1] == ">"
        called = name.startswith(".") and text[start - 1 : start] in _BEFORE_METHOD_CALL
        if (_is_file(name) and not called) or (not in_tag and _is_path(name)):
            yield start, end


def _is_path(name: str) -> bool:
    return "/" in name and _LETTER.search(name) is not None and name.casefold() not in SLASHED_PROSE


def _is_file(name: str) -> bool:
    base = name.partition(":")[0].partition("#")[0]
    stem, dot, extension = base.rpartition(".")
    if dot and stem.strip(".@") and not stem.startswith("@") and "/" not in extension:
        return extension.casefold() in FILE_EXTENSIONS
    return _DOTFILE.fullmatch(base) is not None
