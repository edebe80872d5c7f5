"""What exact tokens look like. Quantifiers are possessive or bounded, so that no text makes a search go back."""

import re
from functools import cache

from lamella.core.text.scripts import WORD_ENDS, WORD_STARTS

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
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d++)?)?(?: ?[AaPp](?:[Mm]|\.[Mm]\.))?(?:Z|[+-]\d{2}:?\d{2})?"

# Without the quotes, brackets and full stops of East Asian scripts, which end an address as a space does.
_ADDRESS = r"[^\s<>\"'`\u3001\u3002\u300c-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"

CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^\n\r]{1,500}?)(?<!`)\1(?!`)")
LINK = re.compile(r"\[\[([^\[\]\n|]{1,200})(?:\|[^\[\]\n]{0,200})?\]\]")
ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]{{1,20}}://|www\.|localhost:\d){_ADDRESS}++", re.IGNORECASE
)

# A run of what a path may hold, with the line that may follow it: `src/app.py:12`, `notes/plan.md#L10-L20`.
RUN = re.compile(r"(?<![\w.@+~%/-])[\w@+~%-]*+[./][\w.@+~%/-]*+(?::\d++(?::\d++)?+)?+(?:#L?\d++(?:-L?\d++)?+)?+")

# Dates and times; the longer stand before the shorter.
MOMENTS = (
    rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_TIME})?",
    r"\d{2,4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|\d{1,2}月\d{1,2}日",
    rf"\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})(?:,? \d{{4}})?",
    rf"(?:{_MONTHS}) (?:\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{4}})",
    rf"(?<!\d[.,:]){_TIME}",
    r"\d{1,2} ?[AaPp][Mm]",
)
_MEASURED = rf"(?<!\d[.,])[-+\u2212]?{_NUMBER} ?(?:%|\u2030|°[CF]?|(?:{_UNITS}))"
# Whatever begins like a word. The first that fits is taken, so that the longer stand before the shorter.
_VALUES = (
    # Flags, files without an extension, paths of Windows, e-mail addresses
    r"--[A-Za-z][\w-]*+",
    "(?:Dockerfile|Gemfile|Jenkinsfile|Justfile|Makefile|Procfile|Rakefile|Vagrantfile)",
    r"(?:[A-Za-z]:|\\)\\(?:[\w@+~%$-]|\.(?=\w)|\\(?=\w))++",
    r"(?<![.+%@-])[\w.+%-]{1,64}@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++",
    *MOMENTS,
    # Money, and numbers with a unit
    r"(?:(?:US|AU?|CA?)?\$|[€£¥₹₩]|Rp\.?|USD|EUR|IDR|GBP) ?" + _NUMBER + rf"(?: ?(?:{_SCALES}){WORD_ENDS})?",
    _MEASURED,
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
_MORE_MONEY = "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|HKD|INR|JPY|KRW|MXN|MYR|NOK|NZD|PHP|PLN|SEK|SGD|THB|TRY|TWD|VND|ZAR"
_GERMAN_MONTHS = (
    "Jan(?:uar)?|Feb(?:ruar)?|März|Mrz|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?|Sept?(?:ember)?|Okt(?:ober)?"
    "|Nov(?:ember)?|Dez(?:ember)?"
)
# What stands before a hyphen and a number in prose, where the number is what is exact.
_PROSE_BEFORE = (
    "about|all|circa|double|each|early|every|half|late|mid|multi|near|non|over|plus|post|pra|pre|single|sub|super|top"
    "|under"
)
# What joined them later: identifiers with a number, quarters, groups of digits apart, signed and two-digit numbers.
_MORE_VALUES = (
    # Addresses of network cards and of IPv6; telephone numbers with their country
    r"(?=[0-9a-fA-F]{1,4}[:-])(?:[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}|(?=[0-9a-fA-F:]{0,40}?::|(?:[0-9a-fA-F]{1,4}:){7})"
    r"(?:[0-9a-fA-F]{1,4}:){1,7}(?::|[0-9a-fA-F]{1,4})(?::?[0-9a-fA-F]{1,4}){0,6}(?:/\d{1,3})?)",
    r"\+\d{1,3}[ -](?:\(\d{1,4}\) ?)?\d{2,9}(?:[ /-]\d{2,9}){1,5}",
    # Networks, dates as Germans write them, sizes, groups of digits with decimals behind the other mark, currencies
    r"(?=[-+\u2212\d])(?:\d{1,3}(?:\.\d{1,3}){3}/\d{1,2}"
    rf"|\d{{1,2}}\. ?(?:{_GERMAN_MONTHS})(?: \d{{4}})?"
    r"|\d{1,6}(?:[.,]\d{1,4})?(?: ?[x\u00d7] ?\d{1,6}(?:[.,]\d{1,4})?){1,3}(?: ?(?:[kcm]?m[\u00b2\u00b3]?|px|in))?"
    r"|(?<!\d[.,])[-+\u2212]?\d{1,3}(?:(?:\.\d{3})++,\d++|(?:,\d{3})++\.\d++)(?![.,]?\d)"
    rf"|(?<!\d[.,])[-+\u2212]?{_NUMBER} ?(?:{_MORE_MONEY}))",
    # Paths of Windows whose folders have spaces; accounts of banks in groups, currencies, names of constants
    r"(?:[A-Za-z]:|\\)\\(?:[\w@+~%$.()-]{1,60}(?: [\w@+~%$.()-]{1,60}){0,5}\\){1,20}(?:[\w@+~%$-]|\.(?=\w))++",
    r"(?=[A-Z][A-Z0-9_])(?:[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?"
    rf"|(?:{_MORE_MONEY}) ?{_NUMBER}|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++)",
    # Codes of capitals and digits (HAT266, M05KNL, 12A); telephone and other numbers in parts, powers of ten
    r"(?=[A-Z]*+\d)(?=\d*+[A-Z])(?<![.,:+-])[A-Z0-9]{3,34}+(?!-\w)",
    r"(?=[-+\u2212\d])(?:(?<!-)(?!\d{4}-\d{2}-\d{2}(?!\d))\+?\d{1,5}(?:-\d{1,9}){2,6}+(?!-)"
    r"|(?<!\d[.,])[-+\u2212]?(?:\d++(?:[.,]\d++)?+[eE][-+]?\d{1,3}(?![-\d])|\d{1,3}(?:_\d{3})++))",
    # Ids of any number of parts (K-37, INV-2026-0042, web-7d9f-x2lqz), also as names in a domain (db-02.internal)
    rf"(?!(?i:{_PROSE_BEFORE})-)(?:[A-Z]|[a-z][A-Za-z0-9])[A-Za-z0-9]{{0,30}}-(?:[A-Za-z0-9]{{1,30}}-){{0,8}}"
    r"(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{1,40}(?:\.[a-z][a-z0-9-]{0,30}){0,5}+",
    r"(?=[A-Za-z_]*+\d)[A-Za-z][A-Za-z0-9]*+(?:_[A-Za-z0-9]++)++",
    r"(?:Q[1-4]|H[12])[ /-]?\d{4}",
    r"(?<!\d[ .,'\u2019])[-+\u2212]?\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})++(?:[.,]\d{1,6})?+(?![.,]?\d)",
    # Where nothing longer begins: ordinals, and names with a digit behind a letter (a7f93k2, utf8, p95)
    r"\d{2,3}(?:st|nd|rd|th)|(?<![.,:+-])(?=[0-9]*+[A-Za-z]++\d)[A-Za-z0-9]{2,40}+(?!-\w)(?![.,]\d)",
    r"(?<![\d/][.,/])(?<![/#&])[-+\u2212]\d++(?![/\d])",
    r"(?<!\d[.,])(?<![/#&+\u2212])\d{2,}+(?![/\d])",
)


@cache
def value_pattern(*, former: bool = False) -> re.Pattern[str]:
    """Any of them, or those of before. It takes 25 ms to compile (2026-11-17), and most commands look for no value."""
    # Groups of digits that stand apart begin like shorter numbers, so those that joined later are tried first.
    # The K of "5 K-37" is no unit.
    known = _VALUES if former else (f"{one}(?!(?<= [A-Z])-\\d)" if one == _MEASURED else one for one in _VALUES)
    values = known if former else (*_MORE_VALUES[:-3], *known, *_MORE_VALUES[-3:])
    # A word of small letters before a space begins none: most of a text need not be held against every one of them.
    plain = r"(?![a-z]++(?:\s|$))"
    return re.compile(f"{WORD_STARTS}{plain}(?:{'|'.join(f'(?:{value}){WORD_ENDS}' for value in values)})")


@cache
def moment_pattern() -> re.Pattern[str]:
    """A date or a time, also a date of which only the year tells that it is one."""
    year = r"(?:19|20)\d{2}"
    numbers = rf"\d{{1,2}}[/.]\d{{1,2}}[/.]{year}|{year}[/.]\d{{1,2}}[/.]\d{{1,2}}"
    return re.compile(f"{WORD_STARTS}(?:{'|'.join(f'(?:{one}){WORD_ENDS}' for one in (*MOMENTS, numbers))})")


EXTENSIONS = frozenset(
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

# Slashes of prose. Any other word with a slash may be a folder, and a folder that is lost costs more than a word kept.
SLASHED_PROSE = frozenset(
    {
        "and/or", "client/server", "dan/atau", "either/or", "he/she", "him/her", "his/her", "i/o", "input/output",
        "km/h", "m/s", "n/a", "on/off", "pro/con", "pros/cons", "read/write", "s/he", "she/he", "tcp/ip", "true/false",
        "w/o", "ya/tidak", "yes/no",
    }
)  # fmt: skip
