"""Split texts into searchable terms, and normalise words of English and Indonesian.

``iter_terms`` splits a text into words of any script, and paths and numbers into parts. ``word_form_keys`` returns the
keys that a word shares with its other forms: stems, and irregular forms, which a stemmer cannot lead back to their
word. ``normalize_text`` removes case and unifies characters. ``SubstringIndex`` finds words that contain a part.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise
from unicodedata import normalize

from Stemmer import Stemmer

from lamella.core.text.content import UNSPACED_SCRIPTS
from lamella.core.text.notation import normalize_characters

# Each word with its irregular forms. A form may belong to several words. Regular forms are left to the stemmer.
# fmt: off
_ENGLISH_IRREGULAR_FORMS = (
    # Verbs
    "arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became"
    "|begin began begun|bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred"
    "|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came"
    "|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven"
    "|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|fly flew flown"
    "|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten"
    "|give gave given|go went gone goes|grind ground|grow grew grown|hang hung|hear heard|hide hid hidden"
    "|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt|learn learnt|leave left"
    "|lend lent|lie lay lain|light lit|lose lost|make made|mean meant|meet met|mistake mistook mistaken"
    "|overcome overcame|pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said"
    "|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown"
    "|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|sow sown"
    "|speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spring sprang sprung|stand stood"
    "|steal stole stolen|stick stuck|sting stung|strike struck stricken|strive strove striven|swear swore sworn"
    "|sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told"
    "|think thought|throw threw thrown|tread trod trodden|understand understood|undo undid undone|wake woke woken"
    "|wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn|wring wrung"
    "|write wrote written|rewrite rewrote rewritten|rebuild rebuilt|resend resent|foresee foresaw foreseen"
    # Plurals
    "|calf calves|child children|die dice|elf elves|foot feet|goose geese|half halves|hoof hooves|knife knives"
    "|leaf leaves|life lives|loaf loaves|louse lice|man men|mouse mice|ox oxen|person people|scarf scarves"
    "|self selves|shelf shelves|thief thieves|tooth teeth|wife wives|wolf wolves|woman women"
    "|alumnus alumni|analysis analyses|appendix appendices|axis axes|bacterium bacteria|basis bases|cactus cacti"
    "|crisis crises|criterion criteria|curriculum curricula|datum data|diagnosis diagnoses|erratum errata|focus foci"
    "|fungus fungi|hypothesis hypotheses|index indices|larva larvae|matrix matrices|medium media|nucleus nuclei"
    "|phenomenon phenomena|radius radii|stimulus stimuli|synthesis syntheses|thesis theses|vertex vertices"
    # Comparatives and superlatives
    "|bad worse worst|big bigger biggest|fat fatter fattest|far further furthest farther farthest|fit fitter fittest"
    "|good better best|hot hotter hottest|red redder reddest|sad sadder saddest|thin thinner thinnest"
    "|wet wetter wettest"
)
# Words of one syllable, which take longer Indonesian prefixes than the stemmer removes: mengecat, pengecatan, dicek.
_ONE_SYLLABLE_ROOTS = frozenset(
    ["bom", "bor", "cap", "cas", "cat", "cek", "cor", "lap", "las", "lem", "pak", "pel", "pos", "rem", "sah", "tes"]
)
# fmt: on
_ONE_SYLLABLE_PREFIXES = ("menge", "penge", "di")
_SUFFIXES = ("", "kan", "i", "an", "nya", "annya", "kannya")
_CAUSATIVE_PREFIXES = ("diper", "memper")
# Prefixes, and what to put in their place, where the stemmer removes a longer prefix: memasak, menyanyi, bertemu.
_PREFIX_REPLACEMENTS = (("mem", "m"), ("pem", "m"), ("meny", "ny"), ("peny", "ny"), ("ber", ""), ("ter", ""))
_MIN_ROOT_CHARS = 4


_VOWELS = frozenset("aeiou")


def irregular_base_forms(form: str) -> tuple[str, ...]:
    """Return the English words that this is an irregular form of; empty for nearly all words."""
    return _base_forms_by_irregular().get(form, ())


@cache
def _base_forms_by_irregular() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for listed in _ENGLISH_IRREGULAR_FORMS.split("|"):
        word, *forms = listed.split()
        for form in forms:
            found[form] = (*found.get(form, ()), word)
    return found


def indonesian_roots(form: str, stem: str) -> list[str]:
    """Return possible roots of an Indonesian word beyond its ``stem``, where prefixes hide more than one."""
    roots = [
        root
        for before in _ONE_SYLLABLE_PREFIXES
        if form.startswith(before)
        for root in _ONE_SYLLABLE_ROOTS
        if form.startswith(root, len(before)) and form[len(before) + len(root) :] in _SUFFIXES
    ]
    if form.startswith(_CAUSATIVE_PREFIXES) and stem.startswith("per") and len(stem) - 3 >= _MIN_ROOT_CHARS:
        roots.append(stem[3:])
    for before, kept in _PREFIX_REPLACEMENTS:
        rest = form[len(before) :]
        if form.startswith(before) and len(rest) >= _MIN_ROOT_CHARS and (not kept or rest[0] in _VOWELS):
            roots.append(kept + rest)
    return roots


# Stop words: words that nearly every text has and that say nothing about its subject.

# Words that nearly every text of one language has and hardly any text of the other; below, words common in questions.
ENGLISH_MARKER_WORDS = frozenset(
    ["the", "of", "and", "to", "in", "is", "for", "that", "with", "are", "on", "as", "this", "be", "or"]
)
INDONESIAN_MARKER_WORDS = frozenset(
    ["yang", "dan", "dengan", "untuk", "ini", "itu", "dari", "pada", "adalah", "tidak", "akan", "dalam", "ke", "di"]
)
# fmt: off
_STOP_WORDS = ENGLISH_MARKER_WORDS | INDONESIAN_MARKER_WORDS | frozenset([
    "a", "an", "it", "its", "by", "from", "at", "about", "what", "which", "who", "when", "where", "why", "how", "do",
    "does", "did", "can", "we", "i", "you", "my", "our", "your", "was", "were", "has", "have", "had", "not", "there",
    "apa", "bagaimana", "siapa", "kapan", "mana", "mengapa", "ada", "oleh", "sudah", "telah", "juga", "atau", "saya",
    "kami", "kita", "mereka",
])
# fmt: on


# More words of questions that say nothing about their subject. They rank texts, but they do not make one a hit.
# fmt: off
_FUNCTION_WORDS = _STOP_WORDS | frozenset([
    "any", "all", "some", "much", "many", "more", "most", "no", "yes", "so", "if", "then", "than", "but", "also", "only",
    "just", "very", "too", "here", "now", "again", "other", "such", "same", "every", "each", "both", "few", "out", "up",
    "down", "off", "over", "into", "am", "been", "being", "having", "will", "would", "could", "should", "may", "might",
    "must", "shall", "me", "mine", "us", "them", "they", "their", "he", "she", "him", "his", "her", "these", "those",
    "get", "got", "go", "going", "say", "said", "tell", "told", "did", "done", "make", "made", "know", "think", "want",
    "need", "like", "use", "used", "let", "please", "one", "doing", "t", "s", "re", "ve", "ll", "d", "m", "don", "didn",
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "und", "oder", "ist",
    "sind", "war", "waren", "wird", "werden", "wurde", "wurden", "habe", "hat", "haben", "hatte", "hatten", "ich", "du",
    "er", "sie", "es", "wir", "ihr", "mich", "dir", "mir", "uns", "wer", "wie", "wo", "wann", "warum", "welche",
    "welcher", "welches", "nicht", "kein", "keine", "mit", "von", "zu", "zum", "zur", "im", "auf", "für", "bei", "aus",
    "nach", "über", "unter", "um", "als", "auch", "nur", "noch", "schon", "sich", "dass", "wenn", "aber", "kann",
    "soll", "muss", "mein", "meine", "dein", "deine",
    "bisa", "apakah", "berapa", "dimana", "kamu", "anda", "dia", "kalau", "jika", "karena", "seperti", "lagi", "saja",
    "bukan", "belum", "pernah", "harus", "mau", "aku", "nya", "tentang", "soal",
])
# fmt: on
_HIRAGANA_PAIR = re.compile(r"[ぁ-ゟ]{1,2}")


def is_stop_word(word: str) -> bool:
    """Return whether a word is a stop word."""
    return word in _STOP_WORDS


def is_content_word(word: str) -> bool:
    """Return whether a word of a query says something about what is looked for.

    Of a script without spaces these are pairs of characters; pairs of hiragana are mostly endings and particles.
    """
    if _UNSPACED_CHARACTER.match(word):
        return len(word) > 1 and _HIRAGANA_PAIR.fullmatch(word) is None
    return word not in _FUNCTION_WORDS


# The two Turkish letters i: Python casefolds the dotted capital to two characters, and leaves the dotless small one.
_TURKISH_I = {"İ": "i", "\u0131": "i"}
_TURKISH_I_TABLE = str.maketrans(_TURKISH_I)
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
# Letters that Unicode does not decompose into a letter and an accent, but that people type without it.
_LOOKALIKES = {"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ß": "ss"}
_LOOKALIKE_TABLE = str.maketrans(_LOOKALIKES)

_CAMEL_CASE_NAME = re.compile(r"(?:[A-Z]*+[a-z0-9]++[A-Z]|[A-Z]{2,}+[a-z])[^\W_]*+")
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MIN_PART_CHARS = 2
# No word of a language is longer than this, so longer strings are not stemmed.
_MAX_WORD_CHARS = 60

_RESTORED_LETTERS = {"n": "t", "ng": "k"}
_NASAL_PREFIX = re.compile("[mp]en(?:g)?(?=[aeiou])")

_english_stemmer = Stemmer("porter", 0)
_indonesian_stemmer = Stemmer("indonesian", 0)
stem_english: Callable[[str], str] = _english_stemmer.stemWord
stem_indonesian: Callable[[str], str] = _indonesian_stemmer.stemWord


def casefold_text(text: str) -> str:
    """Return a settled text without case; the Turkish letters i become one."""
    return text.lower() if text.isascii() else text.translate(_TURKISH_I_TABLE).casefold()


def normalize_text(text: str) -> str:
    """Normalize a text for comparison: compatibility characters are unified and case is removed."""
    return casefold_text(normalize_characters(text))


def normalize_word(word: str) -> str:
    """Normalize a word for comparison: without case and accents."""
    if word.isascii():
        return word.lower()
    bare = _ACCENTS.sub("", normalize("NFKD", word.casefold()))
    return normalize("NFC", bare).translate(_LOOKALIKE_TABLE)


def list_stems(normalized_word: str) -> tuple[str, ...]:
    """Return the stems of a normalized word in English and in Indonesian.

    For an irregular form, the stem of its base word is included.
    """
    if len(normalized_word) > _MAX_WORD_CHARS:
        return ()
    indonesian = stem_indonesian(normalized_word)
    found = [stem_english(normalized_word), indonesian, *map(stem_english, irregular_base_forms(normalized_word))]
    swallowed = _NASAL_PREFIX.match(normalized_word)
    # Indonesian prefixes replace a first letter that the stemmer does not restore: tulis, menulis; kirim, pengiriman.
    if (
        swallowed is not None
        and indonesian[:1] in _VOWELS
        and normalized_word[swallowed.end() :].startswith(indonesian)
    ):
        found.append(f"{_RESTORED_LETTERS[swallowed[0][2:]]}{indonesian}")
    return (*found, *map(stem_indonesian, indonesian_roots(normalized_word, indonesian)))


def split_identifier(word: str) -> list[str]:
    """Split an identifier at capitals and digits; empty for a plain word."""
    bare = word if word.isascii() else _ACCENTS.sub("", normalize("NFKD", word)).translate(_LOOKALIKE_TABLE)
    parts = _NAME_PARTS.findall(bare) if _CAMEL_CASE_NAME.fullmatch(bare) else []
    return [part.lower() for part in parts if len(part) >= _MIN_PART_CHARS]


# Terms of texts.

_TOKEN = re.compile(
    rf"[{UNSPACED_SCRIPTS}]++|[^\W{UNSPACED_SCRIPTS}]++(?:[./,:;@+~%#&=?!|*\\-]++[^\W{UNSPACED_SCRIPTS}]++)*+"
)
_UNSPACED_CHARACTER = re.compile(rf"[{UNSPACED_SCRIPTS}]")
_WORD = re.compile(r"[^\W_]+")
_NUMBER_AND_UNIT = re.compile(r"(\d+)([^\W\d_]+)")
_DIGIT = re.compile(r"\d")
# Numbers with grouped thousands, such as 1,234 or 12,34,567 or 1.234, and the digits after the other separator.
_GROUPED_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3}(?:(?:,\d{2,3})*,\d{3}|(?:\.\d{3})+))(?:[.,](\d+))?(?![\d.,]*\d)")
_COMMA_DECIMAL = re.compile(r"(?<![\d.,])(\d+),(\d+)(?![\d.,]*\d)")
# The same with spaces or apostrophes between the groups.
_SPACED_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:[ '\u2019]\d{3})+(?![\w'\u2019])")
_NO_DIGIT = re.compile(r"\D+")
# Characters between the parts of a name that other people write as one word.
_NAME_SEPARATOR = re.compile("[_-]")
_SEPARATED_NAME = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)+")


def iter_terms(text: str) -> Iterator[str]:
    """Iterate over the terms of a text that is already normalized for comparison."""
    for joined in _TOKEN.findall(text):
        if _UNSPACED_CHARACTER.match(joined):
            yield from _split_unspaced(joined)
        elif joined.isalpha():
            yield joined
        else:
            yield from _split_parts(joined)


def split_tokens(normalized_text: str) -> list[str]:
    """Split a settled text into tokens; numbers with spaces in them are added once more without."""
    return _TOKEN.findall(_SPACED_NUMBER.sub(_remove_inner_spaces, normalized_text))


def split_token_into_words(token: str) -> tuple[str, ...]:
    """Return the words that a token is found by: itself in lower case, and its parts."""
    if _UNSPACED_CHARACTER.match(token):
        return tuple(_split_unspaced(token))
    low = casefold_text(token)
    if low == token and token.isalpha():
        return (token,)
    words = _WORD.findall(low)
    parts = [part for piece in _WORD.findall(token) for part in split_identifier(piece)]
    return (*(() if words == [low] else (low,)), *words, *parts)


def is_unspaced_script(token: str) -> bool:
    """Return whether a token is in a script without spaces."""
    return _UNSPACED_CHARACTER.match(token) is not None


def word_form_keys(word: str) -> frozenset[str]:
    """Return the keys that a word shares with its other forms.

    Forms differ in accents, word endings, notations of a number, and ways to join the parts of a name.
    """
    folded = normalize_word(word)
    if folded.isalpha():
        return frozenset((folded, *list_stems(folded)))
    return frozenset((folded, *_iter_alternative_spellings(_to_ascii_digits(folded))))


def _iter_alternative_spellings(word: str) -> Iterator[str]:
    yield word
    if measured := _NUMBER_AND_UNIT.fullmatch(word):
        yield from measured.groups()
    for whole, rest in _GROUPED_NUMBER.findall(word):
        digits = _NO_DIGIT.sub("", whole)
        yield digits
        if rest:
            yield f"{digits}.{rest}"
    for whole, rest in _COMMA_DECIMAL.findall(word):
        yield f"{whole}.{rest}"
    if _SEPARATED_NAME.fullmatch(word):
        yield from list_stems(name := _NAME_SEPARATOR.sub("", word))
        yield name


def _to_ascii_digits(word: str) -> str:
    """Return a word with digits of any script as ASCII digits."""
    return word if word.isascii() else _DIGIT.sub(lambda match: str(int(match[0])), word)


def _remove_inner_spaces(match: re.Match[str]) -> str:
    return f"{match[0]} {_NO_DIGIT.sub('', match[0])}"


def _split_unspaced(token: str) -> Iterator[str]:
    yield from token
    yield from map("".join, pairwise(token))


def _split_parts(token: str) -> Iterator[str]:
    words = _WORD.findall(token)
    if words != [token]:
        yield token
    for word in words:
        yield word
        measured = _NUMBER_AND_UNIT.fullmatch(word)
        if measured:
            yield from measured.groups()


# Substring lookups, by three characters at a time.

_NGRAM_CHARS = 3
# Longer words are not indexed but scanned each time, since they have as many parts as characters.
_MAX_INDEXED_WORD_CHARS = 100


# A number that may be written with spaces and separators in it, such as a phone or an account number.
_SEPARATED_DIGITS = re.compile(r"(?<!\w)\+?\d(?:[\s().\u2013/-]{0,3}\d){6,}(?!\w)")
_COMPARED_DIGITS = 7


def long_number_terms(text: str) -> list[str]:
    """Return a term for each number of seven or more digits: its last seven, with any characters between them.

    ``+62 21 555 0199``, ``+62215550199`` and ``021 5550199`` have the same term.
    """
    digits = ("".join(filter(str.isdigit, match[0])) for match in _SEPARATED_DIGITS.finditer(text))
    return [f"digits:{number[-_COMPARED_DIGITS:]}" for number in digits]


# Words of at least this length are repaired; longer ones may have two mistakes.
_MIN_REPAIRED_CHARS, _MIN_TWO_MISTAKES_CHARS = 4, 8
_MAX_REPAIRS = 3


def edit_distance(one: str, other: str, *, limit: int) -> int:
    """Return how many letters are inserted, left out, replaced or swapped with their neighbour, up to ``limit`` + 1."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [at]
        for to, target in enumerate(other, start=1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != target))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == target:
                cost = min(cost, earlier[to - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


class SubstringIndex:
    """An index of words for substring lookups, and for words that are nearly the same."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._long: list[str] = []
        self._by_gram: dict[str, list[str]] = {}

    def extend(self, words: Iterable[str]) -> None:
        """Add words that are not in the index yet."""
        for word in words:
            if len(word) > _MAX_INDEXED_WORD_CHARS:
                self._long.append(word)
                continue
            self._words.append(word)
            for gram in {word[at : at + _NGRAM_CHARS] for at in range(len(word) - _NGRAM_CHARS + 1)}:
                self._by_gram.setdefault(gram, []).append(word)

    def words_containing(self, part: str, *, core: str) -> Iterator[str]:
        """Iterate over the words that contain ``part``; among non-ASCII words, all that contain ``core``.

        The ends of a non-ASCII part may be different characters inside a longer word.
        """
        yield from (word for word in self._iter_candidates(part) if part in word and word.isascii())
        yield from (word for word in self._iter_candidates(core) if core in word and not word.isascii())

    def similar_words(self, word: str) -> list[str]:
        """Return the words that differ from ``word`` by a typing mistake, the most similar first."""
        if len(word) < _MIN_REPAIRED_CHARS or not word.isalpha():
            return []
        limit = 2 if len(word) >= _MIN_TWO_MISTAKES_CHARS else 1
        grams = {word[at : at + _NGRAM_CHARS] for at in range(len(word) - _NGRAM_CHARS + 1)}
        near = {one for gram in grams for one in self._by_gram.get(gram, ())}
        ranked = sorted((edit_distance(word, one, limit=limit), one) for one in near)
        return [one for distance, one in ranked if distance <= limit][:_MAX_REPAIRS]

    def _iter_candidates(self, part: str) -> Iterator[str]:
        """Iterate over candidates: words with the rarest three characters of the part, or all for a shorter part."""
        yield from self._long
        grams = [part[at : at + _NGRAM_CHARS] for at in range(len(part) - _NGRAM_CHARS + 1)]
        yield from min((self._by_gram.get(gram, []) for gram in grams), key=len) if grams else self._words
