"""Recognise instructions, quotations and user rules in texts, and outline replies and conversations.

- ``find_injected_instruction`` finds text that tries to instruct the model that reads it, for example in a summary. The
  patterns cover English and Indonesian; for other languages only "you must" and phrases that override earlier
  instructions.
- ``extract_quotes`` finds quoted spans and says whether a quote is attributed to the user.
- ``build_conversation_outline`` and ``outline_reply`` shorten earlier turns without a model.
- ``detect_rules`` finds sentences in which the user says how the model should behave from now on. Text in code fences,
  block quotes or quotation marks is an example or another person's words, so it never counts as a rule.

All of them work by closed lists of patterns and cues.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import Enum, auto
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from lamella.core.text.content import WORD_ENDS, WORD_STARTS, iter_lines_with_code_flag
from lamella.core.text.exact_terms import CODE_SPAN, extract_exact_tokens_cached, rank_exact_strings
from lamella.core.text.outline import iter_headings

# An instruction begins a line, a sentence or a clause. In a report of one, the speaker comes before it.
_LEAD_IN = (
    r"(?:(?:as\s+a\s+|friendly\s+)?reminder|remember|important|note|nb|n\.b\.|attention|warning|urgent|caution|please|now|next"
    r"|then|also|first|finally|instead|going\s+forward|in\s+future|penting|catatan|ingat|perhatian|tolong|harap|mohon"
    r"|selanjutnya|lalu|sekarang)"
)
_SENTENCE_START = (
    r"(?:^|[.!?;\u2026|]\s++|[\u2013\u2014]\s*+|,\s++(?:and|but|so|dan|jadi)\s++|<!--\s*+|\]\s++)"
    r"[ \t>#]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t*_]*+)?+(?:\[[ xX]?\][ \t*_]*+)?+"
    rf"(?:{_LEAD_IN}[*_]*+[,:!.\u2013\u2014-]*+\s*+[*_]*+\s*+){{0,3}}"
)
_EARLIER_WORDS = r"(?:earlier|previous|prior|above|preceding|former|system|your|sebelumnya|di atas)"
_INSTRUCTION_NOUNS = (
    r"(?:instructions?|rules?|prompts?|messages?|guidelines?|orders?|context|instruksi|aturan|perintah|pesan)"
)
_DUTY_VERBS = (
    r"(?:must|should|shall|will|may|need\s+to|have\s+to|ought\s+to|are\s+(?:now|allowed|required|free|told|to\b|no\s+longer)"
    r"|(?:can|may)\s+(?:now|ignore|disregard|forget)|have\s+no\s+(?:restrictions?|limits?|rules?)"
    r"|harus|wajib|sekarang|boleh|diminta|diwajibkan|perlu)"
)
_ACTION_VERBS = (
    r"(?:answer|reply|respond|say|tell|reveal|mention|disclose|share|obey|follow|trust|use|call|run|delete|send|ask|include"
    r"|jawab|katakan|gunakan|kirim|hapus|sebut|beri\s*tahu|balas|ikuti|turuti|percaya|ungkap)"
)
_MODEL_NOUNS = r"(?:assistant|model|reader|ai|chatbot|bot|asisten)"
# Verbs for "ignore", and nouns for "instructions", in German, Dutch, French, Spanish, Portuguese and Italian.
_FOREIGN_IGNORE_VERBS = (
    r"(?:ignorier\w*|missacht\w*|vergiss|vergesst|vergessen\s+sie|negeer|vergeet|ignorez|ignore[rs]?|oublie[zr]?|ignora[dr]?"
    r"|olvid[ae]\w*|esque[cç]a\w*|desconsider\w*|ignori|dimentic\w*)"
)
_FOREIGN_INSTRUCTION_NOUNS = (
    r"(?:anweisung\w*|anleitung\w*|instructies?|instructions?|consignes?|instruccion\w*|instru[cç][oõ]es|istruzion\w*"
    r"|regeln?|regels|r[eè]gles?|reglas?|regras?|regole)"
)
# The same in Russian, Turkish, Arabic, Chinese and Japanese, which have their own word order.
_FOREIGN_IGNORE_PHRASES = (
    r"(?:игнорируй\w*|проигнорируй\w*|забудь\w*)[^.\n]{0,40}(?:инструкци|указани|правил)\w*"
    r"|\b(?:talimat|kural|yönerge)\w*[^.\n]{0,30}\b(?:yok\s+say|unut|görmezden|dikkate\s+alma)\w*"
    r"|(?:تجاهل|انس)[^.\n]{0,40}(?:التعليمات|تعليمات|الأوامر|القواعد)"
    r"|(?:忽略|无视|無視|忽視|忘记|忘記)[^。\n]{0,20}(?:指示|指令|说明|說明|规则|規則|提示)"
    r"|(?:指示|命令|ルール|規則)[^。\n]{0,20}(?:無視|忘れ)"
)
# German verbs that give an order. German list items that describe something begin with a noun.
_GERMAN_IMPERATIVES = (
    "antworte|antworten\\s+sie|befolge|beginne|gib|ignoriere|l[oö]sche|missachte|nenne|nutze|sage?|schicke|schreibe|sende"
    "|tu|verrate|vergiss|verwende|vertraue"
)
_INJECTION_PATTERNS = (
    rf"\b(?:ignore|disregard|forget|override|bypass|discard)\s+(?:all\s+|any\s+|every\s+)?(?:of\s+)?(?:the\s+|your\s+|those\s+)?"
    rf"(?:{_EARLIER_WORDS}\s+)+{_INSTRUCTION_NOUNS}",
    rf"\b(?:ignore|disregard|forget|override|bypass|discard|drop|abandon)\s+(?:all\s+|any\s+)?(?:the\s+|your\s+|those\s+)?{_INSTRUCTION_NOUNS}"
    r"\s+(?:above|before|so\s+far|until\s+now|given\s+(?:above|before|earlier))\b",
    rf"\b(?:drop|abandon|set\s+aside|throw\s+out)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:{_EARLIER_WORDS}\s+)+{_INSTRUCTION_NOUNS}",
    _FOREIGN_IGNORE_PHRASES,
    rf"{_SENTENCE_START}(?:bitte\s+)?(?:{_GERMAN_IMPERATIVES})\b",
    # A polite request addresses the reader, which a report does not.
    rf"{_SENTENCE_START}(?:please|kindly|bitte|por\s+favor|per\s+favore|s['\u2019]il\s+(?:vous|te)\s+pla[iî]t|tolong|harap|mohon(?!\s+maaf))"
    r",?\s+\w",
    rf"{_SENTENCE_START}let(?:['\u2019]s|\s+us)\s",
    rf"\b(?:abaikan|lupakan|hiraukan)\s+(?:semua\s+|seluruh\s+)?{_INSTRUCTION_NOUNS}",
    rf"{_SENTENCE_START}{_FOREIGN_IGNORE_VERBS}\b[^.\n]{{0,40}}\b{_FOREIGN_INSTRUCTION_NOUNS}\b",
    rf"\b(?:{_EARLIER_WORDS})\s+{_INSTRUCTION_NOUNS}\s+(?:(?:is|are|were)\s+(?:now\s+)?(?:void|invalid|cancell?ed|revoked|lifted|obsolete|off)|(?:do|does)"
    r"\s+not\s+(?:apply|count|hold)|don['\u2019]t\s+(?:apply|count|hold)|no\s+longer\s+(?:apply|count|hold)|no\s+longer\s+applies)",
    rf"{_SENTENCE_START}(?:(?:dear\s+)?{_MODEL_NOUNS}\s*[,:]\s*)?(?:ignore|disregard|forget|override|bypass|abaikan|lupakan|hiraukan)\b",
    rf"{_SENTENCE_START}(?:you|kamu|anda)\s+{_DUTY_VERBS}\b",
    rf"{_SENTENCE_START}(?:du\s+(?:musst|sollst)|sie\s+m[uü]ssen|je\s+moet|u\s+moet|tu\s+dois|vous\s+devez|debes|debe\s+usted|tienes\s+que"
    r"|voc[eê]\s+deve|devi|deve)\b",
    r"\b(?:imperative|essential|crucial|vital|required|important|mandatory|necessary)\s+(?:that|for)\s+you\b",
    rf"{_SENTENCE_START}your\s+(?:new\s+|only\s+|next\s+|real\s+)?(?:task|job|role|goal|mission|duty|persona)\s+(?:is\s+(?:now|to)|will\s+be|now)\b",
    r"\bit\s+is\s+(?:now\s+)?your\s+(?:task|job|role|duty)\b|\btugas(?:mu|\s+anda|\s+kamu)\s+(?:adalah|sekarang)\b",
    rf"{_SENTENCE_START}(?:from\s+(?:now|here|this\s+point)\s+on(?:wards?)?|henceforth|mulai\s+sekarang|mulai\s+dari\s+sekarang)\b",
    # "Never" with a past form reports what did not happen, so it is excluded.
    rf"{_SENTENCE_START}(?:always|never)\s+(?!(?:the|an?|in|on|so|\w+(?:ed|en|n|t|s))\b)[a-z]{{2,}}\b",
    rf"{_SENTENCE_START}(?:trust\s|stop\s+\w+ing\b)|\bnote\s+to\s+(?:the\s+)?{_MODEL_NOUNS}\b",
    rf"{_SENTENCE_START}(?:always|never|do\s+not|don['\u2019]t|only|selalu|jangan(?:\s+pernah)?)\s+{_ACTION_VERBS}\w*\b",
    rf"{_SENTENCE_START}going\s+forward,?\s+{_ACTION_VERBS}\b|{_SENTENCE_START}(?:make\s+sure\s+(?:to|that\s+you|you)|be\s+sure\s+to|ensure\s+(?:that\s+)?you)\b",
    rf"{_SENTENCE_START}(?:harap|mohon|tolong)\s+{_ACTION_VERBS}\w*\b|{_SENTENCE_START}(?:kirimkan|hapuslah|jawablah|katakanlah|gunakanlah|ikutilah|turuti)\b",
    rf"{_SENTENCE_START}(?:reveal|pretend|act\s+as|obey|execute|(?:respond|answer|reply)\s+only|send\s+the|delete\s+(?:all|every|the))\b",
    rf"{_SENTENCE_START}(?:send|delete|remove|erase|wipe|drop|run|call|pay|transfer|e?mail|forward)\s[^.\n]{{1,60}}\b(?:now|immediately|at\s+once|right\s+away)\b",
    rf"{_SENTENCE_START}(?:treat|consider|regard)\s+[^.\n]{{1,60}}\b(?:as\s+(?:an?\s+|the\s+)?(?:admin\w*|user|owner|system|trusted)|void|invalid)\b",
    rf"{_SENTENCE_START}(?:system|developer)[*_]*\s*:|^[ \t]*assistant\s*:|^[ \t]*#+\s*(?:system|instructions?)\b",
    r"^[ \t]*[-*+•][ \t]+assistant\s*:\s*you\b",
    r"\b(?:new|updated)\s+(?:system\s+)?(?:instructions?|prompt)\s*:",
    r"<\|?(?:im_start|system|/?instructions?)\b|\[/?INST\]|<!--",
    # "The model must be trained" speaks about a model and gives it no instruction.
    rf"\b(?:the|next)\s+(?:next\s+)?{_MODEL_NOUNS}\s+(?:must|should|shall|has\s+to|needs\s+to|is\s+to|is\s+(?:now\s+)?(?:required|allowed|free)"
    r"|harus|wajib)\b(?!\s+be\s+\w+(?:ed|t|n)\b)|\basisten\s+(?:harus|wajib)\b",
)
# Spaced letters ("i g n o r e") are joined to the word that they spell.
_SPACED_LETTERS = re.compile(r"(?<!\w)(?:[^\W\d_] ){3,}[^\W\d_](?!\w)")
_SENTENCE_REST = re.compile(r"[^.!?\n]*")


def find_injected_instruction(text: str) -> str | None:
    """Return the first text that tries to instruct its reader, to the end of its sentence on one line, or None."""
    joined = _SPACED_LETTERS.sub(lambda match: match[0].replace(" ", ""), text)
    found = _injection_pattern().search(joined)
    if found is None:
        return None
    sentence = _SENTENCE_REST.match(joined, found.end())
    instruction = joined[found.start() : found.end() if sentence is None else sentence.end()]
    return " ".join(instruction.split()).lstrip(".!?;:,>|-\u2013\u2014\u2026 ")


@cache
def _injection_pattern() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(_INJECTION_PATTERNS)})", re.IGNORECASE | re.MULTILINE)


# Quotations: text in quotation marks or after ``>``, and whether it is attributed to the user.

_Span = tuple[int, int]

# Opening marks and the marks that close them. Some marks do both: German quotes end with the mark that opens English
# ones.
_CLOSING_MARKS = {
    "“": "”",
    "„": "“”",
    "”": "”",
    "«": "»",
    "»": "«»",
    "「": "」",
    "『": "』",
    "❝": "❞",
    "〝": "〞〟",
    "\uff02": "\uff02",
    "\u2018": "\u2019",
    "\u201a": "\u2018\u2019",
    "\u2039": "\u203a",
    "\u203a": "\u2039\u203a",
    "《": "》",
    "〈": "〉",
    "❛": "❜",
}

_CURVED_MARK = re.compile("[“”„«»「」『』❝❞〝〞〟\uff02\u2018\u2019\u201a\u2039\u203a《》〈〉❛❜]")
# A straight single mark opens a quote only if no letter is before it. Elsewhere it is an apostrophe.
_SINGLE_QUOTED_TEXT = re.compile(r"(?<![\w'])'(?=[^\s'])([^'\n]{1,300})(?<=[^\s'])'(?![\w'])")

# A straight double mark opens before a word and closes after one. The inch sign of 5" does neither.
_STRAIGHT_MARK = re.compile('"')
_OPENING_STRAIGHT_MARK = re.compile(rf'{WORD_STARTS}"(?=\S)')
_CLOSING_STRAIGHT_MARK = re.compile(rf'(?<=\S)"{WORD_ENDS}')
_QUOTE_PADDING = ' \t"“”„«»「」『』'
_QUOTED_LINE = re.compile(r"^ {0,3}>+ (.*)$", re.MULTILINE)

# Marks that look like those above, and marks from markup.
_DOUBLE_MARKS, _SINGLE_MARKS = (
    "“”„\u201f«»❝❞〝〞〟\uff02\u2033\u2036\u276e\u276f「」『』《》〈〉｢｣﹁﹂﹃﹄\u2e42\u275f\u2760\u02dd\U0001f676\U0001f677\U0001f678",
    "\u2018\u2019\u201a\u201b\u2039\u203a❛❜\u00b4`\uff07\u2032\u2035",
)
# Editorial brackets, which Unicode classifies as opening and closing quotation marks.
_EDITORIAL_BRACKETS = "".join(
    map(chr, (*range(0x2E02, 0x2E06), 0x2E09, 0x2E0A, 0x2E0C, 0x2E0D, 0x2E1C, 0x2E1D, 0x2E20, 0x2E21))
)
_STRAIGHTEN_TABLE = str.maketrans(
    {**dict.fromkeys(_DOUBLE_MARKS + _EDITORIAL_BRACKETS, '"'), **dict.fromkeys(_SINGLE_MARKS, "'")}
)
_QUOTE_ENTITY = re.compile("&(?:quot|[lrb]dquo|[lr]aquo|#0*34|#x0*22);|</?q>|<<(?=\\w)|(?<=[\\w.!?])>>", re.IGNORECASE)
_DOUBLED_MARKS = re.compile("'{2,}|\"{2,}")
_FENCE_LINE = re.compile("[ \\t]*(?:`{3,}|~{3,})[^`]{0,20}")

# The mask character that replaces one quote in a masked text.
_QUOTE_MASK = "\0"
_LIST_ITEM_OR_BLANK = re.compile(r"[ \t]*(?:[-*+>•]|\d{1,9}[.)])(?:[ \t]|$)|[ \t]*$")

_ONLY_ONE_QUOTE = re.compile(rf"[\W_]*{_QUOTE_MASK}[\W_]*")

# The second full stop of an abbreviation such as "e.g." does not end a sentence.
_SENTENCE_END_PATTERN = r"(?:(?<!\.\w)\.|[!?…])[*_)]*(?=\s|$)|[。\uff01\uff1f]"
_SPOKEN_TO_WORDS = "told|informed|reminded|advised|warned|promised|showed|shown|given|gave|offered|answered|to|for|with"
_INDONESIAN_SPOKEN_TO_WORDS = (
    "memberi ?tahu|menjawab|meminta|menanyai|mengingatkan|menawarkan|menyarankan|kepada|untuk|bagi"
)
_USER_COMPOUND_NOUNS = r"interface|guides?|manual|stor(?:y|ies)|ids?|names?|agents?|experience|accounts?|tables?"

# The user is not the speaker if someone speaks to the user, or in phrases such as "user interface".
_SPEAKER_EVENT = re.compile(
    rf"(?P<quoted>{_QUOTE_MASK})|(?P<ends>{_SENTENCE_END_PATTERN})|(?P<asked>\basked (?:the )?users?\b)"
    rf"|(?P<other>\b(?:assistant|model|asisten)\b|\busers? (?:{_USER_COMPOUND_NOUNS})\b"
    rf"|(?<!according )\b(?:{_SPOKEN_TO_WORDS}) (?:the )?users?\b|\b(?:{_INDONESIAN_SPOKEN_TO_WORDS}) pengguna\b"
    rf"|\busers? (?:was|were|has been|have been) (?:asked|{_SPOKEN_TO_WORDS})\b)"
    r"|(?P<user>\b(?:users?|humans?|customers?|pengguna|pelanggan)\b)",
    re.IGNORECASE,
)


# Quotes that are nested deeper than this count as part of the quote around them.
_MAX_QUOTE_DEPTH = 8


class Quote(NamedTuple):
    """A quoted span of a text; ``by_user`` if its sentence names the user as the speaker."""

    text: str
    by_user: bool


class _QuoteAttribution:
    """Attributes quotes to speakers while a text is read.

    The speaker is the one named last before a quote, else the one named first after it in its sentence, else the one
    named in the line that introduces its list. ``verdicts`` has one entry per quote: whether the user is the speaker.
    """

    def __init__(self) -> None:
        self.verdicts: list[bool] = []
        self.last_speaker_is_user: bool | None = None
        self.unattributed_quotes = 0
        self.introduced_by_user = False

    def handle_event(self, event: str | None) -> None:
        match event:
            case "quoted":
                self.unattributed_quotes += 1
                if self.last_speaker_is_user is not None:
                    self._resolve(by_user=self.last_speaker_is_user)
            case "ends":
                self.finish_sentence()
            case _:
                # In `"…" asked the user` the user is the speaker of the quote before. In `asked the user "…"` the user
                # is not the speaker of the quote after.
                self._resolve(by_user=event != "other")
                self.last_speaker_is_user = event == "user"

    def finish_sentence(self) -> None:
        self._resolve(by_user=self.introduced_by_user)
        self.last_speaker_is_user = None

    def resolve_introduced(self) -> None:
        self._resolve(by_user=True)

    def _resolve(self, *, by_user: bool) -> None:
        self.verdicts += [by_user] * self.unattributed_quotes
        self.unattributed_quotes = 0


def extract_quotes(text: str) -> tuple[Quote, ...]:
    """Return every span in quotation marks of any kind or backticks, and every line after ``>``, in order."""
    spans = quote_spans(text)
    if not spans:
        return ()
    outer = _merge_spans(spans)
    # Quotes inside other quotes share the attribution of the outermost one.
    verdicts = iter(zip(outer, _attribute_quotes(_mask_spans(text, outer)), strict=True))
    found: list[Quote] = []
    reached, by_user = -1, False
    for start, end in spans:
        if start >= reached:
            (_, reached), by_user = next(verdicts)
        found.append(Quote(text=text[start:end], by_user=by_user))
    return tuple(found)


def mask_quotations(text: str, *, should_mask: Callable[[str], bool]) -> str:
    """Return the text with those quotes blanked out for which ``should_mask`` is true.

    Other quotes stay, without their quotation marks.
    """
    spans = quote_spans(text)
    hidden = [one for one in spans if should_mask(text[slice(*one)])]
    marks = {at for start, end in spans for at in (start - 1, end)}
    covered = {at for start, end in hidden for at in range(start, end)}
    return "".join("" if at in marks else "\0" if at in covered else one for at, one in enumerate(text))


def normalize_quotes(text: str) -> str:
    """Replace every double mark with ``"`` and every single mark with ``'``, so that any mark closes any quote.

    A quote that is not closed ends at the end of its line.
    """
    return "\n".join(line if _FENCE_LINE.fullmatch(line) else _straighten_line(line) for line in text.split("\n"))


def _straighten_line(line: str) -> str:
    plain = _DOUBLED_MARKS.sub('"', _QUOTE_ENTITY.sub('"', line).translate(_STRAIGHTEN_TABLE))
    return f'{plain}"' if plain.count('"') % 2 and _OPENING_STRAIGHT_MARK.match(plain, plain.rfind('"')) else plain


def quote_spans(text: str) -> list[_Span]:
    """Return the start and end of each quote without its marks, in order; quotes may be nested."""
    marked = {match.span(1) for match in _SINGLE_QUOTED_TEXT.finditer(text)} | {
        m.span(2) for m in CODE_SPAN.finditer(text)
    }
    every = {*_curved_quote_spans(text), *_straight_quote_spans(text), *_quoted_line_spans(text), *marked}
    return sorted(span for span in every if span[0] < span[1])


def _quoted_line_spans(text: str) -> Iterator[_Span]:
    """Yield the lines after ``>``, without quotation marks around them."""
    for match in _QUOTED_LINE.finditer(text):
        start = match.start(1) + len(match[1]) - len(match[1].lstrip(_QUOTE_PADDING))
        yield start, max(start, match.start(1) + len(match[1].rstrip(_QUOTE_PADDING)))


def _curved_quote_spans(text: str) -> Iterator[_Span]:
    open_marks: list[tuple[str, int]] = []
    for match in _CURVED_MARK.finditer(text):
        if open_marks and match[0] in _CLOSING_MARKS[open_marks[-1][0]]:
            start = open_marks.pop()[1]
            # Each level repeats the text of all levels inside it.
            if len(open_marks) < _MAX_QUOTE_DEPTH:
                yield start, match.start()
        elif match[0] in _CLOSING_MARKS:
            open_marks.append((match[0], match.end()))


def _straight_quote_spans(text: str) -> Iterator[_Span]:
    for mark, following in pairwise(match.start() for match in _STRAIGHT_MARK.finditer(text)):
        if (
            _OPENING_STRAIGHT_MARK.match(text, mark)
            and _CLOSING_STRAIGHT_MARK.match(text, following)
            and "\n\n" not in text[mark:following]
        ):
            yield mark + 1, following


def _merge_spans(spans: Sequence[_Span]) -> list[_Span]:
    """Merge nested and overlapping spans."""
    merged: list[_Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _mask_spans(text: str, spans: Sequence[_Span]) -> str:
    """Return the text with one mask character for each quote.

    A sentence that ends inside its quote gets its full stop after the mask.
    """
    pieces: list[str] = []
    reached = 0
    for start, end in spans:
        ends_sentence = (
            text[end - 1] in ".!?" and text[end + 1 : end + 2].isspace() and text[end + 2 : end + 3].isupper()
        )
        pieces += (text[reached:start].replace(_QUOTE_MASK, " "), _QUOTE_MASK, "." if ends_sentence else "")
        reached = end + ends_sentence
    return "".join([*pieces, text[reached:].replace(_QUOTE_MASK, " ")])


class _IntroductionState(Enum):
    """The position of a line relative to a line that introduces others, such as one that ends with a colon.

    ``INDEPENDENT`` is independent text, ``AFTER_INTRODUCTION`` directly after the introducing line, ``INTRODUCED``
    among the introduced lines, and ``AFTER_BLANK_LINE`` after an empty line there.
    """

    INDEPENDENT = auto()
    AFTER_INTRODUCTION = auto()
    INTRODUCED = auto()
    AFTER_BLANK_LINE = auto()


def _attribute_quotes(text: str) -> list[bool]:
    """Return for each mask character whether the text attributes the quote to the user."""
    reading = _QuoteAttribution()
    by_user, state = False, _IntroductionState.INDEPENDENT
    for line in text.split("\n"):
        listed = _LIST_ITEM_OR_BLANK.match(line) is not None
        is_continued = listed or _continues_introduction(line, state)
        if listed or line.startswith("#"):
            reading.finish_sentence()
        elif reading.introduced_by_user:
            # A speaker named in this line did not say the quotes of the list before, so decide those first.
            reading.resolve_introduced()
        reading.introduced_by_user = is_continued and by_user
        last: str | None = None
        for event in _SPEAKER_EVENT.finditer(line):
            reading.handle_event(event.lastgroup)
            last = last if event.lastgroup in ("quoted", "ends") else event.lastgroup
        leads = not listed and (line.rstrip(" *_").endswith(":") or line.startswith("#"))
        by_user = last == "user" if leads else is_continued and by_user
        state = (
            _IntroductionState.AFTER_INTRODUCTION
            if leads
            else _next_introduction_state(line, state, continues=is_continued)
        )
    reading.finish_sentence()
    return reading.verdicts


def _continues_introduction(line: str, state: _IntroductionState) -> bool:
    """Return whether a line belongs to the introducing line; after an empty line most lines do not."""
    if state is _IntroductionState.AFTER_BLANK_LINE:
        return line.startswith((" ", "\t")) or _ONLY_ONE_QUOTE.fullmatch(line) is not None
    return state is not _IntroductionState.INDEPENDENT and not line.startswith("#")


def _next_introduction_state(line: str, state: _IntroductionState, *, continues: bool) -> _IntroductionState:
    """Return the state for the line after one that introduces nothing itself."""
    if not continues:
        return _IntroductionState.INDEPENDENT
    if line.strip():
        return _IntroductionState.INTRODUCED
    # An empty line may separate an introducing line from its paragraph or list.
    return _IntroductionState.AFTER_BLANK_LINE if state is _IntroductionState.INTRODUCED else state


# Outlines of earlier turns, used if there is no summary of them, and outlines of single replies.

# Tried in order until the newest turn fits: 160 Chinese characters may take as many tokens as the whole cap allows.
_LINE_WIDTHS = (160, 80, 40, 20)

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_MARKUP = re.compile(r"[ \t]*(?:(?:[#>*+-]+|\d{1,9}[.)])[ \t]+)*")
# The second full stop of an abbreviation such as "e.g." does not end a sentence.
_SENTENCE_END = re.compile(r"(?:(?<!\.\w)\.|[!?…])[\"'”\u2019)*_]*(?=\s|$)|[。\uff01\uff1f]")


def build_conversation_outline(
    turns: Sequence[tuple[str, str]], *, max_tokens: int, count: Callable[[str], int]
) -> str:
    """Return one line per turn of question and reply, in order, for the newest turns that fit ``max_tokens`` tokens.

    The first line counts the earlier turns that do not fit. The result is empty if not even that line fits.
    """
    kept: list[str] = []
    for width in _LINE_WIDTHS:
        kept = _newest_lines_that_fit(turns, width=width, max_tokens=max_tokens, count=count)
        if kept:
            break
    outline = _render_outline(kept, len(turns) - len(kept))
    return outline if count(outline) <= max_tokens else ""


def _newest_lines_that_fit(
    turns: Sequence[tuple[str, str]], *, width: int, max_tokens: int, count: Callable[[str], int]
) -> list[str]:
    kept: list[str] = []
    remaining = max_tokens
    for typed, reply in reversed(turns):
        line = f"- Asked: {clip(typed, width)} Answered: {clip(first_sentence(reply), width)}"
        remaining -= count(f"{line}\n")
        if remaining < 0:
            break
        kept.insert(0, line)
    while kept and count(_render_outline(kept, len(turns) - len(kept))) > max_tokens:
        del kept[0]
    return kept


def _render_outline(kept: Sequence[str], left_out: int) -> str:
    if not left_out:
        return "\n".join(kept)
    turns = "1 earlier turn is" if left_out == 1 else f"{left_out:,} earlier turns are"
    return "\n".join([f"[{turns} left out.]", *kept])


def first_sentence(reply: str) -> str:
    """Return the first sentence of the first paragraph that is neither code nor a heading.

    Without such a paragraph it returns the first heading.
    """
    paragraph = " ".join(_first_paragraph(reply))
    if not paragraph:
        headings = (line for line, is_code in iter_lines_with_code_flag(reply) if not is_code and _HEADING.match(line))
        return _MARKUP.sub("", next(headings, "(code)" if reply.strip() else ""), count=1)
    end = _SENTENCE_END.search(paragraph)
    return paragraph[: end.end()] if end else paragraph


def _first_paragraph(reply: str) -> Iterator[str]:
    begun = False
    for line, is_code in iter_lines_with_code_flag(reply):
        text = "" if is_code or _HEADING.match(line) else _MARKUP.sub("", line, count=1).strip()
        if text:
            yield text
        elif begun:
            return
        begun = begun or bool(text)


def clip(text: str, width: int) -> str:
    """Return the text on one line, cut at a space if it is longer than ``width`` characters."""
    words = text.split(maxsplit=width)
    line = " ".join(words[:width]) or "(nothing)"
    if len(line) <= width and len(words) <= width:
        return line
    cut = line[:width]
    space = cut.rfind(" ")
    return (cut[:space] if space > width // 2 else cut).rstrip() + " …"


_MAX_SENTENCE_CHARS = 140
# Maximum characters of each list. Together they keep an outline below a hundred tokens. Measured with
# `python -m bench evidence`: longer outlines leave space for fewer of them, and lose more than they keep.
_MAX_HEADINGS_CHARS, _MAX_DEFINITIONS_CHARS, _MAX_EXACT_CHARS = 120, 100, 120
# An outline that is hardly shorter than its reply is not worth a changed prefix.
_MAX_OUTLINE_SHARE = 0.6
# Extracting exact tokens from more of a reply would take longer than everything else in a plan.
_MAX_READ_CHARS = 12_000

# Definitions in the programming languages that people paste most. The defined name is kept.
_DEFINITION_LINE = re.compile(
    r"\s*(?:export\s+)?(?:default\s+)?(?:public\s+|private\s+|protected\s+|static\s+|pub\s+|abstract\s+|async\s+)*"
    r"(?:def|class|function|fn|func|interface|struct|enum|trait|type|module|const|let|var|val"
    r"|create\s+(?:or\s+replace\s+)?(?:table|view|index|function))\s+"
    r"(?:if\s+not\s+exists\s+)?(?:\([^()\n]{0,80}\)\s*)?([A-Za-z_$][\w$.]{0,80})",
    re.IGNORECASE,
)


# The first characters of every outline.
OUTLINE_OPENING = "[Outline"


@lru_cache(maxsize=1 << 12)
def outline_reply(text: str, turn_number: int, gist: str | None = None, *, names_recall: bool) -> str | None:
    """Return the outline of a reply, or None if it would not be much shorter than the reply.

    It has the turn number, the first sentence, the headings, the names that its code defines and the exact tokens. It
    depends on nothing else, so it is the same for every model. A caller that knows the ``gist`` passes it to avoid
    computing it again.
    """
    title = (
        f"{OUTLINE_OPENING}; recall turn {turn_number}.]"
        if names_recall
        else f"{OUTLINE_OPENING} of turn {turn_number}.]"
    )
    if len(text) * _MAX_OUTLINE_SHARE < len(title):
        return None
    outline = f"{title}\n{reply_gist(text) if gist is None else gist}"
    return outline if len(outline) <= len(text) * _MAX_OUTLINE_SHARE else None


@lru_cache(maxsize=1 << 12)
def reply_gist(text: str) -> str:
    """Return the part of an outline that does not depend on the turn number."""
    sentence = clip(first_sentence(text), _MAX_SENTENCE_CHARS)
    headings = (words for _, _, words in iter_headings(text)) if "#" in text else ()
    defined = _iter_names_defined_in_code(text) if "```" in text or "~~~" in text else ()
    exact = [
        token
        for token in rank_exact_strings(Counter(extract_exact_tokens_cached(text[:_MAX_READ_CHARS])))
        if token not in sentence
    ]
    lines = [
        sentence,
        _join_items("Headings", headings, _MAX_HEADINGS_CHARS) if headings else "",
        _join_items("Its code defines", defined, _MAX_DEFINITIONS_CHARS) if defined else "",
        _join_items("Exact", exact, _MAX_EXACT_CHARS) if exact else "",
    ]
    return "\n".join(line for line in lines if line)


# The head of a shortened reply gets this share of its characters, the tail gets the rest.
_HEAD_SHARE = 0.7
# How often a shortened reply is made smaller until it fits.
_MAX_SHORTENINGS = 12


def shorten_to_ends(
    text: str, turn_number: int, *, max_tokens: int, count: Callable[[str], int], names_recall: bool
) -> str | None:
    """Return the head and the tail of a reply within ``max_tokens`` tokens, or None if it cannot be made to fit.

    Both ends are cut at line breaks where there are some, and a code fence that the cut leaves open is closed.
    """
    tokens = count(text)
    if tokens <= max_tokens:
        return None
    chars = int(len(text) * max_tokens / tokens)
    for _ in range(_MAX_SHORTENINGS):
        chars = int(chars * 0.95)
        if chars < 1:
            return None
        head, tail = _cut_head(text, int(chars * _HEAD_SHARE)), _cut_tail(text, chars - int(chars * _HEAD_SHARE))
        left_out = len(text) - len(head) - len(tail)
        fence = "\n```" if head.count("```") % 2 else ""
        again = "```\n" if tail.count("```") % 2 else ""
        more = "; recall" if names_recall else " of"
        shorter = f"{head}{fence}\n[… {left_out:,} characters left out{more} turn {turn_number}.]\n{again}{tail}"
        if count(shorter) <= max_tokens:
            return shorter
    return None


def _cut_head(text: str, chars: int) -> str:
    cut = text.rfind("\n", chars // 2, chars)
    return text[: cut if cut > 0 else chars].rstrip()


def _cut_tail(text: str, chars: int) -> str:
    start = len(text) - chars
    cut = text.find("\n", start, start + chars // 2)
    return text[cut + 1 if cut >= 0 else start :].lstrip()


@lru_cache(maxsize=1 << 12)
def stub_reply(turn_number: int, *, names_recall: bool) -> str:
    """Return the single line that replaces the reply of a turn."""
    return f"[Left out; recall turn {turn_number}.]" if names_recall else f"[Left out: turn {turn_number}.]"


def _iter_names_defined_in_code(text: str) -> Iterator[str]:
    for line, is_code in iter_lines_with_code_flag(text):
        found = _DEFINITION_LINE.match(line) if is_code else None
        if found is not None:
            yield found[1]


def _join_items(title: str, items: Iterable[str], max_chars: int) -> str:
    """Return as many items as fit, without duplicates and on one line, and how many more there are."""
    every = list(dict.fromkeys(" ".join(item.split()) for item in items))
    shown: list[str] = []
    for item in every:
        if item and len(item) + 2 <= max_chars:
            shown.append(item)
            max_chars -= len(item) + 2
    more = len(every) - len(shown)
    if not shown:
        return ""
    return f"{title}: {'; '.join(shown)}{f'; and {more:,} more' if more else ''}"


# Cues of user rules, English, then Indonesian. A cue is a sequence of words and matches whole words only.
RULE_CUES: frozenset[str] = frozenset(
    {
        # Times and frequencies
        "always", "never", "from now on", "from here on", "from here on out", "from this point on", "from today on",
        "from this point forward", "starting now", "starting today", "as of now", "as of today", "going forward",
        "moving forward", "in future", "in the future", "for the future", "for future", "next time", "henceforth",
        "whenever", "every time", "each time", "any time", "anytime", "when i ask", "if i ask", "when i say",
        "if i say", "when you answer", "when answering", "as a rule", "by default", "at all times", "without exception",
        "for the rest of", "until further notice", "until i say", "until i tell you", "unless i",
        "in every answer", "in every reply", "in every response", "in all answers", "in all replies",
        "in all responses", "in your answers", "in your replies", "in your responses", "your answers should",
        "your replies should", "your responses should", "every answer", "every reply", "every response",
        # Preferences
        "i prefer", "i'd prefer", "i would prefer", "i strongly prefer", "i generally prefer", "i usually prefer",
        "i really prefer", "i much prefer", "we prefer", "we'd prefer", "we would prefer", "i'd rather",
        "i would rather", "i'd much rather", "i would much rather", "rather than", "instead of", "my preference",
        "my preferred", "i like", "i don't like", "i do not like", "i dislike", "i hate", "i love", "i enjoy",
        "i can't stand", "i cannot stand", "i tend to", "i lean towards", "i favor", "i favour", "my favorite",
        "my favourite", "i'm more comfortable", "i am more comfortable", "i'm allergic", "i am allergic",
        "i don't eat", "i do not eat", "i don't drink", "i do not drink", "i avoid", "i'm not a fan of",
        "i am not a fan of",
        # Things to remember and to do
        "please remember", "remember:", "remember that", "remember to", "remember this", "keep in mind",
        "bear in mind", "don't forget", "do not forget", "make sure", "be sure to", "make it a habit",
        "i want you to", "i'd like you to", "i would like you to", "i need you to", "i expect you to",
        "please avoid", "avoid", "do not ever", "don't ever", "please don't", "please do not", "do not use",
        "don't use", "only use", "use only", "please stop", "stop using", "stick to", "stick with", "no longer",
        "at most", "keep your answers", "keep your replies", "keep your responses", "keep answers", "keep replies",
        "keep responses", "please keep", "answer in", "reply in", "respond in", "answer me in", "call me",
        "address me", "refer to me", "all future", "future answers", "future replies", "future responses",
        # Spellings without an apostrophe, and abbreviations
        "dont use", "dont ever", "please dont", "dont forget", "i dont like", "i dont eat", "mulai skrg",
        # Indonesian
        "selalu", "jangan", "jangan pernah", "mulai sekarang", "mulai dari sekarang", "mulai hari ini",
        "mulai saat ini", "mulai besok", "sejak sekarang", "seterusnya", "untuk selanjutnya", "ke depannya",
        "setiap kali", "tiap kali", "setiap", "kapan pun", "kapanpun", "kalau saya tanya", "jika saya tanya",
        "kalau saya bertanya", "jika saya bertanya", "ketika saya bertanya", "tanpa kecuali",
        "saya lebih suka", "aku lebih suka", "lebih suka", "lebih senang", "saya suka", "aku suka",
        "saya tidak suka", "aku tidak suka", "saya nggak suka", "aku nggak suka", "saya gak suka", "aku gak suka",
        "kesukaan saya", "favorit saya", "saya alergi", "lebih baik", "daripada", "utamakan", "tolong ingat",
        "harap ingat", "mohon ingat", "ingat bahwa", "ingatlah", "ingat ya", "ingat,", "ingat:", "pastikan",
        "hindari", "hanya gunakan",
        "gunakan hanya", "tetap gunakan", "saya mau kamu", "saya ingin kamu", "saya ingin anda", "jawab dalam",
        "jawablah dalam", "balas dalam", "sampai saya bilang", "panggil saya", "panggil aku", "sebut saya",
        "kecuali saya",
    }
)  # fmt: skip

_MAX_RULE_CHARS = 400
# The typographic apostrophe. Cues are written with the straight one.
_CURVED_APOSTROPHE = "\u2019"
_LIST_MARKUP = re.compile(r"[ \t]*(?:(?:[#*+-]+|\d{1,3}[.)])[ \t]+)*")
_QUOTE_LINE = re.compile(r" {0,3}>")
# The second full stop of an abbreviation such as "e.g." does not end a sentence.
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…])(?<!\b\w\.\w\.)[\"'\u201d\u2019)*_]*\s+|(?<=[。\uff01\uff1f])")
# Phrases that contain a cue but state no rule: reports of what someone did or never did, and figures of speech.
_NOT_A_RULE = re.compile(
    r"(?<!\w)(?:(?:i|we)(?:'ll| will) [^.!?]{0,60}next time|never ?mind|as always|not always|almost (?:always|never)"
    r"|instead of that|moving forward with"
    r"|(?:i|we|he|she|they|you)(?:'ve|'d| have| had| has|'s) (?:also |just |already )?(?:always|never)"
    r"|(?:i|we)(?:'ll| will| want to| just want to| wanted to) make sure|love to know|like to know|i'd love to"
    r"|saya suka lupa"
    # Descriptions of things or people, and of what happened to the writer
    r"|(?:it|he|she|they|there|dia|mereka)(?:'s| is| are| was| were| has)? (?:always|never|no longer|selalu)"
    r"|the [\w-]+ (?:always|never|no longer) [\w-]+(?:s|ed)|no longer (?:works?|working|exists?|available|supported)"
    r"|i (?:always|never) (?:said|say|gets?|got|had|forgot|forget|thought|knew|saw|heard|understood|wondered|found"
    r"|meant|did|was|am|been|went|tried|struggled?|fail(?:ed)?)"
    r"|(?:always|never) (?:said|told|worked|works|happened|happens)|never know"
    r"|(?:saya|aku) selalu (?:lupa|gagal|dapat|mendapat|terlambat|bingung)"
    r"|setiap (?:hari|minggu|bulan|tahun) (?:saya|aku|kami|dia|ada)"
    r"|jangan-jangan|i (?:don't|do not|dont) use"
    r"|i (?:like|love|enjoy|hate|dislike) (?:it|this|that)(?! (?:when|if|better|more)\b)"
    r"|(?:has|have|had|is|are|was|were|takes?|costs?|lasts?) at most|important to (?:note|remember) that"
    r"|(?:fails?|failed|crash\w*|breaks?|broke|happens?|happened|hangs?|stops?|errors?) (?:every|each) time"
    # One-time requests
    r"|i(?:'d like| want| need| would like) you to (?:elaborate on|(?:write|create|generate|draft"
    r"|build|implement|make|find|fix|translate|summari[sz]e|compare|analy[sz]e|describe) "
    r"(?:me )?(?:an?|the|this|some|my|one|two|three|\d+))"
    r")(?!\w)",
    re.IGNORECASE,
)
# A sentence whose only question is for consent ("…, ok?") is not treated as a question.
_TRAILING_CONSENT = re.compile(
    r"[,;\u2013\u2014-]?\s+(?:ok|okay|please|alright|all right|yes|will you|would you|could you|oke|ya|bisa|boleh)"
    r"\s*[?\uff1f]+[\"'\u201d\u2019)*_ ]*$",
    re.IGNORECASE,
)
# A polite question that asks for something from now on is a rule.
_POLITE_REQUEST = re.compile(
    r"(?:please |ok(?:ay)?,? |and |also,? )?(?:can|could|would|will) you (?:please |kindly )?(?:always|never"
    r"|from now on|not ever|remember to|stop using)\b"
    r"|(?:bisakah|bisa|dapatkah|maukah|boleh) (?:kamu |anda )?(?:tolong )?(?:selalu|mulai sekarang|jangan)\b",
    re.IGNORECASE,
)
# Positions at which a long sentence may be split.
_CLAUSE_BREAK = re.compile(r"(?<=[;:])\s+|(?<=,)\s+|\s+[\u2013\u2014-]\s+")


def detect_rules(text: str, *, cues: Set[str] = RULE_CUES) -> tuple[str, ...]:
    """Return the rules that a user's message states, verbatim, in order and without duplicates."""
    pattern = _cue_pattern(frozenset(cues))
    if not pattern.search(text.replace(_CURVED_APOSTROPHE, "'")):
        return ()
    found = (_detect_rule(one, pattern) for one in _iter_sentences(text))
    return tuple(dict.fromkeys(one for one in found if one is not None))


@lru_cache(maxsize=8)
def _cue_pattern(cues: frozenset[str]) -> re.Pattern[str]:
    listed = "|".join(re.escape(cue) for cue in sorted(cues, key=lambda cue: (-len(cue), cue)))
    return re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE)


def _iter_sentences(text: str) -> Iterator[str]:
    """Yield the sentences outside code and block quotes, without list and heading markup."""
    for line, is_code in iter_lines_with_code_flag(text):
        if is_code or _QUOTE_LINE.match(line):
            continue
        for sentence in _SENTENCE_ENDS.split(_LIST_MARKUP.sub("", line, count=1)):
            if sentence and sentence.strip():
                yield sentence.strip()


def _detect_rule(sentence: str, pattern: re.Pattern[str]) -> str | None:
    """Return the sentence if it states a rule, or None.

    For a sentence that is too long it returns the clauses that state the rule, word for word.
    """
    bare = sentence.rstrip("\"'\u201d\u2019)*_ ")
    if bare.endswith(("?", "\uff1f")) and not (_TRAILING_CONSENT.search(sentence) or _POLITE_REQUEST.match(sentence)):
        return None
    own = sentence.replace(_CURVED_APOSTROPHE, "'")
    for start, end in quote_spans(sentence):
        # Blank out quotes with as many spaces, so that positions stay valid for the sentence.
        own = f"{own[:start]}{' ' * (end - start)}{own[end:]}"
    own = _NOT_A_RULE.sub(lambda found: " " * len(found[0]), own)
    cue = pattern.search(own)
    if cue is None:
        return None
    return sentence if len(sentence) <= _MAX_RULE_CHARS else _extract_clauses(sentence, cue.start())


def _extract_clauses(sentence: str, cue_position: int) -> str | None:
    """Return the clauses of a long sentence from the one with the cue on, as many as fit."""
    edges = [0, *(match.end() for match in _CLAUSE_BREAK.finditer(sentence)), len(sentence)]
    start = max(edge for edge in edges if edge <= cue_position)
    end = max((edge for edge in edges if start < edge <= start + _MAX_RULE_CHARS), default=None)
    return None if end is None else sentence[start:end].strip()
