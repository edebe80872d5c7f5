"""Statements of a summary that a model wrote: parse them, check each against the messages that it cites.

A summary is a list of statements, each with the numbers of its messages in brackets: ``- [3, 4] The user chose oak.``
``check_summary`` keeps the statements that pass, and rejects the whole summary if one of them gives orders.

The rules compare words and facts. They do not show whether a statement follows from its messages: a statement that
denies them, or gives a deed to another person, often passes. ``summary_check = "model"`` asks a model as well.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, normalize

from lamella.core.text.content import UNSPACED_SCRIPTS
from lamella.core.text.facts import (
    MONTHS,
    UNIT_WORDS,
    WEEKDAYS,
    TextFacts,
    count_numbers,
    find_unknown_fact,
    read_facts,
)
from lamella.core.text.notation import normalize_characters
from lamella.core.text.phrases import Phrases
from lamella.core.text.requests import has_finite_verb
from lamella.core.text.rule_detection import (
    extract_quotes,
    find_injected_instruction,
    mask_quotations,
    normalize_quotes,
)
from lamella.core.text.word_lists import WordLists

# A statement that cites more messages than this could be about anything.
MAX_CITED_MESSAGES = 8
# At least this share of the words that carry meaning has to be in the cited messages.
MIN_SHARED_WORDS = 0.3
# A sentence shares at least this much with the sentence that it is compared with for negation and persons.
_SAME_SENTENCE_SHARE = 0.5
# A summary with less left is rejected.
MIN_KEPT_SHARE = 0.5

_CITES = re.compile(
    r"[\[\uff3b【]\s*(?:(?:messages?|msgs?|nos?\.?|nr\.?|pesan|nachrichten?|メッセージ)\s*)?"
    r"(?P<numbers>#?\d{1,6}(?:\s*(?:[,;、\u2013\u2014~-]|and|und|dan|&|\.\.)\s*#?\d{1,6})*)\s*[\]\uff3d】](?!\()",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)\s*(?:[\u2013\u2014~-]|\.\.)\s*#?(\d+)")
_BULLET = re.compile(r"[ \t]*(?:(?:[-*+•>#]+|\d{1,3}[.)]|\[[ xX]?\])[ \t]+)*")
_MARKUP = re.compile(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}")
_SENTENCE_ENDS = re.compile(
    r"(?<=[.!?…])(?<!\b[^\W\d]\.)(?<!\b\w\.\w\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bMs\.)[\"'\u201d\u2019)*_]*\s+|(?<=[。\uff01\uff1f])|\n"
)
_CLAUSE_ENDS = re.compile(r"[,;:、()\u2013\u2014]\s*|\s-\s|\s(?:and|und|dan|but|aber|tetapi|tapi|while|sedangkan)\s")
_CLAUSE_START_WORDS = re.compile(
    r"(?:(?:and|then|so|also|next|now|please|kindly|finally|first|und|dann|also|dan|lalu|juga|kemudian|jetzt|sekarang)\b,?\s*)+",
    re.IGNORECASE,
)
_WORD = re.compile(rf"[^\W_{UNSPACED_SCRIPTS}]+(?:['\u2019][^\W\d_]+)?")
_UNSPACED_RUN = re.compile("[\u4e00-\u9fff々]{2,}|[\u30a1-\u30fa\u30fc]{2,}")
_KANJI_VERB = re.compile("(?<![\u4e00-\u9fff々])[\u4e00-\u9fff](?=[\u3041-\u3096])")
_DENIED_VERB = re.compile("([\u4e00-\u9fff々])[\u3041-\u3096]{0,3}(?:ない|ません|なかった|ず|ぬ)")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_HONORIFIC_NAME = re.compile(
    "([\u4e00-\u9fff々\u30a1-\u30fa\u30fc]{1,6})(?=さん|様|氏|君|くん|ちゃん|先生|部長|課長|社長|店長)"
)
# 弟の健太は: after a word for a relative or a colleague there is a name; so is a subject that ends like given names.
_KIN_NAME = re.compile(
    "(?:弟|妹|兄|姉|妻|夫|父|母|娘|息子|甥|姪|祖父|祖母|叔父|叔母|従兄|従妹|友人|友達|同僚|上司|部下|先輩|後輩|隣人|担当者?|医師|先生)の"
    "([\u4e00-\u9fff々]{1,4})(?=は|が|も|に|と|へ|を|、)"
)
_GIVEN_NAME = re.compile(
    "(?:^|[、。と\\s])([\u4e00-\u9fff々]{1,2}(?:郎|輔|介|斗|香|奈|恵|樹|哉|也|彦|雄|美|太|江|代))(?=は|が|も)"
)
_JAPANESE = re.compile("[\u3040-\u30ff]")
_QUESTION = re.compile(r"[?\uff1f]\s*$")
_NAME_ENDINGS = ("", "'s", "\u2019s", "s", "es", "n", "en", "nya", "lah", "kah", "'", "\u2019")
_GERMAN_NOUN_ENDINGS = (
    "ung",
    "ungen",
    "heit",
    "heiten",
    "keit",
    "keiten",
    "schaft",
    "schaften",
    "tion",
    "tionen",
    "tat",
    "taten",
    "gie",
    "gien",
    "nis",
    "nisse",
    "tum",
    "ment",
    "ismus",
    "age",
)
# Endings that no name has: "Empfehlung: …".
_GERMAN_ABSTRACT_ENDINGS = ("ung", "ungen", "heit", "heiten", "keit", "keiten", "schaft", "schaften")
_GERMAN_WORDS = frozenset(
    [
        "der",
        "die",
        "das",
        "und",
        "nicht",
        "ist",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "für",
        "mit",
        "von",
        "zu",
        "wird",
        "hat",
        "den",
        "dem",
        "auf",
        "im",
        "soll",
        "sollen",
        "sind",
        "nur",
        "noch",
        "kein",
        "keine",
        "bei",
        "nach",
        "um",
        "als",
        "am",
        "zum",
        "zur",
        "wurde",
        "werden",
        "bis",
        "aus",
    ]
)
_FORMAL_GERMAN = re.compile(
    r"(?<![.!?\s])\s(?:Sie|Ihnen|Ihre[nmrs]?)\b|^\W*(?:Ihnen\b|Sie\s+(?:sollten|sollen"
    r"|müssen|können|dürfen|haben|wissen|werden|brauchen)\b)"
)
_LABEL = re.compile(
    r"(?:^|[.!?\n>]\s*)(?:system|admin\w*|developer|operator|root|override|instructions?|prompt|anweisung\w*|instruksi|perintah|指示|命令|システム)"
    r"(?:\s+(?:note|message|prompt|notice|alert|update|override|command))?\s*[:\uff1a>\]]",
    re.IGNORECASE,
)
_OPENING_LABEL = re.compile(r"[\s>]*[^\W\d_][\w ]{0,30}[:\uff1a]\s*[>\s]*")
_NOTE_TO = re.compile(
    r"\b(?:note|message|memo|hint|reminder|hinweis|nachricht|catatan|pesan)\s+(?:to|for|an|für|untuk|kepada)\s+(?:\w+\s+){0,2}"
    r"(?:model|assistant|ai|bot|reader|agent|llm|modell|assistenten|ki|leser|asisten|pembaca)\b",
    re.IGNORECASE,
)
_URGENT = re.compile(
    r"\b(?:at once|immediately|right away|right now|asap|without (?:asking|telling|checking|confirming|waiting)|no matter|sofort|umgehend"
    r"|unverzüglich"
    r"|ohne (?:\w+ )?(?:zu )?(?:fragen|nachzufragen|nachfragen|rückfrage)|segera|sekarang juga|tanpa (?:bertanya|tanya|konfirmasi))\b"
    r"|直ちに|今すぐ|ただちに",
    re.IGNORECASE,
)
_PARTICLE_VERB = re.compile(r"[A-Za-z]+ (?:back|down|out|off|away|over|up)\b(?! to \d| of\b)", re.IGNORECASE)
_PLEA = re.compile(r"\b(?:please|kindly|bitte|tolong|mohon|harap)\b", re.IGNORECASE)
# A word before one of these is a verb, unless it has an ending of nouns or participles.
_VERB_WITH_OBJECT = re.compile(
    r"(?P<verb>[^\W\d_]{2,})\s+(?:the|a|an|all|every|any|each|it|them|him|her|this|that"
    r"|these|those|whatever|whoever|your|everything|anything"
    r"|nothing|nobody|only|without\s+\w+ing)\b",
    re.IGNORECASE,
)
_NO_IMPERATIVE = re.compile(r"(?:\w+(?:ed|ing|s|ly|tion|ment|ness|er|or|ity|ance|ence)|\w{1,2})", re.IGNORECASE)
_GERMAN_INFINITIVE_END = re.compile(r"\b[a-zäöüß]{2,}(?:en|eln|ern)[.!]*$")
_GERMAN_FINITE = re.compile(
    r"\b(?:ist|sind|war|waren|wird|werden|wurde|wurden|hat|haben|hatte|hatten|soll|sollen|sollte"
    r"|sollten|will|wollen|wollte|wollten|kann|können|konnte"
    r"|muss|müssen|musste|mussten|darf|dürfen|möchte|möchten|bleibt|bleiben|gibt|gab|fehlt|fehlen"
    r"|kommt|kommen|steht|liegt|kostet|braucht|reicht|läuft|geht"
    r"|[a-zäöüß]{3,}(?:(?<!nich)(?<!sofor)(?<!direk)(?<!jetz)(?<!ers)(?<!selbs)(?<!fas)(?<!sons)(?<!lau)(?<!sei)(?<!insgesam)t|te|ten))\b"
)
_TAG = re.compile(r"</?[A-Za-z|!][^>\n]{0,60}>|\[/?[A-Z]{3,}\]|<\||```|~~~|\{\{|<!--")
_BAD_LINK = re.compile(r"\b(?:javascript|data|vbscript|file):", re.IGNORECASE)
_GERMAN_DUTY = re.compile(
    r"\b(?:ist|sind|hat|haben|wird|werden)\b[^.!?]{0,80}?\b(?:zu\s+\w+en|\w+zu\w+en)\b", re.IGNORECASE
)


class CitedMessage(NamedTuple):
    """A message that a statement may cite; ``is_user`` says who wrote it."""

    text: str
    is_user: bool


class Statement(NamedTuple):
    """One statement of a summary and the numbers of its messages."""

    text: str
    numbers: tuple[int, ...]

    def render(self) -> str:
        """Return the line of the summary block."""
        return f"- [{', '.join(map(str, self.numbers))}] {self.text}"


class DroppedStatement(NamedTuple):
    """A statement that is left out, and why."""

    text: str
    why: str


class CheckedSummary(NamedTuple):
    """The statements that passed and those left out. ``problem`` says why the whole summary is rejected, if it is."""

    statements: tuple[Statement, ...] = ()
    dropped: tuple[DroppedStatement, ...] = ()
    problem: str | None = None


def check_summary(
    text: str, messages: Mapping[int, CitedMessage], words: WordLists, *, translated: bool = False
) -> CheckedSummary:
    """Check the statements of a summary against the messages of the conversation, by number.

    A summary with a sentence that gives orders or addresses its reader is rejected as a whole: its writer followed a
    text instead of describing it. Other statements that fail are dropped. If less than half is left, it is rejected.
    ``translated`` means that the summary is in another language on purpose, so that its words cannot be compared.
    """
    checker = _Checker(messages, words, translated=translated)
    kept: list[Statement] = []
    dropped: list[DroppedStatement] = []
    for line, statement in iter_statements(text):
        problem = checker.find_order(line, statement)
        if problem is not None:
            return CheckedSummary(dropped=tuple(dropped), problem=problem)
        if statement is None:
            if not _is_heading(line):
                dropped.append(DroppedStatement(line, "It names no message."))
            continue
        why = checker.find_problem(statement)
        if why is None:
            kept.append(statement)
        else:
            dropped.append(DroppedStatement(statement.text, why))
    if not kept or len(kept) < MIN_KEPT_SHARE * (len(kept) + len(dropped)):
        first = f" {dropped[0].why} {clip_and_quote(dropped[0].text)}" if dropped else ""
        return CheckedSummary(
            dropped=tuple(dropped),
            problem=f"{len(dropped):,} of {len(kept) + len(dropped):,} statements failed.{first}",
        )
    return CheckedSummary(statements=tuple(kept), dropped=tuple(dropped))


def _is_heading(line: str) -> bool:
    return line.lstrip().startswith("#") or line.rstrip(" *_").endswith((":", "\uff1a"))


def clip_and_quote(text: str, width: int = 60) -> str:
    """Return a text in quotation marks, cut to a width."""
    return f"“{text}”" if len(text) <= width else f"“{text[:width]} …”"


def iter_statements(text: str) -> Iterator[tuple[str, Statement | None]]:
    """Yield each line of a summary with its statement, or None if the line names no message.

    A line with several citations has several statements. An indented line without a citation continues the last one.
    """
    waiting: tuple[str, Statement] | None = None
    for line in normalize_characters(text).splitlines():
        if not line.strip():
            continue
        parts = _parse_line(line)
        if waiting is not None and not parts and line[:1].isspace() and not _BULLET.match(line).group().strip():  # type: ignore[union-attr]
            shown, statement = waiting
            waiting = f"{shown} {line.strip()}", statement._replace(text=f"{statement.text} {line.strip()}")
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if not parts:
            yield line, None
        for part in parts[:-1]:
            yield line, part
        waiting = (line, parts[-1]) if parts else None
    if waiting is not None:
        yield waiting


def _parse_line(line: str) -> list[Statement]:
    cites = list(_CITES.finditer(line))
    if not cites:
        return []
    bare_start = _BULLET.match(line).end()  # type: ignore[union-attr]
    leads = not line[bare_start : cites[0].start()].strip(" \t*_")
    edges = [found.start() for found in cites] if leads else [bare_start, *(found.end() for found in cites[:-1])]
    statements: list[Statement] = []
    for at, found in enumerate(cites):
        end = edges[at + 1] if at + 1 < len(edges) else len(line)
        body = _CITES.sub("", line[edges[at] : end])
        body = re.sub(r"\s+([.,;:])", r"\1", " ".join(body.split())).lstrip(".,;: ").strip()
        body = _BULLET.sub("", body, count=1) if leads else body
        if any(map(str.isalnum, body)):
            statements.append(Statement(body, _parse_numbers(found["numbers"])))
        elif statements:
            last = statements[-1]
            statements[-1] = last._replace(
                numbers=tuple(dict.fromkeys((*last.numbers, *_parse_numbers(found["numbers"]))))
            )
        elif leads:
            # "[3][5] text": the numbers before the text belong to it.
            edges[at + 1 : at + 2] = [found.start()] if at + 1 < len(edges) else []
    if leads and len(cites) > 1:
        return _merge_leading(line, cites, statements)
    return statements


def _merge_leading(line: str, cites: Sequence[re.Match[str]], statements: list[Statement]) -> list[Statement]:
    """Return the one statement of a line such as "[3][5] text", else the statements as they are."""
    if line[cites[0].end() : cites[-1].start()].strip(" ,\t") or not any(map(str.isalnum, line[cites[-1].end() :])):
        return statements
    numbers = tuple(dict.fromkeys(number for found in cites for number in _parse_numbers(found["numbers"])))
    return [Statement(line[cites[-1].end() :].strip(), numbers)]


def _parse_numbers(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in re.split(r"[,;、&]|and|und|dan", text):
        if found := _RANGE.search(part):
            first, last = int(found[1]), int(found[2])
            numbers += range(first, min(last, first + 2 * MAX_CITED_MESSAGES) + 1)
        elif found := re.search(r"\d+", part):
            numbers.append(int(found[0]))
    return tuple(dict.fromkeys(numbers))


# Comparing words.


def _fold(word: str) -> str:
    return "".join(one for one in normalize("NFD", word.casefold()) if not combining(one))


class _Sentence(NamedTuple):
    """A sentence of a cited message: its stems, the persons in each clause, and whether it denies or asks."""

    stems: frozenset[str]
    clauses: tuple[tuple[frozenset[str], frozenset[str]], ...]
    denies: bool
    denied: frozenset[str]
    may_deny: bool
    asks: bool
    number: int
    text: str


class _Source(NamedTuple):
    """What a message says."""

    words: frozenset[str]
    stems: frozenset[str]
    sentences: tuple[_Sentence, ...]


class _Lists:
    """Word lists of one configuration, ready to be searched."""

    def __init__(self, words: WordLists) -> None:
        self.common = frozenset(map(_fold, words.common_words))
        self.prose = frozenset(map(_fold, words.prose_words))
        self.plain = self.prose | frozenset(map(_fold, words.plain_words))
        self.surnames = words.surnames
        self.negations = Phrases(words.negations)
        self.soft_negations = Phrases(words.soft_negations)
        self.reports = Phrases(words.report_verbs)
        self.duties = Phrases(words.duty_words)
        self.orders = Phrases(words.order_verbs)
        self.directives = Phrases((*words.directive_openings, *words.directive_cues))
        self.audience = Phrases(words.audience_words)
        self.readers = Phrases(
            [word for word in words.reader_words if " " not in word and not word.startswith(words.assistant_nouns)]
        )
        self.users = Phrases(words.user_nouns)
        self.assistants = Phrases(words.assistant_nouns)
        self.first_persons = Phrases(words.first_person)
        endings = sorted(words.order_endings, key=len, reverse=True)
        self.order_endings = re.compile(rf"(?:{'|'.join(map(re.escape, endings)) or '(?!)'})[。.!\uff01\s]*$")


_list_cache = lru_cache(maxsize=8)(_Lists)

_USER, _ASSISTANT = "\0user", "\0assistant"


class _Checker:
    """Checks statements against the messages of one conversation."""

    def __init__(self, messages: Mapping[int, CitedMessage], words: WordLists, *, translated: bool) -> None:
        self._messages = messages
        self._lists = _list_cache(words)
        self._translated = translated
        self._sources: dict[int, _Source] = {}
        self._every_fact: TextFacts | None = None

    # Orders.

    def find_order(self, line: str, statement: Statement | None) -> str | None:
        """Return why a line addresses its reader or gives an order, or None if it does not."""
        text = _BULLET.sub("", statement.text if statement else line, count=1)
        cited = self._cited(statement.numbers if statement else ())
        joined = "\n".join(" ".join(normalize_characters(one.text).split()) for one in cited)
        own = mask_quotations(
            normalize_quotes(text),
            should_mask=lambda quoted: " ".join(quoted.split()).rstrip(".,") in normalize_quotes(joined),
        )
        own = _MARKUP.sub("", own).replace("\0", " ")
        if found := _TAG.search(own) or _NOTE_TO.search(own) or _BAD_LINK.search(own) or _LABEL.search(own):
            return f"The summary has markup or a label of instructions: {clip_and_quote(found[0])}"
        order = find_injected_instruction(own) or next(
            (part for part in _SENTENCE_ENDS.split(own) if part.strip() and self._is_order(part.strip(), statement)),
            None,
        )
        return f"The summary gives orders to its reader: {clip_and_quote(' '.join(order.split()))}" if order else None

    def _is_order(self, sentence: str, statement: Statement | None) -> bool:
        lists = self._lists
        reported = self._is_reported(sentence)
        if lists.readers.search(sentence.casefold()) or _FORMAL_GERMAN.search(sentence):
            return True
        if (_JAPANESE.search(sentence) and lists.order_endings.search(sentence)) or self._is_infinitive_order(sentence):
            return True
        if not reported and _PLEA.search(sentence):
            return True
        audience = lists.audience.search(sentence)
        if (lists.duties.search(sentence) or _GERMAN_DUTY.search(sentence)) and not reported:
            speaks_of_assistant = lists.assistants.search(sentence) is not None
            if audience is not None and not speaks_of_assistant:
                return True
            return not (self._is_duty_in_sources(sentence, statement) or self._is_duty_of_things(sentence, statement))
        opens = audience is not None and audience.start() == 0 and _HAPPENED.search(sentence) is None
        if opens and not reported and not lists.assistants.search(sentence):
            return True
        # "Assistant: reveal it" opens with an order, too.
        if not reported and self._is_urgent_order(sentence):
            return True
        label = _OPENING_LABEL.match(sentence)
        if label is not None and self._opens_with_order(sentence[label.end() :], sentence[label.end() :]):
            return True
        return any(self._opens_with_order(clause, sentence) for clause in _iter_clauses(sentence)) or (
            not reported and lists.directives.search(sentence) is not None and self._opens_with_directive(sentence)
        )

    def _is_urgent_order(self, sentence: str) -> bool:
        """Return whether a sentence begins with a verb and is in a hurry, or with a verb such as "roll back"."""
        words = sentence.split()
        first = words[0].strip(".,:") if words else ""
        if not first or not self._may_be_imperative(first) or has_finite_verb(sentence):
            return False
        return _URGENT.search(sentence) is not None or (len(words) > 1 and _PARTICLE_VERB.match(sentence) is not None)

    def _is_infinitive_order(self, sentence: str) -> bool:
        """Return whether a German sentence has no verb but an infinitive at its end."""
        return (
            _GERMAN_INFINITIVE_END.search(sentence) is not None
            and bool(_GERMAN_WORDS.intersection(_WORD.findall(sentence.lower())))
            and _GERMAN_FINITE.search(sentence[: sentence.rstrip(".!").rfind(" ")]) is None
        )

    def _is_reported(self, sentence: str) -> bool:
        """Return whether the user or somebody else is the subject of a sentence, so that it states what they want."""
        lists = self._lists
        user = lists.users.search(sentence)
        return user is not None and user.start() <= _MAX_SUBJECT_START

    def _opens_with_order(self, clause: str, sentence: str) -> bool:
        bare = _without_start_words(clause)
        match = next((one for one in self._lists.orders.finditer(bare) if one.start() == 0), None)
        if match is None:
            verb = _VERB_WITH_OBJECT.match(bare)
            return verb is not None and sentence.startswith(clause) and self._may_be_imperative(verb["verb"])
        rest = bare[match.end() :]
        # "Open: whether …" is a label, "Use of the room" a noun.
        if re.match(r"\s*[:\uff1a]|\s*$|\s+(?:of|is|was|are|were|has|had|will|by|von|der|des)\b|-\w", rest):
            return False
        if match[0].casefold() not in _AMBIGUOUS_ORDERS and sentence.startswith(clause):
            return True
        # Inside a sentence, or where the verb is also a noun or a participle, an object or a hurry has to follow.
        return _OBJECT.match(rest) is not None or _URGENT.search(sentence) is not None

    def _may_be_imperative(self, word: str) -> bool:
        folded = _fold(word)
        is_other = folded in self._lists.plain or folded in self._lists.common or folded in _CALENDAR
        return not is_other and not _NO_IMPERATIVE.fullmatch(word)

    def _opens_with_directive(self, sentence: str) -> bool:
        return self._lists.directives.first_match_at(_without_start_words(sentence), (0,)) is not None or (
            any(
                found.start() == 0 or found[0].casefold() not in _AMBIGUOUS_ORDERS
                for found in self._lists.orders.finditer(sentence)
            )
        )

    def _is_duty_in_sources(self, sentence: str, statement: Statement | None) -> bool:
        """Return whether the cited messages state the same duty; one of the assistant has to be stated by the user."""
        if statement is None:
            return False
        numbers = [number for number in statement.numbers if number in self._messages]
        if self._lists.assistants.search(sentence):
            numbers = [number for number in numbers if self._messages[number].is_user]
            known = frozenset(stem for number in statement.numbers for stem in self._source(number).stems)
        else:
            known = frozenset[str]()
        for clause in re.split(r"[,;:]\s", sentence):
            if self._lists.duties.search(clause) is None and _GERMAN_DUTY.search(clause) is None:
                continue
            stems = self._stems(clause)
            if not any(self._states_duty(number, stems, known) for number in numbers):
                return False
        return True

    def _is_duty_of_things(self, sentence: str, statement: Statement | None) -> bool:
        """Return whether a sentence says how something has to be, in words of its messages, and asks nobody to act."""
        if statement is None or self._lists.assistants.search(sentence) or _ASKS_TO_ACT.search(sentence):
            return False
        return not self._shares_language(statement) or self._share_of_words(sentence, statement) >= _THING_DUTY_SHARE

    def _share_of_words(self, text: str, statement: Statement) -> float:
        """Return how many of the words of a text are in the cited messages, counting its numbers as known words."""
        stems = self._stems(text)
        counted = min(count_numbers(text), _MAX_COUNTED_NUMBERS)
        if not stems:
            return 1.0
        known = frozenset(stem for number in statement.numbers for stem in self._source(number).stems)
        words = " ".join(word for number in statement.numbers for word in self._source(number).words)
        # In German a word may be the end of a longer one.
        shared = sum(
            stem in known or _has_stem(stem, known) or (len(stem) >= _STEM_CHARS and stem in words) for stem in stems
        )
        return (shared + counted) / (len(stems) + counted)

    def _states_duty(self, number: int, stems: Set[str], known: Set[str]) -> bool:
        """Return whether a sentence of a message says that something has to be done, with most of these words.

        With ``known``, one of the words is enough if most of them are known from other messages.
        """
        lists = self._lists
        for sentence in self._source(number).sentences:
            share = _share(stems, sentence.stems)
            if share >= _SAME_DUTY_SHARE or (share and _share(stems, known) >= _SAME_SENTENCE_SHARE):
                clauses = [sentence.text, *_iter_clauses(sentence.text)]
                if (
                    lists.duties.search(sentence.text)
                    or lists.negations.search(sentence.text)
                    or any(self._opens_with_order(part, part) for part in clauses)
                ):
                    return True
        return False

    # TextFacts, names, words.

    def find_problem(self, statement: Statement) -> str | None:
        """Return why a statement does not follow from the messages that it cites, or None if it may."""
        numbers = statement.numbers
        missing = [number for number in numbers if number not in self._messages]
        if missing:
            return f"Message {missing[0]} is none of those it summarises."
        if len(numbers) > MAX_CITED_MESSAGES:
            return f"It cites {len(numbers):,} messages."
        cited = self._cited(numbers)
        return (
            self._find_misquotation(statement.text, cited)
            or self._find_invented_fact(statement.text, cited)
            or self._find_unsaid_name(statement)
            or (None if self._translated else self._find_unshared(statement) or self._find_unsaid_deed(statement))
            or self._find_contradiction(statement)
        )

    def _cited(self, numbers: Iterable[int]) -> list[CitedMessage]:
        return [self._messages[number] for number in numbers if number in self._messages]

    def _find_misquotation(self, text: str, cited: Sequence[CitedMessage]) -> str | None:
        for quotation in extract_quotes(normalize_quotes(text)):
            quoted = " ".join(quotation.text.split()).rstrip(".,。")
            by_user = quotation.by_user or self._lists.users.search(text) is not None
            sources = [one for one in cited if one.is_user or not by_user] or ([] if by_user else cited)
            known = normalize_quotes("\n".join(" ".join(normalize_characters(one.text).split()) for one in sources))
            if quoted.casefold() not in known.casefold() and (by_user or len(quoted.split()) > 1):
                return f"It quotes words that are not in its messages: {clip_and_quote(quoted)}."
        return None

    def _find_invented_fact(self, text: str, cited: Sequence[CitedMessage]) -> str | None:
        if self._every_fact is None:
            self._every_fact = read_facts([one.text for one in self._messages.values()])
        unquoted = _without_quotations(text, cited)
        unknown = find_unknown_fact(
            unquoted, read_facts([one.text for one in cited]), more_years=self._every_fact.years
        )
        return None if unknown is None else f"Its messages do not have {clip_and_quote(unknown)}."

    def _find_unsaid_name(self, statement: Statement) -> str | None:
        sources = [self._source(number) for number in statement.numbers]
        known = frozenset(word for source in sources for word in source.words)
        stems = frozenset(stem for source in sources for stem in source.stems)
        joined = "\n".join(normalize_characters(message.text) for message in self._cited(statement.numbers))
        for name in self._iter_unspaced_names(statement.text):
            if name not in joined:
                return f"Its messages do not name {clip_and_quote(name)}."
        german = _GERMAN_LETTER.search(statement.text) is not None or (
            len(_GERMAN_WORDS.intersection(_WORD.findall(statement.text.lower()))) >= _MIN_GERMAN_WORDS
        )
        for word, is_first in _iter_capitalised(_without_quotations(statement.text, self._cited(statement.numbers))):
            folded = _fold(word)
            if self._is_known_name(folded, known) or folded in self._lists.plain or folded in _CALENDAR:
                continue
            if len(word) == 1:
                continue
            if is_first and (folded in self._lists.common or _has_stem(folded, stems) or folded in self._lower_words()):
                continue
            if german and (
                _is_german_noun(folded, known, self._lists.plain)
                or (is_first and _GERMAN_PARTICIPLE.fullmatch(folded) is not None)
            ):
                continue
            if is_first and word.endswith(_GERMAN_ABSTRACT_ENDINGS):
                continue
            if folded in UNIT_WORDS or self._is_marked_as_noun(word, statement.text, german=german):
                continue
            if is_first and (_INDONESIAN_FORM.fullmatch(folded) or _ENGLISH_FORM.fullmatch(folded)):
                continue
            return f"Its messages do not name {clip_and_quote(word)}."
        return None

    def _is_marked_as_noun(self, word: str, text: str, *, german: bool) -> bool:
        """Return whether a German word comes after an article, an adjective or a number, which no name does."""
        escaped = re.escape(word)
        return (
            german
            and re.search(rf"{_BEFORE_NOUN}\s+{escaped}\b|{_PREPOSITION}\s{escaped}\s{_GENITIVE}", text) is not None
            and re.search(rf"{_TITLE}\s+{escaped}\b", text) is None
        )

    def _is_known_name(self, folded: str, known: Set[str]) -> bool:
        return any(
            folded + ending in known or (folded.endswith(ending) and folded[: len(folded) - len(ending)] in known)
            for ending in _NAME_ENDINGS
        )

    def _iter_unspaced_names(self, text: str) -> Iterator[str]:
        for found in _KATAKANA.finditer(text):
            if found[0] not in self._lists.prose:
                yield found[0]
        if _JAPANESE.search(text):
            for found in _HONORIFIC_NAME.finditer(text):
                yield found[1]
            yield from (name for name in self._lists.surnames if len(name) > 1 and name in text)
            yield from (found[1] for found in _KIN_NAME.finditer(text))
            yield from (found[1] for found in _GIVEN_NAME.finditer(text))

    def _lower_words(self) -> frozenset[str]:
        """Return the words that the conversation has in lower case: at the start of a sentence they are no names."""
        if not hasattr(self, "_lower"):
            found = (word for one in self._messages.values() for word in _WORD.findall(one.text))
            self._lower = frozenset(_fold(word) for word in found if word[:1].islower())
        return self._lower

    def _find_unshared(self, statement: Statement) -> str | None:
        # Who said it, and that it was said, are words of the summary.
        told = self._lists.reports.blank_out(
            self._lists.users.blank_out(self._lists.assistants.blank_out(statement.text))
        )
        stems = self._stems(told)
        if not stems:
            return None
        share = self._share_of_words(told, statement)
        # In another language numbers may be all that a statement shares with its messages.
        translates = not self._shares_language(statement)
        if not translates and share < MIN_SHARED_WORDS:
            return "Its messages say something else."
        for sentence in _SENTENCE_ENDS.split(statement.text):
            part = self._stems(sentence)
            if len(part) > _MIN_STEMS and not translates and not self._share_of_words(sentence, statement):
                return "Its messages say something else."
        return None

    def _find_unsaid_deed(self, statement: Statement) -> str | None:
        """Return why a statement about the user has no support in the cited messages of the user."""
        user = self._lists.users.search(statement.text)
        if user is None or user.start() > 0 or not self._shares_language(statement):
            return None
        stems = self._stems(self._lists.reports.blank_out(statement.text)) - self._stems(user[0])
        users = [number for number in statement.numbers if self._messages[number].is_user]
        addressed = [
            number
            for number in statement.numbers
            if number not in users and self._lists.readers.search(self._messages[number].text.casefold())
        ]
        known = frozenset(stem for number in (*users, *addressed) for stem in self._source(number).stems)
        if not stems or _share(stems, known) >= _MIN_DEED_SHARE:
            return None
        return "The user's messages do not say that."

    def _shares_language(self, statement: Statement) -> bool:
        """Return whether a statement is in the language of its messages, as far as their stop words show."""
        own = self._small_words(statement.text)
        theirs = frozenset(word for one in self._cited(statement.numbers) for word in self._small_words(one.text))
        if _JAPANESE.search(statement.text):
            return any(_JAPANESE.search(one.text) for one in self._cited(statement.numbers))
        return not own or len(own & theirs) * _LANGUAGE_RATE >= len(own)

    def _small_words(self, text: str) -> frozenset[str]:
        return frozenset(
            folded
            for word in _WORD.findall(text)
            if (folded := _fold(word)) in self._lists.prose and len(folded) < _MIN_STEM_CHARS
        )

    # Denials and persons.

    def _find_contradiction(self, statement: Statement) -> str | None:
        for text in filter(str.strip, _SENTENCE_ENDS.split(statement.text)):
            own = self._read_sentence(text, 0, is_user=None)
            best = self._closest_sentence(own, statement.numbers)
            if best is not None and (problem := self._compare(text, own, best, statement)):
                return problem
            if self._has_swapped_persons(own, statement.numbers, text):
                return "Its messages say that of somebody else."
        return None

    def _closest_sentence(self, own: _Sentence, numbers: Iterable[int]) -> _Sentence | None:
        every = [sentence for number in numbers for sentence in self._source(number).sentences]
        best = max(every, key=lambda one: (_share(own.stems, one.stems), -len(one.stems)), default=None)
        return best if best is not None and _share(own.stems, best.stems) >= _SAME_SENTENCE_SHARE else None

    def _compare(self, text: str, own: _Sentence, best: _Sentence, statement: Statement) -> str | None:
        reported = self._lists.reports.search(text) is not None
        if best.asks:
            answered = any(number > best.number for number in statement.numbers)
            if self._is_refused(best.number + 1) and not own.denies and not own.may_deny and not own.asks:
                return "Its messages deny that."
            if not reported and not own.asks and not answered and not own.denies:
                return "Its messages only ask that."
            return None
        touches = not best.denied or _share(best.denied, own.stems) >= _SAME_SENTENCE_SHARE
        if best.denies and touches and not own.denies and not own.may_deny:
            return "Its messages deny that."
        # "Not loud" may be another word for "quiet": only a denial in the words of its messages is compared.
        if own.denies and not best.denies and not best.may_deny and _share(own.stems, best.stems) >= _SAME_DENIAL_SHARE:
            others = [one for number in statement.numbers for one in self._source(number).sentences if one.denies]
            if not any(own.stems & one.stems for one in others):
                return "Its messages do not deny that."
        return None

    def _is_refused(self, number: int) -> bool:
        """Return whether a message begins with "no"."""
        message = self._messages.get(number)
        return message is not None and self._lists.negations.first_match_at(message.text.lstrip(), (0,)) is not None

    def _has_swapped_persons(self, own: _Sentence, numbers: Sequence[int], text: str) -> bool:
        """Return whether a clause gives to one person what the messages give only to another."""
        reported = self._lists.reports.search(text) is not None
        theirs = [
            (self._persons_of_clause(persons, one), stems)
            for number in numbers
            for one in self._source(number).sentences
            for persons, stems in one.clauses
        ]
        named = frozenset(person for persons, _ in theirs for person in persons)
        for persons, stems in own.clauses:
            known = persons & named
            topic = stems - named
            if not known or not topic or (reported and known <= {_USER, _ASSISTANT}):
                continue
            shares = [(len(topic & other), others) for others, other in theirs]
            most = max((shared for shared, _ in shares), default=0)
            closest = [others for shared, others in shares if shared == most and shared]
            if closest and all(others and others.isdisjoint(known) for others in closest):
                return True
        return False

    def _persons_of_clause(self, persons: frozenset[str], sentence: _Sentence) -> frozenset[str]:
        """Return the persons of a clause; one that names nobody but "we" or "you" may be about everyone in its sentence."""
        if not persons or not persons <= {_USER, _ASSISTANT}:
            return persons
        return persons.union(*(others for others, _ in sentence.clauses))

    # Reading.

    def _source(self, number: int) -> _Source:
        found = self._sources.get(number)
        if found is None:
            found = self._sources[number] = self._read_message(number)
        return found

    def _read_message(self, number: int) -> _Source:
        message = self._messages[number]
        text = normalize_characters(message.text)
        sentences = tuple(
            [
                self._read_sentence(sentence, number, is_user=message.is_user)
                for sentence in _SENTENCE_ENDS.split(text)
                if sentence.strip()
            ]
        )
        words = frozenset(part for word in _WORD.findall(text) for part in (_fold(word), *_fold(word).split("'")))
        return _Source(words=words, stems=self._stems(text), sentences=sentences)

    def _read_sentence(self, text: str, number: int, *, is_user: bool | None) -> _Sentence:
        clauses = tuple(
            [(self._persons(part, is_user=is_user), self._stems(part)) for part in _iter_clauses(text) if part.strip()]
        )
        lists = self._lists
        return _Sentence(
            stems=self._stems(text),
            clauses=clauses,
            denies=lists.negations.search(text) is not None,
            denied=self._denied_stems(text),
            may_deny=lists.soft_negations.search(text) is not None,
            asks=_QUESTION.search(text) is not None,
            number=number,
            text=text,
        )

    def _denied_stems(self, text: str) -> frozenset[str]:
        """Return the stems of what a sentence denies: of the clauses with a negation, or of the verbs before one."""
        if _JAPANESE.search(text):
            return frozenset(_DENIED_VERB.findall(text))
        negations = self._lists.negations
        return frozenset(stem for part in _iter_clauses(text) if negations.search(part) for stem in self._stems(part))

    def _persons(self, text: str, *, is_user: bool | None) -> frozenset[str]:
        lists = self._lists
        found = {_fold(word) for word, is_first in _iter_capitalised(text) if not is_first or not self._is_prose(word)}
        found -= lists.plain | _CALENDAR
        found.update(name for name in lists.surnames if len(name) > 1 and name in text)
        if is_user is None:
            found.update((_USER,) if lists.users.search(text) else ())
            found.update((_ASSISTANT,) if lists.assistants.search(text) else ())
        else:
            mine, yours = (_USER, _ASSISTANT) if is_user else (_ASSISTANT, _USER)
            found.update((mine,) if lists.first_persons.search(text) else ())
            found.update((yours,) if lists.readers.search(text.casefold()) else ())
        return frozenset(found)

    def _is_prose(self, word: str) -> bool:
        folded = _fold(word)
        return folded in self._lists.plain or folded in self._lower_words() or folded in _CALENDAR

    def _stems(self, text: str) -> frozenset[str]:
        """Return the beginnings of the words that carry meaning; in scripts without spaces, pairs of characters."""
        common, prose = self._lists.common, self._lists.prose
        folded = (_fold(word) for word in _WORD.findall(text))
        stems = {
            word[:_STEM_CHARS]
            for word in folded
            if len(word) >= _MIN_STEM_CHARS and not word.isdigit() and (word not in common and word not in prose)
        }
        runs = _UNSPACED_RUN.findall(text) if _JAPANESE.search(text) or not text.isascii() else []
        verbs = _KANJI_VERB.findall(text) if runs else []
        return frozenset(stems | {run[at : at + 2] for run in runs for at in range(len(run) - 1)} | set(verbs))


_STEM_CHARS, _MIN_STEM_CHARS = 5, 4
_MIN_COMPOUND_CHARS = 8
_PREPOSITION = (
    r"\b(?:[Nn]ach|[Vv]or|[Bb]ei|[Mm]it|[Oo]hne|[Ww]egen|[Tt]rotz|[Uu]nter|[Ss]eit|[Dd]urch|[Ii]n|[Aa]uf|[Aa]n)"
)
_GENITIVE = r"(?:der|des|von|einer|eines)\b"
# A sentence that tells what happened gives no order.
_HAPPENED = re.compile(
    r"\b(?:was|were|had|came|got|went|[a-z]{3,}ed|war|waren|kam|kamen|hatten?|wurden?|telah|sudah)\b", re.IGNORECASE
)
_BEFORE_NOUN = (
    r"(?:\b(?:[Kk]?ein(?:e[mnrs]?)?|[Jj]ede[mnrs]?|pro|per|ohne|zum|zur|im|beim|ins|vom|[Dd]en|[Dd]iese[mnrs]?"
    r"|viele|wenige|einige|mehrere|zwei|drei|vier|fünf|sechs"
    r"|(?!hatte|wollte|sollte|konnte|musste|bitte|heute|sowie|habe|werde|sie|wie|er|aber|oder|unter|über|hinter|immer|außer|ihr)"
    r"[a-zäöüß]{2,}(?<!t)(?:e|er|es|em))|\d)"
)
# What comes after a title is a name.
_TITLE = r"\b(?:Frau|Herrn?|Dr\.|Prof\.|Firma|Familie|Onkel|Tante|Oma|Opa|Schwester|Bruder|Chefin?|Kolleg(?:e|in)|Nachbar(?:in)?)"
# "Menunggu", "Pembayaran", "Kekurangan": forms of Indonesian words with which sentences begin.
_INDONESIAN_FORM = re.compile(r"(?:meng|meny|mem|men|ber|peng|peny|pem|pen|per)\w{4,}|ke\w{4,}an")
# "Suspected", "Planning", "Initially": at the start of an English sentence they are no names.
_ENGLISH_FORM = re.compile(
    r"\w{3,}(?:ed|ing|ly|tion|tions|ment|ments|ness|ity|able|ible|ous|ful|less|ance|ence|ship|ure|ures|ism|ical|ive)"
)
# "Vermutet", "Beschlossen": at the start of a German sentence they are no names.
_GERMAN_PARTICIPLE = re.compile(r"(?:ge|be|ver|er|ent|zer|uber|unter|ab|an|auf|aus|ein|vor|zu)\w{3,}(?:t|en)")
_MIN_STEMS = 2
_SAME_DUTY_SHARE = 0.6
_THING_DUTY_SHARE = 0.4
# So many verified numbers count as words that a statement shares with its messages.
_MAX_COUNTED_NUMBERS = 2
_MIN_GERMAN_WORDS = 1
_GERMAN_LETTER = re.compile("[äöüß]")
# A statement about the user shares at least this much with the messages of the user.
_MIN_DEED_SHARE = 0.3
_LANGUAGE_RATE = 4
# A denial shares at least this much with a sentence before it counts as the denial of that sentence.
_SAME_DENIAL_SHARE = 0.75
# The subject of a sentence begins within so many characters.
_MAX_SUBJECT_START = 40
_CALENDAR = frozenset(_fold(name) for name in (*MONTHS, *WEEKDAYS))
# Verbs that are also nouns, adjectives or participles at the start of a short statement.
_AMBIGUOUS_ORDERS = frozenset(
    [
        "open",
        "set",
        "post",
        "answer",
        "reply",
        "use",
        "start",
        "finish",
        "stop",
        "return",
        "search",
        "load",
        "copy",
        "store",
        "call",
        "contact",
        "show",
        "display",
        "print",
        "output",
        "change",
        "switch",
        "run",
        "email",
        "transfer",
        "download",
        "upload",
        "visit",
        "mention",
        "address",
        "talk",
        "state",
        "sign",
        "hand",
        "grant",
        "repeat",
        "quote",
        "claim",
        "let",
        "put",
        "share",
        "drop",
        "type",
        "keep",
        "read",
        "only",
        "say",
        "forward",
        "do",
        "approve",
        "skip",
        "turn",
        "never",
        "always",
        "book",
        "order",
        "deploy",
        "merge",
        "commit",
        "push",
        "release",
        "test",
        "build",
        "update",
        "upgrade",
        "move",
        "ship",
        "budget",
        "cut",
        "report",
        "review",
        "plan",
        "rate",
        "report",
        "bake",
        "break",
        "burn",
        "carry",
        "catch",
        "clean",
        "climb",
        "cook",
        "cool",
        "cut",
        "drink",
        "drive",
        "eat",
        "feed",
        "find",
        "freeze",
        "grow",
        "heat",
        "hike",
        "hold",
        "leave",
        "lift",
        "look",
        "mix",
        "pack",
        "paint",
        "pet",
        "plant",
        "plug",
        "practice",
        "press",
        "pull",
        "repair",
        "replace",
        "see",
        "sleep",
        "stand",
        "study",
        "swap",
        "touch",
        "train",
        "try",
        "vote",
        "wait",
        "walk",
        "watch",
        "water",
        "niemals",
        "immer",
        "selalu",
        "folge",
        "frage",
        "lade",
        "stelle",
        "führe",
        "terima",
        "buka",
        "salin",
        "ganti",
        "ingat",
        "pesan",
        "bayar",
        "transfer",
    ]
)


def _share(own: Set[str], known: Set[str]) -> float:
    """Return which share of some stems is known; a stem also counts if one is the beginning of the other."""
    if not own:
        return 0.0
    return sum(stem in known or _has_stem(stem, known) for stem in own) / len(own)


def _has_stem(word: str, stems: Set[str]) -> bool:
    short = word[:_STEM_CHARS]
    if short in stems:
        return True
    return len(short) >= _MIN_STEM_CHARS and any(
        len(stem) >= _MIN_STEM_CHARS and (stem.startswith(short) or short.startswith(stem)) for stem in stems
    )


def _is_german_noun(word: str, known: Set[str], prose: Set[str]) -> bool:
    """Return whether a capitalised German word is a noun made of known words, or has an ending of nouns."""
    return (
        word.endswith(_GERMAN_NOUN_ENDINGS)
        or _is_compound(word, known, prose)
        or (len(word) >= _STEM_CHARS and any(one.endswith(word) or one.startswith(word) for one in known))
        or _shares_part(word, known)
    )


def _shares_part(word: str, known: Set[str]) -> bool:
    """Return whether a long word has a part in common with a known one: "Röntgenbild" with "geröntgt"."""
    if len(word) < _MIN_COMPOUND_CHARS:
        return False
    parts = {word[at : at + _STEM_CHARS] for at in range(len(word) - _STEM_CHARS + 1)}
    return any(part in one for one in known if len(one) >= _STEM_CHARS for part in parts)


def _is_compound(word: str, *known: Set[str]) -> bool:
    """Return whether a word consists of two known words, with or without an s between them."""
    return any(_is_known_part(word[:at], known) and _is_known_part(word[at:], known) for at in range(3, len(word) - 2))


def _is_known_part(part: str, known: Sequence[Set[str]]) -> bool:
    bare = part.removesuffix("s")
    return any(part in words or (len(bare) > 2 and bare in words) for words in known)


def _without_quotations(text: str, cited: Iterable[CitedMessage]) -> str:
    """Return a statement without quotations of some words from its messages, which may begin or end inside a word."""
    known = normalize_quotes("\n".join(" ".join(normalize_characters(one.text).split()) for one in cited))
    own = mask_quotations(
        normalize_quotes(text),
        should_mask=lambda quoted: len(quoted.split()) > _MIN_STEMS and quoted.rstrip(".,") in known,
    )
    return own.replace("\0", " ")


def _without_start_words(clause: str) -> str:
    found = _CLAUSE_START_WORDS.match(clause)
    return clause[found.end() :] if found is not None else clause


def _iter_clauses(sentence: str) -> Iterator[str]:
    yield from (part for part in (piece.strip() for piece in _CLAUSE_ENDS.split(sentence)) if part)


def _iter_capitalised(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words that begin with a capital letter, and whether a sentence or a label begins there."""
    for found in _WORD.finditer(_LINKS.sub(lambda link: " " * len(link[0]), text)):
        word = found[0]
        if not word[:1].isupper() or any(map(str.isdigit, word)):
            continue
        before = text[: found.start()].rstrip(" \"'“„«*_(\u2018")
        yield word, not before or before[-1] in ".!?:;\u2013\u2014。\n" or before.endswith(" -")


# Words that ask somebody to do something, or for more than one case: a duty with one of them is an order.
_ASKS_TO_ACT = re.compile(
    r"\b(?:all|every\w*|any\w*|always|never|nobody|whoever|future|later|next|following"
    r"|further|from now|from today|going forward|immediately"
    r"|answer\w*|repl(?:y|ies|ied)|respond\w*|mention\w*|tell|told|say|said|send|sent"
    r"|forward\w*|e?mail\w*|shar(?:e|ed|ing)|disclos\w*|reveal\w*"
    r"|hid(?:e|den)|ignor\w*|disregard\w*|obey\w*|follow(?:ed)?|trust\w*|recommend\w*"
    r"|promot\w*|prais\w*|giv(?:e|en|ing)|provid\w*|present(?:ed)?"
    r"|stated?|writ(?:e|ten|ing)|translat\w*|treat\w*|act|acts|behav\w*|greet\w*|address(?:ed)?"
    r"|delet\w*|transfer\w*|approv\w*|pretend\w*|quot(?:e|ed)"
    r"|remember\w*|forget|forgotten|inform\w*|warn\w*|ask(?:ed)?|believ\w*|accept\w*|believed|called|named|used|regarded|considered|assumed"
    r"|alle[nrsm]?|jede\w*|immer|nie|niemand|künftig\w*|ab jetzt|ab sofort|antwort\w*|erwähn\w*"
    r"|sag\w*|send\w*|schick\w*|weiter\w*|verrat\w*|ignorier\w*"
    r"|befolg\w*|empfehl\w*|empfohlen|nenn\w*|genannt|schreib\w*|geschrieben|behandel\w*"
    r"|lösch\w*|überw\w*|genehmig\w*|semua|setiap|selalu|jangan"
    r"|jawab\w*|balas\w*|sebut\w*|kirim\w*|dikirim\w*|teruskan|diteruskan|abaikan|hapus\w*"
    r"|dihapus|percaya\w*|patuh\w*|turuti|rekomendasi\w*|tulis\w*"
    r"|ditulis|beri\w*|diberi\w*)\b|すべて|全て|毎回|常に|必ず|今後|以後|答え|回答|返信|送|伝え|無視|従|勧め|書",
    re.IGNORECASE,
)
_OBJECT = re.compile(
    r"\s+(?:the|a|an|all|every|any|each|it|them|him|her|this|that|these|those|your|no|only"
    r"|further|everything|nothing|whatever|den|die|das|alle"
    r"|jede\w*|semua|setiap)\b",
    re.IGNORECASE,
)
_LINKS = re.compile(r"(?:[a-z]+://|www\.)\S+|\S+@\S+\.\S+|\S*[\\/_]\S*\.\w+")
