"""Basic functions on texts: normalise, hash, escape, truncate, and recognise addresses, code fences and languages.

``normalise`` and ``hash_text`` are applied to every text that enters Lamella, so equal texts have equal hashes on all
systems. ``canonical_json`` gives equal bytes for equal values. ``iter_lines_with_code_flag`` separates prose from fenced
code, and ``detect_foreign_language`` recognises languages in Latin script by their most frequent small words.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256

from lamella.errors import ArtifactError, TextError

SHORT_HASH_DIGITS = 12

_AMBIGUOUS_AMPERSAND = re.compile(r"&(?=(?:amp|lt|gt|#\d+);)")
_PLAIN_LINE = re.compile(r"[^&<>\x00-\x1f\x7f\x85\u2028\u2029]*")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def normalize_line_ends(text: str) -> str:
    """Turn CRLF into LF and remove a leading byte order mark; nothing else changes."""
    if text.startswith("\ufeff"):
        text = text[1:]
    return text.replace("\r\n", "\n") if "\r\n" in text else text


def hash_text(text: str) -> str:
    """Return the content hash of a text, as ``sha256:`` and 64 hex digits."""
    try:
        # Opening a conversation computes thousands of these, so this line calls no helper.
        return "sha256:" + sha256(text.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise _not_utf8_error(text, error) from error


def hash_bytes(data: bytes) -> str:
    """Return the content hash of bytes, as ``sha256:`` and 64 hex digits."""
    return "sha256:" + sha256(data).hexdigest()


def short_hash(text: str) -> str:
    """Return the first digits of a content hash, enough to keep ids distinct."""
    return sha256(encode_text(text)).hexdigest()[:SHORT_HASH_DIGITS]


class Contents(Mapping[str, bytes]):
    """Contents by their hashes; a text is stored as the text and encoded whenever it is read.

    A store in memory so keeps the text object that the artifact has too, not a second copy as bytes.
    """

    __slots__ = ("stored",)

    def __init__(self, stored: Mapping[str, str | bytes]) -> None:
        self.stored = stored

    def __getitem__(self, name: str) -> bytes:
        content = self.stored[name]
        return encode_text(content) if isinstance(content, str) else content

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)


def unencoded_contents(contents: Mapping[str, bytes]) -> Mapping[str, str | bytes]:
    """Return contents as they are stored: without encoding the texts of ``Contents``."""
    return contents.stored if isinstance(contents, Contents) else contents


def encode_text(text: str) -> bytes:
    """Encode the text as UTF-8, or raise ``TextError`` that names the lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _not_utf8_error(text, error) from error


def _not_utf8_error(text: str, error: UnicodeEncodeError) -> TextError:
    return TextError(
        f"Character {error.start + 1:,} of a text is U+{ord(text[error.start]):04X}, half of a pair.",
        hint="Lone surrogates cannot be sent to any model. Remove it, or write the whole character.",
    )


def canonical_json(value: object) -> str:
    """Serialise as JSON with sorted keys and fixed separators, so that equal values give equal bytes."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            f"A value cannot be written as JSON: {error}.",
            hint="Tool arguments and schemas are made of texts, finite numbers, lists and objects.",
        ) from error


def escape_line(text: str) -> str:
    """Escape a title, path or id so that it fits on one line of a block.

    Angle brackets, control characters and line breaks are escaped. An ampersand is escaped only where it would read as
    one of these escapes, so two different ids never look the same.
    """
    if _PLAIN_LINE.fullmatch(text):
        return text
    text = _AMBIGUOUS_AMPERSAND.sub("&amp;", text)
    return escape_control_characters(text.replace("<", "&lt;").replace(">", "&gt;"))


def escape_control_characters(text: str) -> str:
    """Escape line breaks and other control characters, so that a text stays on one line; all else is unchanged."""
    return _CONTROL_CHARACTER.sub(lambda match: f"&#{ord(match.group())};", text)


# Web addresses: where one ends in a sentence, and which video it shows.

_WEB_SCHEMES = ("http://", "https://")
_TRAILING_PUNCTUATION = ".,;:!?'\u2019\u201d\u00bb>*|"
_OPENING_BRACKET = {")": "(", "]": "[", "}": "{"}
_YOUTUBE_URL = re.compile(
    r"https?://(?:(?:www|m|music)\.)?"
    r"(?:youtu\.be/|(?:youtube|youtube-nocookie)\.com/(?:(?:shorts|live|embed|v)/|watch/?\?(?:[^#\s]*&)?v=))"
    r"([A-Za-z0-9_-]{11})(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)


def is_web_address(text: str) -> bool:
    """Return whether a name is a web address."""
    return any(text[: len(start)].lower() == start and len(text) > len(start) for start in _WEB_SCHEMES)


def trim_url(word: str) -> str:
    """Return an address without the punctuation of the sentence around it.

    A closing bracket stays if the address itself has the opening one.
    """
    while word:
        last = word[-1]
        opener = _OPENING_BRACKET.get(last)
        if last not in _TRAILING_PUNCTUATION and (opener is None or word.count(opener) >= word.count(last)):
            return word
        word = word[:-1]
    return word


def youtube_video_id(url: str) -> str | None:
    """Return the id of the YouTube video that an address shows in any URL form, or None."""
    found = _YOUTUBE_URL.match(url)
    return found[1] if found else None


# Fenced code blocks and inline code.

# More backticks after an opening fence of backticks make it inline code. A closing fence has nothing after it.
_OPENING_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
# Inline code, for use inside another pattern. It ends with exactly as many backticks as it begins with.
INLINE_CODE = r"(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"


def iter_lines_with_code_flag(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line of a Markdown text and whether it belongs to a fenced code block."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            yield line, True
            fence = "" if is_closing_fence(line, fence) else fence
        else:
            fence = opening_fence(line) or ""
            yield line, bool(fence)


def opening_fence(line: str) -> str | None:
    """Return the marker that opens a code fence on this line, or None."""
    mark = _OPENING_FENCE.match(line)
    return mark.group(1) if mark else None


def is_closing_fence(line: str, fence: str) -> bool:
    """Return whether a line closes the fence that the marker ``fence`` opened."""
    mark = _CLOSING_FENCE.match(line)
    return mark is not None and mark.group(1).startswith(fence)


# Language detection.

# A word that two languages share identifies neither, and ``_language_by_word`` leaves it out of both.
# fmt: off
_FUNCTION_WORDS = {
    "English": "the of and to is for that with are this be was were it from by at not but they he she which has have"
    " had will would can been their its you your what when there who how into than then these those",
    "Indonesian": "yang dan dengan untuk ini itu dari pada adalah tidak akan dalam ke oleh sudah telah juga atau karena"
    " ada dapat bisa saat serta lebih sebagai agar kepada antara setelah sebelum tetapi para harus belum secara bahwa"
    " di saya kami kita kamu anda mereka orang hari",
    "German": "der das und ist nicht ein eine einen einem einer mit von zu auf für den dem des sich auch als nach bei"
    " wird wurde werden oder aus sind hat haben durch über unter bleibt im vom zum zur wie"
    " die am ihre sie nur noch kein keine dass wir",
    "Dutch": "het een en van niet dat zijn met voor op te aan er maar om ook werd wordt naar bij heeft hebben deze"
    " worden uit nog wel geen door over zich",
    "French": "le la les des et est un une dans pour que qui sur pas avec ce cette au aux du par plus sont été il elle"
    " nous vous ses leur ont mais ou où",
    "Spanish": "el los las y es una en por con para que no se su al del lo como más pero sus ha fue son este esta"
    " está también desde hasta",
    "Portuguese": "o os as e é um uma em por com para que não se seu sua ao do da dos das no na mais mas foi são este"
    " esta está também pelo pela até",
    "Italian": "il lo gli e è un una in per con che non si su al del della dei delle nel nella più ma ha sono stato"
    " questo questa anche come alla",
    "Turkish": "ve bir bu için ile da de çok daha olarak olan gibi kadar sonra ama değil var ise her en ne mi",
}
# fmt: on
_WORD = re.compile(r"[^\W\d_]+")
# Fewer matching words than this prove nothing. A text in a language has at least this share of its small words.
_MIN_FUNCTION_WORDS, _MIN_FUNCTION_WORD_SHARE = 3, 0.1


def detect_foreign_language(text: str, reference_texts: Iterable[str]) -> str | None:
    """Return the language of a text if none of the texts ``reference_texts`` is in it, or None.

    The result is also None if the language of the text, or of all others, cannot be detected.
    """
    words = _split_words(text)
    best = _count_languages(words).most_common(2)
    if (
        not best
        or best[0][1] < max(_MIN_FUNCTION_WORDS, _MIN_FUNCTION_WORD_SHARE * len(words))
        or (len(best) > 1 and best[0][1] < 2 * best[1][1])
    ):
        return None
    every = [_count_languages(_split_words(one)) for one in reference_texts]
    # If a text has equally many words of two languages, either may be its language.
    theirs = {language for counts in every for language, n in counts.items() if n == max(counts.values())}
    has_enough = any(n >= _MIN_FUNCTION_WORDS for counts in every for n in counts.values())
    return best[0][0] if has_enough and best[0][0] not in theirs else None


def _split_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _count_languages(words: Iterable[str]) -> Counter[str]:
    languages = _language_by_word()
    return Counter(languages[word] for word in words if word in languages)


@cache
def _language_by_word() -> dict[str, str]:
    every = Counter(word for words in _FUNCTION_WORDS.values() for word in words.split())
    return {word: language for language, words in _FUNCTION_WORDS.items() for word in words.split() if every[word] == 1}


# Scripts written without spaces. Words have no visible edges there, so each character counts as a word.

# Thai and Lao, Burmese, Khmer, kana, Han and its extensions, half-width kana. For use inside a character class.
UNSPACED_SCRIPTS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)

# Word boundaries that treat a neighbouring character of these scripts as a separate word.
WORD_STARTS = rf"(?<![^\W{UNSPACED_SCRIPTS}])"
WORD_ENDS = rf"(?![^\W{UNSPACED_SCRIPTS}])"


# Truncate text between words, and derive a conversation's title from its first question.

# Characters of a title: what fits on one line of a list.
_MAX_TITLE_CHARS = 60
_UNSPACED_WORD = re.compile(rf"\S*[{UNSPACED_SCRIPTS}]")


# Reasoning that a server puts into the text of an answer. A block further down is a quotation.
_LEADING_REASONING = re.compile(r"\s{0,64}<(think)>.*?(?:</\1>\s*|\Z)", re.DOTALL)


def strip_reasoning(answer: str) -> str:
    """Return an answer without the ``<think>`` block at its start, which a model must not read as its own words."""
    return answer[match.end() :] if (match := _LEADING_REASONING.match(answer)) else answer


def truncate_words(text: str, max_chars: int) -> str:
    """Return the beginning of a text in at most ``max_chars`` characters, cut between words if possible.

    Scripts without spaces are cut after any character. Otherwise a space before a long run of such a script would drop
    the whole run.
    """
    words = " ".join(text.split())
    if len(words) <= max_chars:
        return words
    before, space, begun = words[: max_chars - 1].rpartition(" ")
    wide = None if "://" in begun else _UNSPACED_WORD.match(begun)
    kept = before + space + wide.group() if wide else words[:max_chars].rpartition(" ")[0] or words[: max_chars - 1]
    return kept.rstrip(".,;:") + "…"


def make_title(question: str) -> str:
    """Return the default title of a conversation: its first question, truncated to one line."""
    return truncate_words(question, _MAX_TITLE_CHARS)
