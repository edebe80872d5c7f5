"""Chitchat: typed text that only acknowledges, and that no later turn needs."""

import re
from collections.abc import Iterator, Set
from itertools import takewhile

from lamella.core.text.fences import walk_lines

CHITCHAT_WORDS: frozenset[str] = frozenset(
    {
        # English
        "alright", "all right", "awesome", "cool", "excellent", "fine", "good", "got it", "great", "i see", "k", "kk",
        "many thanks", "nice", "noted", "of course", "ok", "ok thank you", "ok thanks", "okay", "okay thanks", "okey",
        "perfect", "right", "sounds good", "sure", "thank you", "thank you so much", "thank you very much", "thanks",
        "thanks a lot", "thx", "ty", "understood", "very good", "well done", "yeah", "yep", "yes", "yes please", "yup",
        # Indonesian
        "bagus", "baik", "baiklah", "boleh", "iya", "keren", "lanjut", "lanjutkan", "makasih", "makasih banyak",
        "mantap", "mengerti", "ok lanjut", "ok makasih", "oke", "oke lanjut", "oke makasih", "okeh", "oke sip", "paham",
        "sama-sama", "setuju", "siap", "sip", "sudah paham", "terima kasih", "terima kasih banyak", "terimakasih",
        "ya", "ya lanjut", "yoi",
    }
)  # fmt: skip

# Only pictures of agreement: a thumb down, a coloured circle or a flag may be the whole answer.
_AGREEMENT = "👍👌🙏🙌👏🤝😀😁😃😄😅😊🙂😉🎉💯✅✔❤🔥✨"
_SKIN_AND_STYLE = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff\ufe0f\u200d"
_TRAIL = f" \t\r\n.,…。\uff0c、{_AGREEMENT}{_SKIN_AND_STYLE}"

# Full-width, Arabic, Greek, Armenian and Ethiopic marks ask and exclaim, too, and so do their pictures.
_QUESTION = re.compile("[?\uff1f؟\u037e՞፧⁇⁈⁉‽⸮﹖❓❔]")
_EXCLAMATION = re.compile("[!\uff01¡‼⁈⁉❗❕]")

# A question mark that ends an address belongs to the sentence; one inside it does not.
_ADDRESS = re.compile(r"(?:://|\bwww\.)\S*[^\s?\uff1f؟.,;:!)\]}>\"'*_]")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_LISTED = re.compile(r"[ \t]*(?:[-*+•|]|\(?(?:\d{1,3}|[A-Za-z])[.)])(?:[ \t]|$)|\||[ \t]*$")


def is_chitchat(text: str, *, after: str, words: Set[str] = CHITCHAT_WORDS) -> bool:
    """Whether what the user typed after a reply is in the list and answers nothing.

    Questions, exclamations and anything with a digit are kept whatever the list says.
    """
    said = " ".join(text.rstrip(_TRAIL).casefold().split())
    if said not in words or _QUESTION.search(text) or _EXCLAMATION.search(text):
        return False
    return not any(character.isnumeric() for character in text) and not asks(after)


def asks(reply: str) -> bool:
    """Whether a reply ends by asking: a question mark in its last paragraph, or before or in the list it ends with."""
    if not _QUESTION.search(reply):
        return False
    end = [_CODE_SPAN.sub("", _ADDRESS.sub("", line)) for line in _last_paragraph(reply)]
    return any(_QUESTION.search(line) for line in end)


def _last_paragraph(reply: str) -> Iterator[str]:
    """The lines of the last paragraph without code; a list stands for the paragraph it follows and itself."""
    lines = ["" if is_code else line for line, is_code in walk_lines(reply)]
    end = len(lines)
    while end and _LISTED.match(lines[end - 1]):
        end -= 1
    yield from lines[end:]
    yield from takewhile(str.strip, reversed(lines[:end]))
