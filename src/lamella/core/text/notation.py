"""Notation: what a text says, whatever its characters: numbers, amounts and dates, in English and in Indonesian.

Of German it knows the months.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from unicodedata import decimal, normalize

# Soft hyphens, zero-width spaces and joiners, marks of direction, variation selectors, the Arabic stretcher: what
# nobody sees in a text, and nobody types who looks for it.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u0640\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]+"
)
# The points of Hebrew and the vowel signs of Arabic, which stand in some texts and are typed by few.
_POINTS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u0652\u0656-\u065f\u0670]+")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_OTHER_DIGIT = re.compile(r"[^\D0-9]")

_SAME_UNITS = (
    "second s sec secs seconds detik",
    "minute min mins minutes menit",
    "hour h hr hrs hours jam",
    "day days hari",
    "week weeks minggu",
    "month months bulan",
    "year years tahun",
    "character char chars characters karakter",
    "word words kata",
    "line lines baris",
    "page pages halaman",
    "time times x kali",
    "bit bits",
    "byte bytes",
    "token tokens",
    "euro euros EUR €",
    "dollar dollars USD US$ $",
    "rupiah IDR Rp Rp.",
    "pound pounds GBP £",
)
_UNITS = {unit: same.split()[0] for same in _SAME_UNITS for unit in same.split()}
_SCALES = {
    **dict.fromkeys(("k", "K", "thousand", "ribu"), 1_000),
    **dict.fromkeys(("M", "million", "juta"), 1_000_000),
    **dict.fromkeys(("B", "billion", "miliar"), 1_000_000_000),
    **dict.fromkeys(("trillion", "triliun"), 1_000_000_000_000),
}
_AMOUNT = re.compile(
    r"(?P<money>[A-Z]{0,3}[$€£¥₹₩]|Rp\.?|USD|EUR|IDR|GBP)? ?(?P<sign>[-+]?)(?P<number>\d[\d.,'\u2019_ \u00a0\u202f]*?)"
    r" ?(?P<unit>[^\W\d_]+|[%\u2030]|°[CF]?)?(?: (?P<more>[^\W\d_]+))?"
)
_GROUPED = re.compile(r"\d{1,3}(?P<mark>[.,'\u2019_ \u00a0\u202f])\d{3}(?:(?P=mark)\d{3})*(?:[.,](?P<rest>\d+))?")
# More digits than this are no number to reckon with.
_LONGEST = 24
_POWER = re.compile(r"[-+]?\d+(?:[.,]\d+)?[eE][-+]?\d{1,3}")

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *(
                "jan january januari januar",
                "feb february februari februar",
                "mar march maret märz mrz",
                "apr april",
                "may mei mai",
                "jun june juni",
            ),
            *("jul july juli", "aug august agu agustus", "sep sept september", "oct october okt oktober"),
            *("nov november", "dec december des desember dez dezember"),
        ),
        start=1,
    )
    for name in names.split()
}
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_ORDINAL = re.compile(r"(\d{1,3})(?:st|nd|rd|th)", re.IGNORECASE)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:[T ](?P<time>.+))?",
        r"(?P<day>\d{1,2})[/.](?P<month>\d{1,2})[/.](?P<year>\d{4})",
        r"(?P<month>\d{1,2})[/.](?P<day>\d{1,2})[/.](?P<year>\d{4})",
        r"(?P<year>\d{4})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?)?",
        rf"{_DAY} (?P<month>[a-zä]{{3,9}})(?:,? (?P<year>\d{{4}}))?",
        rf"(?P<month>[a-zä]{{3,9}}) {_DAY}(?:,? (?P<year>\d{{4}}))?",
        r"(?P<month>[a-zä]{3,9}) (?P<year>\d{4})",
        r"(?P<time>\d{1,2}(?::\d{2}){0,2}(?:[.,]\d+)?(?: ?[ap]\.?m\.?)?(?:Z|[+-]\d{2}:?\d{2})?)",
    )
)
_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}).*?)?(?: ?([ap])\.?m\.?)?(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE)

_ONES = (
    "one satu se|two dua|three tiga|four empat|five lima|six enam|seven tujuh|eight delapan|nine sembilan|ten sepuluh"
)
_TEENS = "eleven sebelas|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_COUNTED = {
    name: number
    for number, names in (
        *enumerate(f"{_ONES}|{_TEENS}".split("|"), start=1),
        *((10 * tens, names) for tens, names in enumerate(_TENS.split("|"), start=2)),
        (100, "seratus"),
        (1_000, "seribu"),
    )
    for name in names.split()
    if name != "se"
}
_TIMES = {"belas": 1, "puluh": 10, "hundred": 100, "ratus": 100, **{k: v for k, v in _SCALES.items() if len(k) > 1}}
# Up to here people count what they tell of: three proposals, two open questions.
_SMALL = 12


def settle(text: str) -> str:
    """A text in compatible characters, without those that nobody sees or types; its case is as it was."""
    return text if text.isascii() else _POINTS.sub("", normalize("NFKC", _UNSEEN.sub("", text)))


def level(text: str) -> str:
    """A text in which every dash is a hyphen and every digit one of ten."""
    return _OTHER_DIGIT.sub(lambda found: str(decimal(found[0])), text.translate(_DASHES))


def read_value(token: str) -> tuple[str, ...]:
    """What an exact word says, in one notation; more than one where it can be read in several ways, or none."""
    flat = level(" ".join(token.split()))
    if counted := _ORDINAL.fullmatch(flat):
        # The 15th is the day of a date, or one of a number of things.
        return f"{counted[1]}th", counted[1]
    dates = tuple(dict.fromkeys(key for pattern in _DATES if (key := _read_date(pattern.fullmatch(flat)))))
    amount = _read_amount(flat)
    return (*dates, *((amount,) if amount else ()))


def list_values(tokens: Iterable[str]) -> frozenset[str]:
    """What exact words say, whole and in parts: of a date also its month, of an amount also its number."""
    return frozenset(part for token in tokens for key in read_value(token) for part in _list_parts(key))


def find_counted(text: str) -> Iterator[tuple[str, str]]:
    """Numbers that a text writes in words, from thirteen on, each with what it says."""
    for found in _counted_pattern().finditer(text):
        value = _count(found[0].casefold().replace("-", " ").split())
        if value > _SMALL:
            yield found[0], str(value)


def _list_parts(key: str) -> Iterator[str]:
    yield key
    day, is_moment, time = key.partition("T")
    if is_moment:
        yield f"T{time}"
        yield from _list_parts(day) if day else ()
    elif re.fullmatch(r"\d{4}-\d{2}(?:-\d{2})?", key):
        yield from (key[:4], key[:7], key[4:])
        yield from _name_day(key[7:])
    elif re.fullmatch(r"-\d{2}-\d{2}", key):
        yield from _name_day(key[3:])
    elif " " in key:
        yield key.partition(" ")[0]


def _name_day(said: str) -> Iterator[str]:
    if said:
        yield f"{int(said[1:])}th"


def _read_date(found: re.Match[str] | None) -> str:
    if found is None:
        return ""
    parts = found.groupdict()
    time = _read_time(parts["time"]) if parts.get("time") else ""
    if "month" not in parts:
        return time
    named = parts["month"] or ""
    month = int(named) if named.isdigit() else _MONTHS.get(named.casefold(), 0)
    day = int(parts.get("day") or 0)
    if not (named == "" or 1 <= month <= len(set(_MONTHS.values()))) or day > 31:
        return ""
    said = [parts["year"] or "", *(f"{one:02}" for one in (month, day) if one)]
    return "-".join(said) + time


def _read_time(said: str) -> str:
    found = _TIME.fullmatch(said)
    if found is None or not (found[2] or found[4]):
        return ""
    hour = int(found[1]) % 12 + 12 * (found[4] in "pP") if found[4] else int(found[1])
    return f"T{hour:02}:{found[2] or '00'}" + (f":{found[3]}" if found[3] else "")


def _read_amount(flat: str) -> str:
    if _POWER.fullmatch(flat):
        return _write(Decimal(flat.replace(",", ".")))
    found = _AMOUNT.fullmatch(flat) if len(flat) <= _LONGEST else None
    number = _read_number(found["number"]) if found else None
    if found is None or number is None:
        return ""
    words = [word for word in (found["unit"], found["more"]) if word]
    scale = _SCALES.get(words[0]) if words else None
    if scale is not None:
        number, words = number * scale, words[1:]
    money = [found["money"].rstrip(".")] if found["money"] else []
    units = [_UNITS.get(word) or _UNITS.get(word.casefold(), word.casefold()) for word in (*words, *money)]
    return " ".join([("-" if found["sign"] == "-" else "") + _write(number), *units])


def _read_number(said: str) -> Decimal | None:
    grouped = _GROUPED.fullmatch(said)
    if grouped:
        whole = said[: len(said) - len(grouped["rest"]) - 1] if grouped["rest"] else said
        return Decimal(re.sub(r"\D", "", whole) + (f".{grouped['rest']}" if grouped["rest"] else ""))
    return Decimal(said.replace(",", ".")) if re.fullmatch(r"\d+(?:[.,]\d+)?", said) else None


def _write(number: Decimal) -> str:
    return f"{number.normalize():f}"


@cache
def _counted_pattern() -> re.Pattern[str]:
    first = "|".join(sorted(_COUNTED, key=len, reverse=True))
    more = "|".join(sorted((*_COUNTED, *_TIMES, "and"), key=len, reverse=True))
    return re.compile(rf"\b(?:{first})(?:[ -](?:{more}))*\b", re.IGNORECASE)


def _count(words: Iterable[str]) -> int:
    """What number words say together."""
    total = part = 0
    for word in words:
        if word == "belas":
            part += 10
        elif _TIMES.get(word, 0) >= 1_000:
            total, part = total + max(part, 1) * _TIMES[word], 0
        elif word in _TIMES:
            part = part - part % 10 + (part % 10 or 1) * _TIMES[word] if part >= 100 else max(part, 1) * _TIMES[word]
        else:
            part += _COUNTED.get(word, 0)
    return total + part
