"""Directives: sentences in which the user says how the model should behave from now on.

``find_directives`` finds them in the messages of a conversation, with the sentences that take an earlier one back.
Lines that the user only passed on do not count: code, quotations, forwarded mails, chat logs and pasted texts.

It works by closed word lists, which a user can extend. A directive found here gets no authority by it: it only stays
longer in the prompt, word for word, with the number of its message.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from lamella.core.text.content import UNSPACED_SCRIPTS, iter_lines_with_code_flag
from lamella.core.text.frames import FrameKind, find_foreign, find_frame
from lamella.core.text.phrases import Phrases, phrase_pattern
from lamella.core.text.requests import ends_in_japanese_past, is_lasting_request, request_of_polite_question
from lamella.core.text.rule_detection import quote_spans
from lamella.core.text.word_lists import WordLists

# A longer sentence is cut to the clauses from its cue on.
_MAX_CHARS = 400
# A message with more characters than this is a text, and only short paragraphs at its ends are the user's own words.
_LONG_MESSAGE_CHARS = 900
_MAX_OWN_PARAGRAPH_CHARS = 400
_MAX_GREETING_CHARS = 60
# Words of a topic: this many first letters are compared, which ignores most endings.
_TOPIC_CHARS = 5
_MIN_TOPIC_CHARS = 4

_NEVER = re.compile(r"(?!)")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…])(?<!\b\w\.\w\.)[\"'\u201d\u2019)*_]*\s+|(?<=[\u3002\uff01\uff1f])")
_CLAUSE_START = re.compile(
    r"(?:^|[,;:\u2013\u2014(\u3001]\s*|\s-\s)(?:(?:and|but|also|then|so|please|just|oh|ok|okay|und|aber|auch"
    r"|dann|bitte|dan|"
    r"lalu|tapi|juga|tolong|mohon|harap|ya|hey|hi|actually|btw|by the way|übrigens|ngomong-ngomong)\b[,:]?\s+)*"
    r"|\b(?:and|but|also|then|please|und|aber|bitte|dan|lalu|tapi|tolong|mohon|harap)\s+",
    re.IGNORECASE,
)
_QUESTION_END = re.compile(r"[?\uff1f][\s\"'\u201d\u2019)*_]*$")
_CONSENT_END = re.compile(
    r"[,;\u2013\u2014-]?\s+(?:ok|okay|yeah|yes|right|innit|gell|gelle|ne|gelt|deal|got it|please|alright"
    r"|all right|yes"
    r"|will you|would you|could you|oke|ya|bisa|boleh|ja|bitte"
    r"|einverstanden)\s*[?\uff1f]+[\"'\u201d\u2019)*_ ]*$",
    re.IGNORECASE,
)
_POLITE_REQUEST = re.compile(
    r"(?:please |ok(?:ay)?,? |and |also,? )?(?:can|could|would|will) you (?:please |kindly )?(?:always|never"
    r"|from now on|not ever|remember to|stop \w+ing)\b"
    r"|(?:please |and |also,? )?(?:can|could|would|will) you\b.*\b(?:(?:everything|anything|whatever) you"
    r"|all (?:of )?your|in (?:every|each)|from now on"
    r"|whenever|(?:every|each|any) ?time|in (?:the )?future|from here on)\b"
    r"|(?:bisakah|bisa|dapatkah|maukah|boleh) (?:kamu |anda )?(?:tolong )?(?:selalu|mulai sekarang|jangan)\b"
    r"|(?:kannst|könntest|würdest) du (?:bitte )?(?:immer|ab jetzt|künftig|nie)\b"
    r"|.*(?:くれますか|もらえますか|いただけますか|くれる)[?\uff1f]",
    re.IGNORECASE,
)
_LIST_MARKUP = re.compile(r"\A[ \t]*(?:(?:[*+\u2022-]+|\d{1,3}[.)])[ \t]+)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S|^=+\s*$|\s*§\s*\d")
_QUOTE_LINE = re.compile(r" {0,3}[>|]")
_SPEAKER_LINE = re.compile(
    r"\s*(?:[\[(]?\d{1,4}[-:./]\d{1,2}(?:[-:./]\d{1,4})*+[^\w\n]*(?:[ap]m)?[\])]?\s*[-\u2013]?\s*){0,2}"
    r"(?:[-*]\s+)?[*_<@]{0,3}(?P<name>[^\W\d_][\w.'\u2019-]*(?:[ /][^\W_][\w.'\u2019-]*){0,3})[>*_]{0,3}\s?[:\uff1a]\s*[*_]{0,3}\s*\S"
)
_STAMPED_LINE = re.compile(
    r"\s*(?:[^\W\d_][\w.'\u2019-]*\s){0,3}[\[(]?\d{1,2}[:.]\d{2}(?::\d{2})?(?:,[^\])\n]{0,20})?\s*(?:[ap]m)?[\])]?(?:\s|$)",
    re.IGNORECASE,
)
_FORWARD_LINE = re.compile(
    r"\s*(?:-{2,}+.*(?:forwarded|original|weitergeleitet|ursprüngliche|diteruskan|転送|元のメッセージ).*"
    r"|(?:begin )?forwarded message.*|on .{4,80}\bwrote:|am .{4,80}\bschrieb\b.*:|pada .{4,80}\bmenulis:"
    r"|fwd?:.*|wg:.*)$",
    re.IGNORECASE,
)
# Labels with which people introduce their own words.
_OWN_LABELS = frozenset(
    {
        "note", "ps", "p.s", "nb", "rule", "rules", "important", "remember", "reminder", "format", "style", "language",
        "update", "correction", "edit", "btw", "also", "question", "context", "request", "instruction", "instructions",
        "preference", "preferences", "hinweis", "wichtig", "regel", "regeln", "notiz", "merke", "korrektur", "frage",
        "catatan", "penting", "aturan", "ingat", "koreksi", "pertanyaan", "注意", "重要", "ルール", "お願い", "補足", "追記",
        "one thing", "one more thing", "two things", "from now on", "going forward", "ab jetzt", "mulai sekarang", "今後",
        "always", "never", "immer", "nie", "selalu", "jangan", "merk", "bitte", "please", "tolong", "für", "bei", "untuk", "for",
    }
)  # fmt: skip
# Words before a colon with which people introduce instructions of their own.
_OWN_LEAD = re.compile(
    r"\b(?:you|your|(?:my|our|your|following|few|some|two|three|these) (?:\w+ )?(?:rules?|preferences?"
    r"|wish(?:es)?|requests?|requirements?)"
    r"|things?|points?|favou?r|requests?|please|remember|reminder|(?:my|your|all|every|each|future) (?:answers?"
    r"|repl(?:y|ies)|responses?)|from now on|always|never"
    r"|du|dir|deine?\w*|meine (?:regeln?|wünsche?)|bitte|merk\w*|immer|nie|kamu|anda|aturan (?:saya|untuk"
    r"|buat)|permintaan saya|tolong|ingat|selalu|jangan)\b"
    r"|^\W*(?:rules?|preferences?|regeln?|wünsche?|aturan|permintaan|style|format|ルール|お願い)\W*$|お願い"
    r"|回答|今後|必ず",
    re.IGNORECASE,
)
_FIRST_PERSON_END = re.compile(
    r"\b(?:i|i've|i'd|we|you|ich|wir|du|saya|aku|kami|gue|私|僕)\W+(?:\w+\W+)?$", re.IGNORECASE
)
# Somebody of whom the user speaks; after a cue that says nothing about who gave the order.
_OWN_PERSON = re.compile(r"my |meine? |(?:bos|ibu|bapak|guru) saya|[父母]が|先生が|上司", re.IGNORECASE)
# Small words before the subject of a sentence.
_BEFORE_SUBJECT = re.compile(
    r"\W*(?:(?:and|but|so|oh|ok|also|well|now|then|und|aber|also|ach|dan|tapi|eh|oh ya|でも|で|あと|亡くなった|うちの|私の)\W*)*",
    re.IGNORECASE,
)
# "On the box it says": where a text stands, before what it says.
_PLACE_FIRST = re.compile(r"\W*(?:di|pada|on|in|at|auf|am|an|im|the|der|die|das)\b", re.IGNORECASE)
# After one of these words a sentence about somebody else may say what follows for the model.
_CONSEQUENCE = re.compile(
    r"\b(?:so|therefore|hence|please|pls|also|deshalb|daher|deswegen|bitte|jadi|makanya|tolong|mohon"
    r"|karena itu)\b|ので|だから|ため",
    re.IGNORECASE,
)
_JAPANESE_ORDER_TO_SAY = re.compile(
    r"と(?:言った|言い?っ?た)ら|と(?:言|い)う(?:まで|とき|時|なら|場合)|と\w{0,4}?(?:て|って|いて)(?:ください|下さい|ね|よ|ほしい\w*)?[。!\uff01\s]*$"
)
_MIN_FOREIGN_LEAD_WORDS = 3
_LEAD_MARK = re.compile(r"[:\uff1a](?=\s|[\u201c\u201e\"'\u300c\u00ab]|$|(?<=\uff1a))|\s[-\u2013\u2014]\s|->|=>|\u2192")
_MIN_LEAD_CHARS, _MAX_LEAD_CHARS = 4, 160
_LEAD_END = re.compile(r"(?:[:\uff1a]|->|=>|\u2192)\s*$")
# A question about what follows it: "Is this legit?"
_ASKS_ABOUT_REST = re.compile(r"\b(?:this|that|these|das|dies\w*|ini|begini)\b|これ|この|次の", re.IGNORECASE)
_SENTENCE_END_MARK = re.compile(r"[.!,…\u3002\uff01]\W*$")
_GREETING_END = re.compile(r"^.{0,40}?[,!:\uff0c\u3001\u3002\uff01]")
_ELEMENT = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</\1\s*>", re.DOTALL)
# A question about the text above it.
_ABOUT_TEXT = re.compile(
    r"\b(?:is|was|are|isn't|does|did|do|can|could|should|must|may|would)\s+(?:that|this|it|he|she|they|these|those)\b"
    r"|\b(?:ist|sind|stimmt|darf|dürfen|soll|sollen|kann|muss|gilt)\s+(?:das|dies\w*|er|sie|es|man)\b"
    r"|\b(?:ini|itu)\s+(?:resmi|benar|asli|boleh|sah|wajar|bagus|aman)|\b(?:resmi|benar|asli|bagus|wajar"
    r"|aman)\s+(?:gak|nggak|tidak|ga|kah)"
    r"|(?:これ|それ)(?:は|って)",
    re.IGNORECASE,
)
# Words in scripts without spaces are compared by pairs of kanji or katakana.
_UNSPACED_TOPIC = re.compile("[\u4e00-\u9fff]{2,}|[\u30a1-\u30fa\u30fc]{2,}")
_WORD = re.compile(rf"[^\W_{UNSPACED_SCRIPTS}]+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED_SCRIPTS}]{{3}}")
# This many characters at the end of a text decide about an ending.
_MAX_ENDING_CHARS = 30
# "Tables over prose, always."
_ELLIPTIC_END = re.compile(
    r"(?:,\s*|\s)(?:always|ever|throughout|every time|each time|only|immer|nie|durchgehend|durchweg|stets"
    r"|selalu|terus|saja ya)"
    r"(?:,?\s*(?:please|thanks|thank you|bitte|danke|ya|dong|yeah))?\s*[.!?]*$",
    re.IGNORECASE,
)
_CLAUSE_BREAK = re.compile(r"(?<=[;:])\s+|(?<=,)\s+|\s+[\u2013\u2014-]\s+")


@dataclass(frozen=True, slots=True, eq=False)
class _Cues:
    """Word lists as phrases and patterns."""

    anywhere: Phrases
    openings: Phrases
    endings: re.Pattern[str]
    frequency: Phrases
    orders: Phrases
    order_subjects: Phrases
    report_subjects: re.Pattern[str]
    reports: Phrases
    speech: Phrases
    withdrawals: Phrases
    changes: Phrases
    introductions: Phrases
    lead_reports: Phrases
    reporting: Phrases
    headers: re.Pattern[str]
    greetings: re.Pattern[str]
    closings: re.Pattern[str]
    documents: re.Pattern[str]
    common: frozenset[str]
    carriers: Phrases
    persons: Phrases
    work: Phrases
    answer_words: tuple[str, ...]
    order_verbs: tuple[str, ...]


def find_directives(texts: Mapping[str, str], words: WordLists) -> dict[str, tuple[str, ...]]:
    """Return the directives of messages by message id, verbatim and in order, leaving out messages without any.

    ``texts`` are the messages of the user in the order in which they were said. A sentence that changes or takes back
    an earlier directive counts as one, too.
    """
    cues = _compile(words)
    found: dict[str, tuple[str, ...]] = {}
    topics: list[frozenset[str]] = []
    for name, text in texts.items():
        sentences: list[str] = []
        covered = ""
        for one in _read_message(text, cues):
            # An item of a list that belongs to a directive is a part of it.
            if one.text in covered:
                continue
            directive = one.directive or _detect_withdrawal(one, topics)
            if directive is not None:
                has_list = one.text.endswith((":", "\uff1a"))
                covered = one.listed if has_list else covered
                sentences.append(directive + one.listed if has_list else directive)
                # What takes a directive back is no directive of its own, with a topic to be taken back.
                if one.directive is not None:
                    topics.append(one.topic)
        if sentences:
            found[name] = tuple(dict.fromkeys(sentences))
    return found


class _Sentence(NamedTuple):
    """A sentence of the user that has a cue, with the list after it.

    ``directive`` is what directs in it, if it does. ``withdraws`` and ``changes`` say whether it may take back an
    earlier directive, of any topic and of its own topic.
    """

    text: str
    listed: str
    directive: str | None
    topic: frozenset[str]
    withdraws: bool
    changes: bool


@lru_cache(maxsize=1 << 13)
def _read_message(text: str, cues: _Cues) -> tuple[_Sentence, ...]:
    """Return the sentences of a message that may be directives; the same messages are read for every compaction."""
    said = _list_own_sentences(text, cues)
    read = [_read_sentence(one.text, one.listed, cues) for one in said]
    frames = [_find_frame_of(one.text, found, cues) for one, found in zip(said, read, strict=True)]
    foreign = find_foreign(frames, [one.block for one in said])
    # A sentence that hands over what follows is about that text.
    framing = {at for at, kind in enumerate(frames) if kind is not None and foreign}
    return tuple([one for at, one in enumerate(read) if one is not None and at not in foreign and at not in framing])


def _find_frame_of(sentence: str, found: _Sentence | None, cues: _Cues) -> FrameKind | None:
    own = _words_written_by_user(sentence)
    lasts = found is not None and found.directive is not None
    if lasts and (cues.work.search(own) is None or cues.anywhere.search(own) or cues.frequency.search(own)):
        return None
    return find_frame(own, cues.carriers, cues.work, asks=_is_question(sentence))


def _read_sentence(sentence: str, listed: str, cues: _Cues) -> _Sentence | None:
    directive = _detect(sentence, cues)
    withdraws = changes = False
    if not _is_question(sentence):
        own = _words_written_by_user(sentence)
        withdraws = cues.withdrawals.search(own) is not None
        changes = withdraws or cues.changes.search(own) is not None
    if directive is None and not changes:
        return None
    topic = _topic(sentence if directive is not None else _words_written_by_user(sentence), cues)
    return _Sentence(sentence, listed, directive, topic, withdraws, changes)


def _detect(sentence: str, cues: _Cues) -> str | None:
    """Return the sentence if it is a directive; of a very long one, the clauses from its cue on."""
    own = _words_written_by_user(sentence)
    if _is_question(sentence):
        asked = request_of_polite_question(own)
        lasts = asked is not None and is_lasting_request(asked, cues.answer_words, cues.order_verbs, asked=True)
        # "Could you look over this mail?" asks about a text.
        if (
            not lasts
            or len(sentence) > _MAX_CHARS
            or find_frame(asked or "", cues.carriers, cues.work, asks=False) is not None
        ):
            return None
        return None if _is_reported(own, 0, cues) else sentence
    if ends_in_japanese_past(own):
        return None
    at = _find_cue(cues.reports.blank_out(own), cues)
    # Without word lists nothing is looked for.
    if at is None and cues.answer_words and is_lasting_request(own, cues.answer_words, cues.order_verbs):
        at = 0
    if at is None or _is_reported(own, at, cues):
        return None
    return sentence if len(sentence) <= _MAX_CHARS else _cut_to_clauses(sentence, at)


def _is_reported(own: str, at: int, cues: _Cues) -> bool:
    """Return whether a sentence with a cue at this position reports what somebody else said or does."""
    speech = next((one for one in cues.speech.finditer(own) if not _asks_to_say(own, one)), None)
    if speech is not None and (speech.start() < at or _OWN_PERSON.match(speech[0]) is None):
        return _CONSEQUENCE.search(own[speech.end() : max(at, speech.end())]) is None
    person = cues.persons.search(own)
    if (
        person is not None
        and _BEFORE_SUBJECT.fullmatch(own[: person.start()])
        and _CONSEQUENCE.search(own[person.end() :]) is None
    ):
        return True
    carrier = cues.carriers.search(own[:at])
    if carrier is not None and _PLACE_FIRST.match(own):
        return True
    return any(
        _FIRST_PERSON_END.search(own[: found.start()]) is None and not _asks_to_say(own, found)
        for found in cues.reporting.finditer(own[:at])
    )


def _asks_to_say(own: str, found: re.Match[str]) -> bool:
    """Return whether a Japanese verb of saying is an order or a condition: "say that you do not know"."""
    return _JAPANESE_ORDER_TO_SAY.match(own[found.start() :]) is not None


def _find_cue(own: str, cues: _Cues) -> int | None:
    """Return the position of what makes a sentence a directive, or None."""
    found = cues.anywhere.search(own)
    if found is not None:
        return found.start()
    starts = {match.end() for match in _CLAUSE_START.finditer(own)} | {0}
    opening = cues.openings.first_match_at(own, starts)
    if opening is not None:
        return opening
    if _ELLIPTIC_END.search(own) is not None and not _has_subject(own, cues):
        return 0
    # A frequency word alone describes what happens often. With an order in the same sentence it is a directive.
    frequent = next(
        (match.start() for match in cues.frequency.finditer(own) if not _is_report(own[: match.start()], cues)), None
    )
    if frequent is None:
        return None
    ordered = (
        cues.endings.search(own[-_MAX_ENDING_CHARS:]) is not None
        or cues.order_subjects.search(own) is not None
        or cues.orders.first_match_at(own, starts) is not None
    )
    return frequent if ordered else None


def _has_subject(own: str, cues: _Cues) -> bool:
    """Return whether a sentence has a subject that makes it a description, such as "it"."""
    return any(cues.report_subjects.search(own[: match.end()]) for match in _WORD.finditer(own))


def _is_report(before: str, cues: _Cues) -> bool:
    """Return whether the words before a frequency word make it a description."""
    return cues.report_subjects.search(before[-_MAX_ENDING_CHARS:]) is not None


def _detect_withdrawal(one: _Sentence, topics: Sequence[frozenset[str]]) -> str | None:
    """Return the sentence if it takes back or changes an earlier directive."""
    if not topics or not (
        one.withdraws or (one.changes and any(not one.topic.isdisjoint(earlier) for earlier in topics))
    ):
        return None
    return one.text if len(one.text) <= _MAX_CHARS else _cut_to_clauses(one.text, 0)


def _is_question(sentence: str) -> bool:
    return (
        _QUESTION_END.search(sentence) is not None
        and _CONSENT_END.search(sentence) is None
        and _POLITE_REQUEST.match(sentence) is None
    )


def _topic(sentence: str, cues: _Cues) -> frozenset[str]:
    """Return the beginnings of the words that say what a sentence is about."""
    words = (word.lower() for word in _WORD.findall(sentence))
    spaced = {word[:_TOPIC_CHARS] for word in words if len(word) >= _MIN_TOPIC_CHARS and word not in cues.common}
    runs = _UNSPACED_TOPIC.findall(sentence)
    return frozenset(spaced | {run[at : at + 2] for run in runs for at in range(len(run) - 1)} - cues.common)


def _words_written_by_user(sentence: str) -> str:
    """Return the sentence with straight apostrophes, in which quotations are blank; positions stay the same."""
    own = _straighten(sentence)
    for start, end in quote_spans(sentence):
        own = f"{own[:start]}{' ' * (end - start)}{own[end:]}"
    return own


def _straighten(text: str) -> str:
    return text.replace("\u2019", "'")


def _cut_to_clauses(sentence: str, at: int) -> str | None:
    """Return the clauses of a long sentence from the one with the cue on, as many as fit."""
    edges = [0, *(match.end() for match in _CLAUSE_BREAK.finditer(sentence)), len(sentence)]
    start = max(edge for edge in edges if edge <= at)
    end = max((edge for edge in edges if start < edge <= start + _MAX_CHARS), default=None)
    return None if end is None else sentence[start:end].strip()


# The user's own words.


def _lines_written_by_user(text: str, cues: _Cues) -> list[str]:
    """Return the lines of a message, with an empty line for each line that the user only passed on."""
    text = _without_foreign_spans(text)
    lines = ["" if is_code or _QUOTE_LINE.match(line) else line for line, is_code in iter_lines_with_code_flag(text)]
    starts = [
        at
        for at in (_find_paste_start(lines, cues), _find_document_start(lines, cues), _find_letter_start(lines, cues))
        if at is not None
    ]
    if starts:
        lines = _keep_introduction(lines, min(starts), cues)
    lines = _drop_introduced_text(lines, cues)
    lines = _drop_text_above(lines, cues)
    if _is_pasted_letter(lines, cues):
        return [""] * len(lines)
    if len(text) > _LONG_MESSAGE_CHARS:
        lines = _keep_short_ends(lines)
    return lines


def _without_foreign_spans(text: str) -> str:
    """Return the text with a line break for each quotation of several sentences and each element of markup."""
    spans = [(start, end) for start, end in quote_spans(text) if _SENTENCE_ENDS.search(text[start:end].strip())]
    spans += [match.span() for match in _ELEMENT.finditer(text)]
    for start, end in sorted(spans, reverse=True):
        if "\n" not in text[start:end] or "\n>" not in text[start:end]:
            text = f"{text[:start]}\n{text[end:]}"
    return text


def _find_paste_start(lines: Sequence[str], cues: _Cues) -> int | None:
    """Return the index of the first line after which everything is somebody else's text."""
    for at, line in enumerate(lines):
        if _FORWARD_LINE.match(line) or cues.headers.match(line):
            return at
        found = cues.introductions.search(_straighten(line))
        if found is None:
            ending = _LEAD_END.search(line)
            if ending is not None and _is_foreign_lead(line[: ending.start()], cues):
                return at
            if _is_title(lines, at, cues):
                return at
            continue
        follows = any(map(str.strip, lines[at + 1 :]))
        if (
            follows
            or re.search(r"[:\uff1a\u3002]\s*\S", line)
            or (at == 0 and _asks_before_text(line[found.start() :]))
        ):
            return at
    return None


def _is_title(lines: Sequence[str], at: int, cues: _Cues) -> bool:
    """Return whether the first line of a message is a question or a title of the text below it."""
    line = lines[at].strip()
    if not line or any(map(str.strip, lines[:at])) or not any(map(str.strip, lines[at + 1 :])):
        return False
    own = _straighten(line)
    refers = _ASKS_ABOUT_REST.search(own) is not None
    if _QUESTION_END.search(line):
        return refers
    if lines[at + 1].strip() or _detect(line, cues) is not None:
        return False
    return refers or (not _SENTENCE_END_MARK.search(line) and _is_foreign_lead(line, cues))


def _asks_before_text(text: str) -> bool:
    """Return whether a question comes before other sentences in the same line."""
    return re.search(r"[?\uff1f]\s*\S", text) is not None


def _is_foreign_lead(lead: str, cues: _Cues) -> bool:
    """Return whether the words before a colon introduce what somebody else said."""
    own = _straighten(lead)
    own = own[_last_sentence_end(own) :]
    if (
        "\u00a7" in own
        or cues.speech.search(own)
        or cues.introductions.search(own)
        or cues.lead_reports.search(own)
        or cues.documents.match(own)
    ):
        return True
    if _OWN_LEAD.search(own) or cues.anywhere.search(own) or cues.openings.first_match_at(own, (0,)) is not None:
        return False
    if cues.carriers.search(own):
        return True
    unspaced = _UNSPACED_RUN.search(own) is not None
    return unspaced or len(_WORD.findall(own)) >= _MIN_FOREIGN_LEAD_WORDS


def _find_foreign_lead(line: str, cues: _Cues) -> re.Match[str] | None:
    """Return the colon, dash or arrow of a line after which there is somebody else's text, if there is one."""
    start = 0
    for found in _LEAD_MARK.finditer(line):
        lead = line[max(start, found.start() - _MAX_LEAD_CHARS) : found.start()]
        is_dash = found[0].strip() in ("-", "\u2013", "\u2014")
        if len(lead) >= _MIN_LEAD_CHARS and (_is_introduction(lead, cues) if is_dash else _is_foreign_lead(lead, cues)):
            return found
        start = start if is_dash else found.end()
    return None


def _is_introduction(lead: str, cues: _Cues) -> bool:
    own = _straighten(lead)
    return cues.introductions.search(own) is not None or cues.lead_reports.search(own) is not None


def _drop_introduced_text(lines: Sequence[str], cues: _Cues) -> list[str]:
    """Return the lines without what follows "Translate into French:" in its paragraph."""
    left = list(lines)
    for at, line in enumerate(lines):
        found = _find_foreign_lead(line, cues) if left[at] else None
        if found is None or not line[found.end() :].strip():
            continue
        left[at] = line[: _last_sentence_end(line[: found.start()])]
        following = at + 1
        while following < len(lines) and lines[following].strip():
            left[following] = ""
            following += 1
    return left


def _find_letter_start(lines: Sequence[str], cues: _Cues) -> int | None:
    """Return the index of a line after the first that greets somebody, if there is one."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return next(
        (
            at
            for at in filled[1:]
            if cues.greetings.match(_straighten(lines[at].strip())) and _GREETING_END.match(lines[at].strip())
        ),
        None,
    )


def _find_document_start(lines: Sequence[str], cues: _Cues) -> int | None:
    """Return the index of the first line of a document or of a chat log, if there is one."""
    named = [at for at, line in enumerate(lines) if _begins_with_speaker_name(line)]
    stamped = [at for at, line in enumerate(lines) if _STAMPED_LINE.match(line)]
    headings = [at for at, line in enumerate(lines) if _HEADING.match(line) or cues.documents.match(_straighten(line))]
    found = [*headings[:1], *(stamped[:1] if len(stamped) > 1 else ()), *(named[:1] if named else ())]
    return min(found, default=None)


def _begins_with_speaker_name(line: str) -> bool:
    """Return whether a line begins with the name of a speaker, as in a chat log or a play."""
    found = _SPEAKER_LINE.match(line)
    if found is None or "://" in line[: found.end() + 2]:
        return False
    name = found["name"].casefold().strip(" .")
    # A list of one's own may begin with "Format:"; a name begins with a capital or is one word.
    return name not in _OWN_LABELS and name.split()[0] not in _OWN_LABELS and _looks_like_name(found["name"])


def _looks_like_name(name: str) -> bool:
    parts = name.replace("/", " ").split()
    return len(parts) <= 2 or all(part[:1].isupper() for part in parts)


def _keep_introduction(lines: Sequence[str], start: int, cues: _Cues) -> list[str]:
    """Return the lines before a pasted text, and of its first line what introduces it."""
    first = lines[start]
    kept = ""
    found = cues.introductions.search(_straighten(first))
    if found is not None and not _FORWARD_LINE.match(first) and not cues.headers.match(first):
        # The user wrote the text before the introduction in its line.
        kept = first[: found.start()]
        kept = kept[: _last_sentence_end(kept)]
    return [*lines[:start], kept, *[""] * (len(lines) - start - 1)]


def _last_sentence_end(text: str) -> int:
    return max((match.end() for match in _SENTENCE_ENDS.finditer(text)), default=0)


def _drop_text_above(lines: Sequence[str], cues: _Cues) -> list[str]:
    """Return the lines without the text above a last paragraph that asks to do something with it."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if len(filled) < 2:
        return list(lines)
    last = _straighten(lines[filled[-1]])
    blank = [at for at in range(filled[-1]) if not lines[at].strip()]
    end = blank[-1] if blank and any(at < blank[-1] for at in filled) else filled[-1]
    above = " ".join(line.strip() for line in lines[:end] if line.strip())
    asks = _ABOUT_TEXT.search(last) is not None and len([one for one in _SENTENCE_ENDS.split(above) if one.strip()]) > 1
    if not cues.introductions.search(last) and not asks:
        return list(lines)
    return [*[""] * end, *lines[end:]]


def _is_pasted_letter(lines: Sequence[str], cues: _Cues) -> bool:
    """Return whether the lines begin like a letter and end like one."""
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) < 2 or not cues.greetings.match(_straighten(filled[0])):
        return False
    return len(filled[0]) < _MAX_GREETING_CHARS and any(cues.closings.match(_straighten(line)) for line in filled[1:])


def _keep_short_ends(lines: Sequence[str]) -> list[str]:
    """Return the lines of a long message, all of them blank except a short first and a short last paragraph."""
    paragraphs: list[list[int]] = [[]]
    for at, line in enumerate(lines):
        if line.strip():
            paragraphs[-1].append(at)
        elif paragraphs[-1]:
            paragraphs.append([])
    filled = [paragraph for paragraph in paragraphs if paragraph]
    ends = {at for paragraph in (filled[:1] + filled[-1:]) if _is_short(paragraph, lines) for at in paragraph}
    return [line if at in ends else "" for at, line in enumerate(lines)]


def _is_short(paragraph: Sequence[int], lines: Sequence[str]) -> bool:
    return sum(len(lines[at]) for at in paragraph) <= _MAX_OWN_PARAGRAPH_CHARS


class _OwnSentence(NamedTuple):
    """A sentence without list markup, the list that follows it, and the number of its block of lines."""

    text: str
    listed: str
    block: int


def _list_own_sentences(text: str, cues: _Cues) -> list[_OwnSentence]:
    """Return the sentences of a message that nothing shows to be somebody else's."""
    lines = _lines_written_by_user(text, cues)
    found: list[_OwnSentence] = []
    block = 0
    for at, line in enumerate(lines):
        bare = _LIST_MARKUP.sub("", line, count=1).strip()
        if not bare:
            block += 1
            continue
        sentences = [sentence.strip() for sentence in _SENTENCE_ENDS.split(bare)]
        sentences = [sentence for sentence in sentences if sentence]
        found += [_OwnSentence(sentence, "", block) for sentence in sentences[:-1]]
        found.append(_OwnSentence(sentences[-1], _following_list(lines, at), block))
    return found


def _following_list(lines: Sequence[str], at: int) -> str:
    """Return the list items directly after a line, unchanged, as many as fit."""
    end = at + 1
    while end < len(lines) and _LIST_MARKUP.match(lines[end]) and sum(map(len, lines[at:end])) < _MAX_CHARS:
        end += 1
    return "".join(f"\n{line}" for line in lines[at + 1 : end])


# Patterns.


@lru_cache(maxsize=8)
def _compile(words: WordLists) -> _Cues:
    return _Cues(
        anywhere=Phrases(words.directive_cues),
        openings=Phrases(words.directive_openings),
        endings=_alternatives_pattern(words.directive_endings, ends=True),
        frequency=Phrases(words.frequency_words),
        orders=Phrases((*words.order_openings, *words.order_verbs)),
        order_subjects=Phrases(words.order_subjects),
        report_subjects=_alternatives_pattern(words.report_subjects, before=True),
        reports=Phrases(words.reports),
        speech=Phrases(words.speech_reports),
        withdrawals=Phrases(words.withdrawals),
        changes=Phrases(words.change_words),
        introductions=Phrases(words.paste_introductions),
        lead_reports=Phrases((*words.lead_words, *words.reporting_verbs)),
        reporting=Phrases(words.reporting_verbs),
        headers=_alternatives_pattern(words.mail_headers, header=True),
        greetings=_alternatives_pattern(words.greetings),
        closings=_alternatives_pattern(words.closings),
        documents=_alternatives_pattern(words.document_words),
        common=frozenset(words.common_words),
        carriers=Phrases((*words.text_carriers, *words.reporting_verbs)),
        persons=Phrases(words.other_persons),
        work=Phrases((*words.paste_introductions, *words.lead_words)),
        answer_words=words.answer_words,
        order_verbs=(*words.order_openings, *words.order_verbs),
    )


def _alternatives_pattern(
    phrases: Iterable[str], *, ends: bool = False, before: bool = False, header: bool = False
) -> re.Pattern[str]:
    """Return a pattern for any of the phrases: at the end of a sentence, at the end of a text, or as a header line."""
    parts = [phrase_pattern(phrase) for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase))]
    if not parts:
        return _NEVER
    pattern = f"(?:{'|'.join(parts)})"
    if ends:
        pattern += r"(?:ね|よ|よね|な|です)?[.!\u3002\uff01\s]*$"
    if before:
        pattern += r"[\s]*$"
    if header:
        pattern = rf"\s*[*_]{{0,2}}{pattern}[*_]{{0,2}}\s?[:\uff1a]"
    return re.compile(pattern, re.IGNORECASE)
