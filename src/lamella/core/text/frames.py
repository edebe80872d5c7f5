"""Frames: sentences by which a user hands over or asks about somebody else's text in the same message.

"My flatmate left a note on the fridge.", "Is he right?", "fix the grammar": what stands beside such a sentence was not
said to the model. ``find_frames`` looks for a pointer ("this", "ini", "これ"), a short or pointing question, something
that carries text ("note", "surat", "Zettel", "張り紙"), or work on a text.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto

from lamella.core.text.content import UNSPACED_SCRIPTS
from lamella.core.text.phrases import Phrases

_UNSPACED = re.compile(rf"[{UNSPACED_SCRIPTS}]")
_QUESTION = re.compile(r"[?\uff1f][\s\"'\u201d\u2019)*_]*$")
_WORD = re.compile(r"[^\W_]+")
# A question with at most this many words, or characters without spaces, is about what stands beside it.
_SHORT_QUESTION_WORDS = 4
_SHORT_QUESTION_CHARS = 18
_LONG_QUESTION_WORDS = 9

_POINTER = re.compile(
    r"^\W*(?:das|es) (?:muss|soll|sollte|klingt|geht|darf|hier)\b|^\W*(?:it|that) (?:needs?|should|must"
    r"|has to|sounds?|says?|reads?)\b"
    r"|\bins [A-ZÄÖÜ]\w+sche\b"
    r"|\b(?:this|these|those|the (?:above|below)|(?:see|text|message|line|as) (?:below|above)|following"
    r"|here's|here is|here are|dies(?:e[mnrs]?|es)?|folgende[mnrs]?|hier (?:ist|sind|der|die|das|mal)|unten|oben"
    r"|ini|berikut|begini|gini|tersebut|di (?:bawah|atas) ini|nih)\b|これ|この|こんな|こういう|以下|上記"
    r"|次の(?:文|メ|よう|とおり|通り|内容|規|ル|指示)|下記|それ",
    re.IGNORECASE,
)
# In a question these words point to what stands beside it.
_QUESTION_POINTER = re.compile(
    r"\b(?:this|that|these|those|it|he|she|they|him|her|his|their|them|there|reply|respond|answer(?: back)?"
    r"|say|follow|do|tldr|fair|legit|real|spam|scam"
    r"|would you|opinions?|thoughts|ideas|würdest du|hältst du|meinung|ideen"
    r"|das|dies\w*|er|sie|ihm|ihr|es|da|dran|dazu|davon|antworte|schreibe|sage|soll ich|muss ich|darf ich"
    r"|ini|itu|dia|mereka|\w{3,}nya|balas|jawab|harus|wajar|benar|boleh|kah)\b|これ|それ|あれ|本当|返",
    re.IGNORECASE,
)
# A Japanese question with a topic of its own.
_OWN_QUESTION = re.compile(r"は[^、]*(?:何時|何日|いくら|いくつ|どこ|いつ|誰|何人|何曜日)")
_COMPLETE_QUESTION = re.compile(
    r"\W*(?:(?:and|so|und|dan|ok(?:ay)?|jadi)\W+)?(?:what|how|who|why|which|when|where|was|wie|warum|wer|wo"
    r"|wann|welche\w*|apa|berapa|siapa|kapan|bagaimana)\s\w+",
    re.IGNORECASE,
)
# A question without a question mark.
_ASKS = re.compile(
    r"(?:what|how|who|why|which|is|are|was|does|do|did|should|am) (?:i|we|it|this|that|he|she|they|do|does"
    r"|would|should|can|to|is|are)\b"
    r"|(?:was|wie|warum|wieso|ist|sind|stimmt|darf|muss|soll|kann|welche\w*) (?:ich|das|die|der|er|sie|es|man"
    r"|soll|meint|heißt|antworte)\b"
    r"|.*\b(?:apa|gimana|bagaimana|kenapa|siapa|bagus (?:ga|gak|nggak|tidak)|ga|gak|nggak|menurutmu|kah)\W*$"
    r"|.*(?:かな|かい|でしょうか|ですか|ますか|だろうか|教えて|のか)\W*$",
    re.IGNORECASE,
)


class FrameKind(Enum):
    """What a frame sentence does."""

    POINTS = auto()
    CARRIES = auto()


def find_frame(sentence: str, carriers: Phrases, work: Phrases, *, asks: bool) -> FrameKind | None:
    """Return whether a sentence that directs nothing hands over or asks about a text.

    ``carriers`` are words for what carries text, ``work`` words for work on a text; ``asks`` says that the sentence is
    a question and no request.
    """
    text = sentence.replace("\u2019", "'").strip()
    if not any(map(str.isalnum, text)):
        return None
    if (asks or _ASKS.match(text)) and _asks_about_neighbour(text):
        return FrameKind.POINTS
    if _POINTER.search(text) or work.search(text):
        return FrameKind.POINTS
    return FrameKind.CARRIES if carriers.search(text) else None


def _asks_about_neighbour(text: str) -> bool:
    if _UNSPACED.search(text):
        if _OWN_QUESTION.search(text):
            return False
        return (
            len(re.split(r"[、。]", text.rstrip("?\uff1f "))[-1]) <= _SHORT_QUESTION_CHARS
            or _QUESTION_POINTER.search(text) is not None
        )
    words = len(_WORD.findall(text))
    if _QUESTION_POINTER.search(text) is None and _COMPLETE_QUESTION.match(text):
        return False
    return words <= _SHORT_QUESTION_WORDS or (
        words <= 2 * _LONG_QUESTION_WORDS and _QUESTION_POINTER.search(text) is not None
    )


def find_foreign(frames: Sequence[FrameKind | None], blocks: Sequence[int]) -> frozenset[int]:
    """Return the indexes of the sentences that stand beside a frame.

    ``frames`` has the frame of each sentence of a message, ``blocks`` the number of its block. What follows a frame is
    somebody else's; what comes before it is too, if the frame points and ends its block.
    """
    foreign: set[int] = set()
    for at, kind in enumerate(frames):
        if kind is None:
            continue
        foreign.update(range(at + 1, len(frames)))
        ends_block = at + 1 == len(blocks) or blocks[at + 1] != blocks[at]
        if kind is FrameKind.POINTS and ends_block:
            foreign.update(range(at))
    return frozenset(foreign)
