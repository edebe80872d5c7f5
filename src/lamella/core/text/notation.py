"""Compare numbers, amounts and dates in any notation, in English and Indonesian.

For German only the names of the months are known.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from unicodedata import decimal, normalize

# Characters that are invisible in a text and that people do not type into a search: soft hyphens, zero-width spaces and
# joiners, direction marks, variation selectors, the Arabic tatweel.
_INVISIBLE_CHARACTERS = re.compile(
    "[\u00ad\u034f\u061c\u0640\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]+"
)
# Hebrew points and Arabic vowel signs. Some texts have them, and few people type them.
_VOWEL_POINTS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u0652\u0656-\u065f\u0670]+")
_DASH_TABLE = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_NON_ASCII_DIGIT = re.compile(r"[^\D0-9]")

_UNIT_SYNONYMS = (
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
_CANONICAL_UNIT = {unit: same.split()[0] for same in _UNIT_SYNONYMS for unit in same.split()}
_SCALE_FACTORS = {
    **dict.fromkeys(("k", "K", "thousand", "ribu"), 1_000),
    **dict.fromkeys(("M", "million", "juta"), 1_000_000),
    **dict.fromkeys(("B", "billion", "miliar"), 1_000_000_000),
    **dict.fromkeys(("trillion", "triliun"), 1_000_000_000_000),
}
_AMOUNT = re.compile(
    r"(?P<money>[A-Z]{0,3}[$€£¥₹₩]|Rp\.?|USD|EUR|IDR|GBP)? ?(?P<sign>[-+]?)(?P<number>\d[\d.,'\u2019_ \u00a0\u202f]*?)"
    r" ?(?P<unit>[^\W\d_]+|[%\u2030]|°[CF]?)?(?: (?P<more>[^\W\d_]+))?"
)
_GROUPED_NUMBER = re.compile(
    r"\d{1,3}(?P<mark>[.,'\u2019_ \u00a0\u202f])\d{3}(?:(?P=mark)\d{3})*(?:[.,](?P<rest>\d+))?"
)
# Longer strings of digits are treated as text, not as a number.
_MAX_NUMBER_CHARS = 24
_SCIENTIFIC_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?[eE][-+]?\d{1,3}")

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
_DAY_PATTERN = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_ORDINAL = re.compile(r"(\d{1,3})(?:st|nd|rd|th)", re.IGNORECASE)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:[T ](?P<time>.+))?",
        r"(?P<day>\d{1,2})[/.](?P<month>\d{1,2})[/.](?P<year>\d{4})",
        r"(?P<month>\d{1,2})[/.](?P<day>\d{1,2})[/.](?P<year>\d{4})",
        r"(?P<year>\d{4})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?)?",
        rf"{_DAY_PATTERN} (?P<month>[a-zä]{{3,9}})(?:,? (?P<year>\d{{4}}))?",
        rf"(?P<month>[a-zä]{{3,9}}) {_DAY_PATTERN}(?:,? (?P<year>\d{{4}}))?",
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
_NUMBER_BY_WORD = {
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
_MULTIPLIER_BY_WORD = {
    "belas": 1,
    "puluh": 10,
    "hundred": 100,
    "ratus": 100,
    **{k: v for k, v in _SCALE_FACTORS.items() if len(k) > 1},
}
# Number words up to twelve mostly count things in running text: three proposals, two open questions.
_MAX_IGNORED_NUMBER = 12


def normalize_characters(text: str) -> str:
    """Normalise a text to compatibility characters (NFKC), without invisible characters and vowel points.

    Upper and lower case stay as they are.
    """
    return text if text.isascii() else _VOWEL_POINTS.sub("", normalize("NFKC", _INVISIBLE_CHARACTERS.sub("", text)))


def normalize_digits_and_dashes(text: str) -> str:
    """Replace every dash with a hyphen and every digit of another script with an ASCII digit."""
    return _NON_ASCII_DIGIT.sub(lambda found: str(decimal(found[0])), text.translate(_DASH_TABLE))


def canonical_values(token: str) -> tuple[str, ...]:
    """Return what an exact token means, in one canonical notation.

    The result has several values if the token is ambiguous, such as 03/04/2026, and none if it is neither a date, a
    time nor an amount.
    """
    flat = normalize_digits_and_dashes(" ".join(token.split()))
    if counted := _ORDINAL.fullmatch(flat):
        # "The 15th" is a day of a date, or the number of something.
        return f"{counted[1]}th", counted[1]
    dates = tuple(dict.fromkeys(key for pattern in _DATES if (key := _parse_date(pattern.fullmatch(flat)))))
    amount = _parse_amount(flat)
    return (*dates, *((amount,) if amount else ()))


def collect_canonical_values(tokens: Iterable[str]) -> frozenset[str]:
    """Return the canonical values of exact tokens and their parts.

    The parts of a date include its month, those of an amount its number.
    """
    return frozenset(part for token in tokens for key in canonical_values(token) for part in _iter_value_parts(key))


def iter_large_spelled_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers that a text spells out in words, from thirteen on, each with its value in digits."""
    for found in _number_words_pattern().finditer(text):
        value = _parse_number_words(found[0].casefold().replace("-", " ").split())
        if value > _MAX_IGNORED_NUMBER:
            yield found[0], str(value)


def _iter_value_parts(key: str) -> Iterator[str]:
    yield key
    day, is_moment, time = key.partition("T")
    if is_moment:
        yield f"T{time}"
        yield from _iter_value_parts(day) if day else ()
    elif re.fullmatch(r"\d{4}-\d{2}(?:-\d{2})?", key):
        yield from (key[:4], key[:7], key[4:])
        yield from _iter_ordinal_day(key[7:])
    elif re.fullmatch(r"-\d{2}-\d{2}", key):
        yield from _iter_ordinal_day(key[3:])
    elif " " in key:
        yield key.partition(" ")[0]


def _iter_ordinal_day(text: str) -> Iterator[str]:
    if text:
        yield f"{int(text[1:])}th"


def _parse_date(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    parts = match.groupdict()
    time = _parse_time(parts["time"]) if parts.get("time") else ""
    if "month" not in parts:
        return time
    named = parts["month"] or ""
    month = int(named) if named.isdigit() else _MONTHS.get(named.casefold(), 0)
    day = int(parts.get("day") or 0)
    if not (named == "" or 1 <= month <= len(set(_MONTHS.values()))) or day > 31:
        return ""
    fields = [parts["year"] or "", *(f"{one:02}" for one in (month, day) if one)]
    return "-".join(fields) + time


def _parse_time(text: str) -> str:
    found = _TIME.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return ""
    hour = int(found[1]) % 12 + 12 * (found[4] in "pP") if found[4] else int(found[1])
    return f"T{hour:02}:{found[2] or '00'}" + (f":{found[3]}" if found[3] else "")


def _parse_amount(text: str) -> str:
    if _SCIENTIFIC_NUMBER.fullmatch(text):
        return _format_number(Decimal(text.replace(",", ".")))
    found = _AMOUNT.fullmatch(text) if len(text) <= _MAX_NUMBER_CHARS else None
    number = _parse_number(found["number"]) if found else None
    if found is None or number is None:
        return ""
    words = [word for word in (found["unit"], found["more"]) if word]
    scale = _SCALE_FACTORS.get(words[0]) if words else None
    if scale is not None:
        number, words = number * scale, words[1:]
    money = [found["money"].rstrip(".")] if found["money"] else []
    units = [
        _CANONICAL_UNIT.get(word) or _CANONICAL_UNIT.get(word.casefold(), word.casefold()) for word in (*words, *money)
    ]
    return " ".join([("-" if found["sign"] == "-" else "") + _format_number(number), *units])


def _parse_number(text: str) -> Decimal | None:
    grouped = _GROUPED_NUMBER.fullmatch(text)
    if grouped:
        whole = text[: len(text) - len(grouped["rest"]) - 1] if grouped["rest"] else text
        return Decimal(re.sub(r"\D", "", whole) + (f".{grouped['rest']}" if grouped["rest"] else ""))
    return Decimal(text.replace(",", ".")) if re.fullmatch(r"\d+(?:[.,]\d+)?", text) else None


def _format_number(number: Decimal) -> str:
    return f"{number.normalize():f}"


@cache
def _number_words_pattern() -> re.Pattern[str]:
    first = "|".join(sorted(_NUMBER_BY_WORD, key=len, reverse=True))
    more = "|".join(sorted((*_NUMBER_BY_WORD, *_MULTIPLIER_BY_WORD, "and"), key=len, reverse=True))
    return re.compile(rf"\b(?:{first})(?:[ -](?:{more}))*\b", re.IGNORECASE)


def _parse_number_words(words: Iterable[str]) -> int:
    """Return the number that a sequence of number words means."""
    total = part = 0
    for word in words:
        if word == "belas":
            part += 10
        elif _MULTIPLIER_BY_WORD.get(word, 0) >= 1_000:
            total, part = total + max(part, 1) * _MULTIPLIER_BY_WORD[word], 0
        elif word in _MULTIPLIER_BY_WORD:
            part = (
                part - part % 10 + (part % 10 or 1) * _MULTIPLIER_BY_WORD[word]
                if part >= 100
                else max(part, 1) * _MULTIPLIER_BY_WORD[word]
            )
        else:
            part += _NUMBER_BY_WORD.get(word, 0)
    return total + part
