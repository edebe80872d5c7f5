"""TextFacts in a text that can be compared in any notation: numbers with units, dates, times and identifiers.

``read_facts`` collects those of a text. ``find_unknown_fact`` returns a fact of a statement that the facts of its
sources do not have. "1,250", "1.250" and "1250" are the same number, as are "12" and "twelve" in English, Indonesian,
German and Japanese; so are "18 April", "18. April", "4月18日" and "2026-04-18".
"""

import re
from collections.abc import Iterable, Iterator, Set
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import NamedTuple

from lamella.core.text.content import UNSPACED_SCRIPTS
from lamella.core.text.notation import normalize_characters, normalize_digits_and_dashes

_MONTH_NAMES = (
    "jan january januari januar jänner",
    "feb february februari februar",
    "mar march maret märz mrz",
    "apr april",
    "may mei mai",
    "jun june juni",
    "jul july juli",
    "aug august agu agustus",
    "sep sept september",
    "oct october okt oktober",
    "nov november",
    "dec december des desember dez dezember",
)
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names.split()}
_WEEKDAY_NAMES = (
    "monday mon montag senin 月曜",
    "tuesday tue dienstag selasa 火曜",
    "wednesday wed mittwoch rabu 水曜",
    "thursday thu donnerstag kamis 木曜",
    "friday fri freitag jumat jum'at 金曜",
    "saturday sat samstag sonnabend sabtu 土曜",
    "sunday sun sonntag minggu 日曜",
)
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
# In Indonesian the same word means a week, so it proves no weekday.
_AMBIGUOUS_WEEKDAYS = frozenset({"minggu", "mon", "sun", "sat", "fri", "wed", "tue", "thu"})

# Words for one unit; a number with one of them is not a number with another.
_UNITS = {
    "EUR": "€ eur euro euros",
    "cent": "cent cents ct",
    "penny": "pence penny",
    "USD": "$ us$ usd dollar dollars",
    "GBP": "£ gbp pound pounds pfund",
    "IDR": "rp rp. idr rupiah",
    "JPY": "¥ jpy yen 円",
    "CHF": "chf franken francs franc",
    "second": "s sec secs second seconds sekunde sekunden detik 秒",
    "ms": "ms milliseconds millisekunden milidetik",
    "minute": "min mins minute minutes minuten menit 分",
    "hour": "h hr hrs hour hours stunde stunden std 時間",
    "day": "day days tag tage tagen hari 日間",
    "week": "week weeks woche wochen minggu 週間",
    "month": "month months monat monate monaten bulan ヶ月 か月 カ月",
    "year": "year years jahr jahre jahren tahun 年間",
    "mg": "mg",
    "g": "g gram grams gramm グラム",
    "kg": "kg kilo kilos kilogram kilograms kilogramm キロ",
    "t": "tonne tonnes tonnen ton tons",
    "mm": "mm",
    "cm": "cm",
    "m": "m meter meters metre metres metern",
    "km": "km kilometer kilometers kilometre kilometres",
    "mile": "mi mile miles",
    "m2": "m² m2 sqm qm",
    "l": "l liter liters litre litres",
    "ml": "ml",
    "kB": "kb",
    "MB": "mb",
    "GB": "gb",
    "TB": "tb",
    "W": "w watt watts",
    "kW": "kw",
    "MW": "mw",
    "kWh": "kwh",
    "MWh": "mwh",
    "GWh": "gwh",
    "percent": "% percent prozent persen パーセント",
    "°C": "°c celsius",
    "°F": "°f fahrenheit",
}
# Units of one quantity, by how many of the first they are: 36 months are 3 years.
_QUANTITIES = (
    {"ms": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000},
    {"day": 1, "week": 7},
    {"month": 1, "year": 12},
    {"mg": 1, "g": 1_000, "kg": 1_000_000, "t": 1_000_000_000},
    {"mm": 1, "cm": 10, "m": 1_000, "km": 1_000_000},
    {"ml": 1, "l": 1_000},
    {"kB": 1, "MB": 1_000, "GB": 1_000_000, "TB": 1_000_000_000},
    {"W": 1, "kW": 1_000, "MW": 1_000_000},
    {"kWh": 1, "MWh": 1_000, "GWh": 1_000_000},
    {"penny": 1, "GBP": 100},
    {"cent": 1, "EUR": 100},
)
_UNIT_BY_WORD = {word: unit for unit, words in _UNITS.items() for word in words.split()}
UNIT_WORDS = frozenset(_UNIT_BY_WORD)
_SCALES = {
    **dict.fromkeys(("k", "thousand", "tausend", "tsd", "ribu", "rb", "千"), 1_000),
    "万": 10_000,
    **dict.fromkeys(("million", "millions", "mio", "millionen", "juta", "jt"), 1_000_000),
    **dict.fromkeys(("billion", "milliarden", "mrd", "miliar"), 1_000_000_000),
}
_SMALL_NUMBERS = (
    ("two zwei dua", 2),
    ("three drei tiga", 3),
    ("four vier empat", 4),
    ("five fünf lima", 5),
    ("six sechs enam", 6),
    ("seven sieben tujuh", 7),
    ("eight acht delapan", 8),
    ("nine neun sembilan", 9),
    ("ten zehn sepuluh", 10),
    ("eleven elf sebelas", 11),
    ("twelve zwölf dozen dutzend selusin", 12),
    ("thirteen dreizehn", 13),
    ("fourteen vierzehn", 14),
    ("fifteen fünfzehn", 15),
    ("sixteen sechzehn", 16),
    ("seventeen siebzehn", 17),
    ("eighteen achtzehn", 18),
    ("nineteen neunzehn", 19),
    ("twenty zwanzig", 20),
    ("thirty dreißig dreissig", 30),
    ("forty vierzig", 40),
    ("fifty fünfzig", 50),
    ("sixty sechzig", 60),
    ("seventy siebzig", 70),
    ("eighty achtzig", 80),
    ("ninety neunzig", 90),
)
_WORD_NUMBERS = {word: number for words, number in _SMALL_NUMBERS for word in words.split()}
# Words that say a small number in another way.
_IMPLIED_NUMBERS: dict[Decimal, re.Pattern[str]] = {
    Decimal(1): re.compile(
        r"\b(?:one|once|single|ein|eine|einen|einem|einer|eines|einmal|satu|sekali|seorang|sebuah)\b|一", re.IGNORECASE
    ),
    Decimal(2): re.compile(
        r"\b(?:twice|double[ds]?|both|pair|couple|zweimal|doppelt\w*|beide\w*|paar|dua kali|kedua\w*|ganda|sepasang)\b|両方|二倍|倍",
        re.IGNORECASE,
    ),
    Decimal(3): re.compile(r"\b(?:thrice|triple[ds]?|dreimal|dreifach\w*|ketiga\w*)\b|三倍", re.IGNORECASE),
    Decimal("0.5"): re.compile(r"\b(?:half|halb\w*|hälfte|setengah|separuh)\b|半", re.IGNORECASE),
}
# "One" is mostly an article or a pronoun. It counts only inside a larger number.
_ONE = frozenset({"one", "ein", "eine", "satu", "und", "and", "se"})
_WORD_FACTORS = {
    **dict.fromkeys(("hundred", "hundert", "ratus"), 100),
    **dict.fromkeys(("thousand", "tausend", "ribu"), 1_000),
    **dict.fromkeys(("million", "millionen", "juta"), 1_000_000),
}
_KANJI_DIGITS = {digit: number for number, digit in enumerate("〇一二三四五六七八九")}
_KANJI_FACTORS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
_KANJI_NUMBER = re.compile(
    "([〇一二三四五六七八九十百千万]+)(?=つ|人|個|円|回|日|月|年|時|分|階|枚|本|冊|件|週|名|点|台|歳)"
)

# 十一月, 五月三日, 八時: written with digits before dates and times are read.
# 四・二キロ
_KANJI_DECIMAL = re.compile(
    "([一二三四五六七八九十]{1,3}|\u3007)・([\u3007一二三四五六七八九]{1,3})"
    "(?=[^・\\w]|キロ|グラム|度|%|\uff05|メートル|リットル|秒|分|時間|倍|点)"
)
_KANJI_DAY = re.compile("[一二三四五六七八九十]{1,3}(?=月|日|時|分)")

_ORDINALS = {
    Decimal(number): re.compile(rf"\b(?:{'|'.join(words.split())})\b", re.IGNORECASE)
    for number, words in enumerate(
        (
            "first erste[nmrs]? pertama",
            "second zweite[nmrs]? kedua",
            "third dritte[nmrs]? ketiga",
            "fourth vierte[nmrs]? keempat",
            "fifth fünfte[nmrs]? kelima",
            "sixth sechste[nmrs]? keenam",
            "seventh siebte[nmrs]? ketujuh",
            "eighth achte[nmrs]? kedelapan",
            "ninth neunte[nmrs]? kesembilan",
            "tenth zehnte[nmrs]? kesepuluh",
        ),
        start=1,
    )
}

_LATIN_WORD = re.compile(rf"[^\W\d_{UNSPACED_SCRIPTS}]+(?:['\u2019][^\W\d_]+)?")
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.|javascript:|data:)[^\s<>\"'`)\]、。」]+", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+%-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
# A run with a separator of paths or a letter beside a digit. Numbers with a unit, dates and times are taken out.
_IDENTIFIER = re.compile(
    rf"(?<![^\W{UNSPACED_SCRIPTS}])(?:[@#~./\\-]|--)?(?=[^\s{UNSPACED_SCRIPTS}]*[A-Za-z])"
    r"(?:[A-Za-z0-9_]+(?:[-./\\_:@+~%][A-Za-z0-9_]+)+/?|[A-Za-z_]+\d[A-Za-z0-9_]*|\d+[A-Za-z_]+\d[A-Za-z0-9_]*|[@#][A-Za-z]\w*"
    r"|[A-Za-z0-9]+_[A-Za-z0-9_]+)"
)
_ONLY_WORDS = re.compile(
    r"[^\W\d_]+(?:-[^\W\d_]{2,})+|[^\W\d_]{2,}/[^\W\d_]{2,}|[^\W\d_]{2,}(?:\.[^\W\d_]{2,})+|[A-Za-z](?:\.[A-Za-z])+"
)
_FILE_ENDING = re.compile(r"\.[a-z]{1,4}\d?$")
# "i.e" and "z.B" are no files.
_MAX_ABBREVIATION_CHARS = 3
_ISO_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_NUMERIC_DATE = re.compile(
    r"(?<![\d.])(\d{1,2})([/.])(\d{1,2})(?:\2(\d{4}|\d{2})(?!\d)|\.(?=[\s,;:)]|$)|(?=\s*[-\u2013]?\s*$))"
)
_MONTH_YEAR = re.compile(r"(?<![\d/.])(\d{1,2})/(\d{4})(?!\d)")
_KANJI_DATE = re.compile(r"(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})日)?")
_DAY = r"(\d{1,2})(?:st|nd|rd|th|\.)?"
_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY_MONTH = re.compile(
    rf"(?<![\d.,:]){_DAY}(?: of)?[ \u2013-]{{1,2}}({_NAMES})\b\.?(?:,? (\d{{4}})(?!\d))?", re.IGNORECASE
)
_MONTH_DAY = re.compile(
    rf"\b({_NAMES})\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.,]\d|\d)(?:,? (\d{{4}})(?!\d))?", re.IGNORECASE
)
_MONTH_NAME = re.compile(rf"(?<![\w-])({_NAMES})(?!\w)", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:\b(?P<at>pukul|jam|um|at)\s)?(?<![\d:.])(\d{1,2})[:.](\d{2})(?::\d{2})?(?!\d|\.\d)\s*(a\.?m\b|p\.?m\b|uhr\b|wib\b)?",
    re.IGNORECASE,
)
_PLAIN_HOUR = re.compile(
    r"(?<![\d:.,])(\d{1,2})\s?(a\.?m\b\.?|p\.?m\b\.?|uhr\b|時(?!間)|o'clock)(?:(\d{1,2})分)?"
    r"|\b(?:jam|pukul)\s(\d{1,2})(?![\d:.])",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<money>(?:US\$|[$€£¥]|\bRp\.?|\b(?:EUR|USD|GBP|IDR|JPY|CHF))\s?)?(?P<sign>(?<![\w)])[-+](?=\d))?"
    r"(?P<number>\d+(?:[.,' \u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)?)"
    rf"(?:[ \u00a0\u202f-]?(?P<unit>[%\u2030]|°[CF]?|m²|[€£¥$]|[^\W\d_{UNSPACED_SCRIPTS}]+"
    r"|[ヶかカ]月|円|万|秒|分|時間|週間|年間|日間|キロ|グラム))?"
    r"(?:[ /](?P<more>[€£$]|[^\W\d_]+))?",
)  # fmt: skip
_ROUNDED = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|some|etwa|rund|ca\.?|circa"
    r"|ungefähr|knapp|fast|sekitar|kira-kira|hampir|kurang lebih)"
    r"|[約およそ~≈])\s*(?:[€$£¥]|Rp)?\s*$",
    re.IGNORECASE,
)
# A full stop or a slash that belongs to a version, such as 3.2.1, and no number.
_VERSION = re.compile(r"(?<![\w.])v?\d+(?:\.\d+){2,}(?:[-+][0-9A-Za-z.]+)?(?![\w])", re.IGNORECASE)


_QUARTER = re.compile(
    r"\b(first|second|third|fourth|ersten?s?|zweiten?s?|dritten?s?|vierten?s?) (?:quarter|quartals?)\b"
    r"|\b(?:kuartal|triwulan) (?:ke-?)?(pertama|kedua|ketiga|keempat|[1-4]|iv|i{1,3})\b"
    r"|第([1-4一二三四])四半期",
    re.IGNORECASE,
)
_QUARTER_WORDS = (
    "1 first erst pertama i 一",
    "2 second zweit kedua ii 二",
    "3 third dritt ketiga iii 三",
    "4 fourth viert keempat iv 四",
)


_SLASH_DAY = re.compile(r"(?<![\d/.])(\d{1,2})/(\d{1,2})(?![\d/])")
# What a summary counts itself: "two options", "drei Fragen".
_COUNTED = re.compile(
    r"\b(?:two|three|four|five|six|zwei|drei|vier|fünf|sechs|dua|tiga|empat|lima|[2-6]) (?:\w+ )?"
    r"(?:options?|alternatives?|ways|possibilities|points?|questions?|reasons?|steps|topics?|tasks?|issues?|suggestions?|proposals?|things"
    r"|conditions?|requirements?|ideas|Optionen|Alternativen|Möglichkeiten|Wege|Punkte|Fragen|Gründe|Schritte|Themen|Aufgaben|Vorschläge"
    r"|Bedingungen|Varianten|Dinge|opsi|pilihan|alternatif|cara|hal|pertanyaan|alasan|langkah|topik|tugas|saran|usulan|syarat)\b"
    r"|[2-6二三四五六]つの(?:案|選択肢|方法|理由|質問|点|提案)",
    re.IGNORECASE,
)


class TextFacts(NamedTuple):
    """What a text states exactly.

    Attributes:
        numbers: Each possible value of each number; "1.250" may be 1250 or 1.25.
        units: The units that a number has in the text.
        days: Pairs of month and day.
        months: Months by number.
        years: Four-digit years.
        times: Pairs of hour and minute.
        weekdays: Days of the week, Monday is 0.
        text: The text in lower case, with straight dashes and ASCII digits.
    """

    numbers: frozenset[Decimal]
    quantities: frozenset[tuple[Decimal, str]]
    days: frozenset[tuple[int, int]]
    months: frozenset[int]
    years: frozenset[int]
    times: frozenset[tuple[int, int]]
    weekdays: frozenset[int]
    text: str


class _Amount(NamedTuple):
    """A number as written, its possible values, without the word that scales it as well, and its unit."""

    shown: str
    values: tuple[Decimal, ...]
    unit: str
    unscaled: tuple[Decimal, ...] = ()
    is_rounded: bool = False


class _Reading:
    """Takes facts out of a text one kind after the other, so that no part counts twice."""

    def __init__(self, text: str) -> None:
        digits = _KANJI_DECIMAL.sub(_format_kanji_decimal, normalize_digits_and_dashes(normalize_characters(text)))
        plain = _KANJI_DAY.sub(_format_kanji_day, digits)
        self.rest = _QUARTER.sub(_format_quarter, plain)
        self.text = self.rest.casefold()
        self.identifiers: list[str] = []
        self.dates: list[tuple[str, int, int, int]] = []
        self.times: list[tuple[str, int, int]] = []
        self.amounts: list[_Amount] = []

    def read(self) -> "_Reading":
        for pattern in (_URL, _MAIL):
            self._take(pattern, lambda found: self.identifiers.append(found[0].rstrip(".,;:!?")))
        self._take_dates()
        self._take(_CLOCK, self._add_clock)
        self._take(_PLAIN_HOUR, self._add_hour)
        self._take(_VERSION, self._add_version)
        self._take(_IDENTIFIER, self._add_identifier)
        for found in _NUMBER.finditer(self.rest):
            self._add_amount(found)
        self.amounts += [_Amount(shown, (Decimal(value),), unit) for shown, value, unit in _iter_spelled(self.rest)]
        return self

    def _take(self, pattern: re.Pattern[str], add: "object") -> None:
        def replace(found: re.Match[str]) -> str:
            # ``add`` returns False for a match that is something else.
            return found[0] if add(found) is False else " " * len(found[0])  # type: ignore[operator]

        self.rest = pattern.sub(replace, self.rest)

    def _take_dates(self) -> None:
        self._take(_ISO_DATE, lambda found: self._add_date(found[0], found[2], found[3], found[1]))
        self._take(_KANJI_DATE, lambda found: self._add_date(found[0], found[2], found[3], found[1]))
        self._take(_MONTH_YEAR, lambda found: self._add_date(found[0], found[1], None, found[2]))
        self._take(_NUMERIC_DATE, self._add_numeric_date)
        self._take(_DAY_MONTH, lambda found: self._add_date(found[0], found[2], found[1], found[3]))
        self._take(_MONTH_DAY, lambda found: self._add_date(found[0], found[1], found[2], found[3]))
        self._take(_MONTH_NAME, self._add_month_name)

    def _add_date(self, shown: str, month: str, day: str | None, year: str | None) -> bool:
        number = int(month) if month.isdigit() else MONTHS[month.casefold()]
        if not 1 <= number <= 12 or not 0 <= int(day or 0) <= 31:
            return False
        self.dates.append((shown.strip(), number, int(day or 0), int(year or 0)))
        return True

    def _add_numeric_date(self, found: re.Match[str]) -> bool:
        if found[4] is None and found[2] == "/":
            return False
        year = found[4] if found[4] is None or len(found[4]) == 4 else f"20{found[4]}"
        first, second = int(found[1]), int(found[3])
        both = [
            self._add_date(found[0], str(month), str(day), year)
            for day, month in {(first, second), (second, first)}
            if 1 <= month <= 12 and day
        ]
        return any(both)

    def _add_month_name(self, found: re.Match[str]) -> bool:
        # "may" and "mar" in lower case are other words.
        return found[0][:1].isupper() and self._add_date(found[0], found[1], None, None)

    def _add_clock(self, found: re.Match[str]) -> bool:
        hour, minute, mark = int(found[2]), int(found[3]), found[4]
        if hour > 24 or minute > 59 or (f"{found[2]}." in found[0] and not mark and not found["at"]):
            return False
        self.times.append((found[0].strip(), _hour_of_day(hour, mark), minute))
        return True

    def _add_hour(self, found: re.Match[str]) -> bool:
        hour = int(found[1] or found[4])
        if hour > 24:
            return False
        self.times.append((found[0].strip(), _hour_of_day(hour, found[2]), int(found[3] or 0)))
        return True

    def _add_version(self, found: re.Match[str]) -> bool:
        # 3.840.000 is a number in groups of three digits.
        if re.fullmatch(r"\d{1,3}(?:\.\d{3})+", found[0]):
            return False
        self.identifiers.append(found[0])
        return True

    def _add_identifier(self, found: re.Match[str]) -> bool:
        shown = found[0].rstrip(".:")
        is_file = _FILE_ENDING.search(shown) is not None and len(shown) > _MAX_ABBREVIATION_CHARS
        if (_ONLY_WORDS.fullmatch(shown) and not is_file) or _is_amount(shown):
            return False
        self.identifiers.append(shown)
        return True

    def _add_amount(self, found: re.Match[str]) -> None:
        values = _number_values(found["number"])
        words = [word.casefold() for word in (found["unit"], found["more"]) if word]
        factor = _SCALES.get(words[0], 1) if words else 1
        words = words[1:] if factor > 1 else words[:1]
        money = [found["money"].strip().casefold()] if found["money"] else []
        unit = next((_UNIT_BY_WORD[word] for word in (*money, *words) if word in _UNIT_BY_WORD), "")
        sign = -1 if found["sign"] == "-" else 1
        self.amounts.append(
            _Amount(
                found[0].strip(),
                tuple(sign * factor * value for value in values),
                unit,
                tuple(values),
                _ROUNDED.search(self.rest, 0, found.start()) is not None,
            )
        )


def _format_kanji_decimal(found: re.Match[str]) -> str:
    return f"{_kanji_value(found[1])}.{''.join(str(_KANJI_DIGITS[digit]) for digit in found[2])}"


def _format_kanji_day(found: re.Match[str]) -> str:
    return str(_kanji_value(found[0]))


def _format_quarter(found: re.Match[str]) -> str:
    word = next(filter(None, found.groups())).casefold()
    word = re.sub(r"(?<=t)e[ns]?s?$", "", word)
    return next(
        (f" Q{number} " for number, words in enumerate(_QUARTER_WORDS, start=1) if word in words.split()), found[0]
    )


def _hour_of_day(hour: int, mark: str | None) -> int:
    letter = (mark or "").casefold()[:1]
    return hour % 12 + 12 * (letter == "p") if letter in ("a", "p") else hour


def _is_amount(text: str) -> bool:
    """Return whether a run of characters is a number with a unit, such as 18kW or 2x."""
    if re.fullmatch(r"(?:rp\.?|eur|usd|gbp|idr|jpy|chf)\d+(?:[.,]\d+)*(?:/[^\W\d_]+)?", text, re.IGNORECASE):
        return True
    found = re.fullmatch(r"\d+(?:[.,]\d+)*[-/]?([^\W\d_]+)(?:/[^\W\d_]+)?", text)
    word = found[1].casefold() if found else ""
    return word in _UNIT_BY_WORD or word in _SCALES or word in ("x", "st", "nd", "rd", "th")


def _number_values(text: str) -> tuple[Decimal, ...]:
    """Return the values that a number may have: a separator before three digits may group them or end the whole part."""
    bare = re.sub(r"[' \u00a0\u202f]", "", text)
    readings = {bare.replace(",", "").replace(".", "") if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", bare) else ""}
    head, _, tail = bare.replace(",", ".").rpartition(".")
    readings.add(f"{head.replace('.', '')}.{tail}" if head else tail)
    values: list[Decimal] = []
    for reading in sorted(filter(None, readings)):
        try:
            values.append(Decimal(reading).normalize())
        except InvalidOperation:  # pragma: no cover - digits and one point always parse
            continue
    return tuple(values)


def _iter_spelled(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield the numbers that a text spells out, each with its value and the unit after it."""
    words = list(_LATIN_WORD.finditer(text.replace("-", " ")))
    at = 0
    while at < len(words):
        end, value = at, 0
        part = 0
        while end < len(words) and (end == at or text[words[end - 1].end() : words[end].start()].strip(" -") == ""):
            word = words[end][0].casefold()
            if word in _WORD_NUMBERS:
                part += _WORD_NUMBERS[word]
            elif word == "belas":
                part += 10
            elif word == "puluh":
                part *= 10
            elif word in _WORD_FACTORS and (part or end > at):
                part = max(part, 1) * _WORD_FACTORS[word]
                value, part = (value + part, 0) if _WORD_FACTORS[word] >= 1_000 else (value, part)
            elif not (word in _ONE and end > at and end + 1 < len(words) and _is_number_word(words[end + 1][0])):
                break
            end += 1
        if value + part:
            unit = _UNIT_BY_WORD.get(words[end][0].casefold(), "") if end < len(words) else ""
            yield text[words[at].start() : words[end - 1].end()], value + part, unit
        at = max(end, at + 1)
    for found in _KANJI_NUMBER.finditer(text):
        number = _kanji_value(found[1])
        if number > 1:
            yield found[0], number, "JPY" if text[found.end() : found.end() + 1] == "円" else ""


def _is_number_word(word: str) -> bool:
    return word.casefold() in _WORD_NUMBERS or word.casefold() in _WORD_FACTORS


def _kanji_value(text: str) -> int:
    total = part = 0
    for character in text:
        if character in _KANJI_DIGITS:
            part = part * 10 + _KANJI_DIGITS[character]
        elif character == "万":
            total, part = (total + (part or 1)) * 10_000, 0
        else:
            total, part = total + (part or 1) * _KANJI_FACTORS[character], 0
    return total + part


def read_facts(texts: Iterable[str]) -> TextFacts:
    """Return the facts of some texts."""
    found = [_Reading(text).read() for text in texts]
    amounts = [amount for one in found for amount in one.amounts]
    dates = [date for one in found for date in one.dates]
    text = "\n".join(one.text for one in found)
    # A number inside a date, a time or an identifier may be repeated alone: "the 18th", "item 204".
    loose = {Decimal(digits) for digits in re.findall(r"\d{1,15}", text)}
    loose |= {
        Decimal(value) for value, pattern in (*_IMPLIED_NUMBERS.items(), *_ORDINALS.items()) if pattern.search(text)
    }
    return TextFacts(
        numbers=frozenset({value for amount in amounts for value in (*amount.values, *amount.unscaled)} | loose),
        quantities=frozenset({(value, amount.unit) for amount in amounts for value in amount.values}),
        days=frozenset({(month, day) for _, month, day, _ in dates if day}),
        months=frozenset({month for _, month, _, _ in dates}),
        years=frozenset(
            {year for _, _, _, year in dates if year}
            | {int(one) for one in re.findall(r"(?<!\d)[12]\d{3}(?!\d)", text)}
        ),
        times=frozenset({(hour, minute) for one in found for _, hour, minute in one.times} | _named_times(text)),
        weekdays=frozenset(_weekdays(text)),
        text=text,
    )


def _named_times(text: str) -> set[tuple[int, int]]:
    midnight = {(0, 0), (24, 0)} if re.search(r"\b(?:midnight|mitternacht|tengah malam)\b|真夜中|零時", text) else set()
    return midnight | ({(12, 0)} if re.search(r"\b(?:noon|mittags?|tengah hari)\b|正午", text) else set())


def count_numbers(text: str) -> int:
    """Return how many numbers, dates, times and identifiers a text states."""
    found = _Reading(text).read()
    return len(found.amounts) + len(found.dates) + len(found.times) + len(found.identifiers)


def _weekdays(text: str, *, skip: Set[str] = frozenset()) -> dict[int, str]:
    found = _weekday_pattern().finditer(text)
    return {WEEKDAYS[one[0]]: one[0] for one in found if one[0] not in skip}


@cache
def _weekday_pattern() -> re.Pattern[str]:
    names = sorted(WEEKDAYS, key=len, reverse=True)
    return re.compile("|".join(name if not name.isascii() else rf"\b{re.escape(name)}\b" for name in names))


def find_unknown_fact(statement: str, sources: TextFacts, *, more_years: Set[int] = frozenset()) -> str | None:
    """Return the first exact fact of a statement that its sources do not have, as it is written, or None.

    A year may also be one of ``more_years``, because a date is often repeated with the year of another message.
    """
    found = _Reading(_without_known_days(_COUNTED.sub(" ", statement), sources)).read()
    return (
        next((one for one in found.identifiers if not _has_identifier(one, sources.text)), None)
        or _find_unknown_date(found, sources, more_years)
        or next((shown for shown, hour, minute in found.times if (hour, minute) not in sources.times
                 and not (minute == 0 and (hour % 12, 0) in sources.times and _same_half(shown))), None)
        or next((one.shown for one in found.amounts if not _has_amount(one, sources)), None)
        or next(
            (shown for day, shown in _weekdays(found.text, skip=_AMBIGUOUS_WEEKDAYS).items() if day not in sources.weekdays),
            None,
        )
    )  # fmt: skip


def _without_known_days(statement: str, sources: TextFacts) -> str:
    """Return the statement without days such as 21/06 that its sources have; others may be fractions."""

    def replace(found: re.Match[str]) -> str:
        first, second = int(found[1]), int(found[2])
        return " " if sources.days & {(first, second), (second, first)} else found[0]

    return _SLASH_DAY.sub(replace, statement)


def _same_half(shown: str) -> bool:
    return re.search(r"[ap]\.?m", shown, re.IGNORECASE) is None


def _find_unknown_date(found: _Reading, sources: TextFacts, more_years: Set[int]) -> str | None:
    known_shown = {shown for shown, month, day, _ in found.dates if _has_day(month, day, sources)}
    for shown, month, day, year in found.dates:
        # A numeric date has two readings; one of them has to be known.
        if not _has_day(month, day, sources) and shown not in known_shown:
            return shown
        if year and year not in sources.years and year not in more_years:
            return shown
    return None


def _has_day(month: int, day: int, sources: TextFacts) -> bool:
    return (month, day) in sources.days if day else month in sources.months


def _has_identifier(name: str, text: str) -> bool:
    bare = name.casefold().rstrip("/")
    bare = bare[1:] if re.match(r"v\d", bare) else bare
    return (
        re.search(
            rf"(?<![a-z0-9_])(?:(?<=v)|(?<!v))(?<![a-z0-9_])v?{re.escape(bare)}(?![a-z0-9_]|[-./][a-z0-9]|\?)", text
        )
        is not None
    )


def _has_amount(amount: _Amount, sources: TextFacts) -> bool:
    values = [value for value in amount.values if value in sources.numbers]
    if _is_converted(amount, sources):
        return True
    # "10K" may be 10 km.
    if amount.unscaled != amount.values and any((value, "km") in sources.quantities for value in amount.unscaled):
        return True
    if not values:
        return amount.is_rounded and _is_near(amount, sources)
    if not amount.unit:
        return True
    units = {unit for value, unit in sources.quantities if value in values}
    # A number without a unit in the source may get one, and a unit of ours may be a word of another language.
    return not units or amount.unit in units or "" in units


def _is_near(amount: _Amount, sources: TextFacts) -> bool:
    """Return whether the sources have a number that rounds to this one, with the same unit."""
    return any(
        abs(known - value) * 20 <= abs(value) and unit == amount.unit
        for known, unit in sources.quantities
        for value in amount.values
    )


def _is_converted(amount: _Amount, sources: TextFacts) -> bool:
    """Return whether the sources have the same quantity in another unit."""
    sizes = next((sizes for sizes in _QUANTITIES if amount.unit in sizes), None)
    if sizes is None:
        return False
    # "28.000" is only converted as a number in groups of three digits.
    values = [max(amount.values)] if re.search(r"\d[.,]\d{3}(?!\d)", amount.shown) else amount.values
    own = {value * sizes[amount.unit] for value in values}
    return any(unit in sizes and value * sizes[unit] in own for value, unit in sources.quantities)
