"""Standing wishes: sentences in which somebody says how to behave from now on, found by closed lists of cues.

What stands in a code fence, in a block quote or in quotation marks is somebody else's, or an example, and is none.
"""

import re
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache

from lamella.core.text.fences import walk_lines
from lamella.core.text.said.quotes import list_spans

# English, then Indonesian. A cue is words in their order; each stands at the edges of words.
CUES: frozenset[str] = frozenset(
    {
        # From when on, and how often
        "always", "never", "from now on", "from here on", "from here on out", "from this point on", "from today on",
        "from this point forward", "starting now", "starting today", "as of now", "as of today", "going forward",
        "moving forward", "in future", "in the future", "for the future", "for future", "next time", "henceforth",
        "whenever", "every time", "each time", "any time", "anytime", "when i ask", "if i ask", "when i say",
        "if i say", "when you answer", "when answering", "as a rule", "by default", "at all times", "without exception",
        "for the rest of", "until further notice", "until i say", "until i tell you", "unless i",
        "in every answer", "in every reply", "in every response", "in all answers", "in all replies",
        "in all responses", "in your answers", "in your replies", "in your responses", "your answers should",
        "your replies should", "your responses should", "every answer", "every reply", "every response",
        # What is liked, and what is not
        "i prefer", "i'd prefer", "i would prefer", "i strongly prefer", "i generally prefer", "i usually prefer",
        "i really prefer", "i much prefer", "we prefer", "we'd prefer", "we would prefer", "i'd rather",
        "i would rather", "i'd much rather", "i would much rather", "rather than", "instead of", "my preference",
        "my preferred", "i like", "i don't like", "i do not like", "i dislike", "i hate", "i love", "i enjoy",
        "i can't stand", "i cannot stand", "i tend to", "i lean towards", "i favor", "i favour", "my favorite",
        "my favourite", "i'm more comfortable", "i am more comfortable", "i'm allergic", "i am allergic",
        "i don't eat", "i do not eat", "i don't drink", "i do not drink", "i avoid", "i'm not a fan of",
        "i am not a fan of",
        # What to remember and to do
        "please remember", "remember:", "remember that", "remember to", "remember this", "keep in mind",
        "bear in mind", "don't forget", "do not forget", "make sure", "be sure to", "make it a habit",
        "i want you to", "i'd like you to", "i would like you to", "i need you to", "i expect you to",
        "please avoid", "avoid", "do not ever", "don't ever", "please don't", "please do not", "do not use",
        "don't use", "only use", "use only", "please stop", "stop using", "stick to", "stick with", "no longer",
        "at most", "keep your answers", "keep your replies", "keep your responses", "keep answers", "keep replies",
        "keep responses", "please keep", "answer in", "reply in", "respond in", "answer me in", "call me",
        "address me", "refer to me", "all future", "future answers", "future replies", "future responses",
        # As it is typed in a hurry
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

_LONGEST = 400
# The apostrophe of print, which cues are not written with.
_CURVED = "\u2019"
_MARKUP = re.compile(r"[ \t]*(?:(?:[#*+-]+|\d{1,3}[.)])[ \t]+)*")
_QUOTED = re.compile(r" {0,3}>")
# The second full stop of an abbreviation such as e.g. ends no sentence.
_ENDS = re.compile(r"(?<=[.!?…])(?<!\b\w\.\w\.)[\"'\u201d\u2019)*_]*\s+|(?<=[。\uff01\uff1f])")
# Words that hold a cue and wish for nothing: what somebody did or never did, and turns of speech.
_NO_WISH = re.compile(
    r"(?<!\w)(?:(?:i|we)(?:'ll| will) [^.!?]{0,60}next time|never ?mind|as always|not always|almost (?:always|never)"
    r"|instead of that|moving forward with"
    r"|(?:i|we|he|she|they|you)(?:'ve|'d| have| had| has|'s) (?:also |just |already )?(?:always|never)"
    r"|(?:i|we)(?:'ll| will| want to| just want to| wanted to) make sure|love to know|like to know|i'd love to"
    r"|saya suka lupa"
    # How something or somebody is, and what happened to whoever writes
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
    # What is asked for once
    r"|i(?:'d like| want| need| would like) you to (?:elaborate on|(?:write|create|generate|draft"
    r"|build|implement|make|find|fix|translate|summari[sz]e|compare|analy[sz]e|describe) "
    r"(?:me )?(?:an?|the|this|some|my|one|two|three|\d+))"
    r")(?!\w)",
    re.IGNORECASE,
)
# A sentence that asks for nothing but consent is none that asks.
_CONSENT = re.compile(
    r"[,;\u2013\u2014-]?\s+(?:ok|okay|please|alright|all right|yes|will you|would you|could you|oke|ya|bisa|boleh)"
    r"\s*[?\uff1f]+[\"'\u201d\u2019)*_ ]*$",
    re.IGNORECASE,
)
# It asks for something from now on, politely.
_POLITE = re.compile(
    r"(?:please |ok(?:ay)?,? |and |also,? )?(?:can|could|would|will) you (?:please |kindly )?(?:always|never"
    r"|from now on|not ever|remember to|stop using)\b"
    r"|(?:bisakah|bisa|dapatkah|maukah|boleh) (?:kamu |anda )?(?:tolong )?(?:selalu|mulai sekarang|jangan)\b",
    re.IGNORECASE,
)
# Where a sentence that is too long may be parted.
_CLAUSE = re.compile(r"(?<=[;:])\s+|(?<=,)\s+|\s+[\u2013\u2014-]\s+")


def find_wishes(text: str, *, cues: Set[str] = CUES) -> tuple[str, ...]:
    """The standing wishes of what a user typed, verbatim, in their order, each once."""
    pattern = _compile(frozenset(cues))
    if not pattern.search(text.replace(_CURVED, "'")):
        return ()
    found = (_find_wish(one, pattern) for one in _sentences(text))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def find_all_wishes(texts: Mapping[str, str], *, cues: Set[str] = CUES) -> dict[str, tuple[str, ...]]:
    """Of texts by name those that hold standing wishes. Most talk holds none, and is looked through once, as one."""
    if not texts or not _compile(frozenset(cues)).search("\n".join(texts.values()).replace(_CURVED, "'")):
        return {}
    found = {name: find_wishes(text, cues=cues) for name, text in texts.items()}
    return {name: wishes for name, wishes in found.items() if wishes}


@lru_cache(maxsize=8)
def _compile(cues: frozenset[str]) -> re.Pattern[str]:
    listed = "|".join(re.escape(cue) for cue in sorted(cues, key=lambda cue: (-len(cue), cue)))
    return re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE)


def _sentences(text: str) -> Iterator[str]:
    """The sentences outside code and block quotes, without marks of lists and headings."""
    for line, is_code in walk_lines(text):
        if is_code or _QUOTED.match(line):
            continue
        for sentence in _ENDS.split(_MARKUP.sub("", line, count=1)):
            if sentence and sentence.strip():
                yield sentence.strip()


def _find_wish(sentence: str, pattern: re.Pattern[str]) -> str | None:
    """The sentence if it is a wish; of one that is too long the part that is, word for word."""
    bare = sentence.rstrip("\"'\u201d\u2019)*_ ")
    if bare.endswith(("?", "\uff1f")) and not (_CONSENT.search(sentence) or _POLITE.match(sentence)):
        return None
    own = sentence.replace(_CURVED, "'")
    for start, end in list_spans(sentence):
        # Of the same length, so that what is found there is where it stands in the sentence.
        own = f"{own[:start]}{' ' * (end - start)}{own[end:]}"
    own = _NO_WISH.sub(lambda found: " " * len(found[0]), own)
    cue = pattern.search(own)
    if cue is None:
        return None
    return sentence if len(sentence) <= _LONGEST else _cut_out(sentence, cue.start())


def _cut_out(sentence: str, at: int) -> str | None:
    """The clauses of a long sentence from that with the cue on, as many as there is room for."""
    edges = [0, *(match.end() for match in _CLAUSE.finditer(sentence)), len(sentence)]
    start = max(edge for edge in edges if edge <= at)
    end = max((edge for edge in edges if start < edge <= start + _LONGEST), default=None)
    return None if end is None else sentence[start:end].strip()
