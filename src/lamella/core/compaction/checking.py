"""Checking a summary that a model wrote: what can be told without asking another model."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from lamella.core.text.exact import find_exact
from lamella.core.text.said.quotes import find_quotations
from lamella.core.text.scripts import WIDE

_TERM_WORDS = 2
_SHOWN = 60

_SPACES = re.compile(r"\s+")
# Scripts that are told apart by their letters alone: Latin is everybody's, and stands for no language.
_SCRIPTS = tuple(
    re.compile(f"[{letters}]")
    for letters in (r"\u0400-\u052f", r"\u0370-\u03ff", r"\u0590-\u05ff", r"\u0600-\u06ff", r"\u0900-\u0dff", WIDE)
)
# A line begins with one of these where it speaks to its reader; told of somebody, they stand behind who it was.
_BEGINS = r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])?[ \t*_]*(?:please[ ,]+|now[ ,]+|tolong[ ,]+)?"
_EARLIER = r"(?:earlier|previous|prior|above|preceding|former|system|your|sebelumnya|di atas)"
_GIVEN = r"(?:instructions?|rules?|prompts?|messages?|guidelines?|orders?|context|instruksi|aturan|perintah|pesan)"
_ORDERS = (
    rf"\b(?:ignore|disregard|forget|override|bypass|discard)\s+(?:all\s+|any\s+|every\s+)?(?:of\s+)?(?:the\s+|your\s+|those\s+)?"
    rf"(?:{_EARLIER}\s+)+{_GIVEN}",
    rf"\b(?:abaikan|lupakan|hiraukan)\s+(?:semua\s+|seluruh\s+)?{_GIVEN}",
    rf"{_BEGINS}(?:ignore|disregard|forget|override|bypass|abaikan|lupakan)\b",
    rf"{_BEGINS}(?:you|kamu|anda)\s+(?:must|should|shall|will|may|need\s+to|have\s+to|are\s+(?:now|allowed|required|no\s+longer)|can\s+now"
    r"|harus|wajib|sekarang|boleh)\b",
    rf"{_BEGINS}(?:from\s+now\s+on|henceforth|mulai\s+sekarang|mulai\s+dari\s+sekarang)\b",
    rf"{_BEGINS}(?:always|never|do\s+not|don['\u2019]t|only|selalu|jangan)\s+(?:answer|reply|respond|say|tell|reveal|mention|"
    r"obey|follow|trust|use|call|run|delete|send|ask|include|jawab|katakan|gunakan|kirim|hapus|sebut)\w*\b",
    rf"{_BEGINS}(?:reveal|pretend|act\s+as|obey|execute|respond\s+only|answer\s+only|send\s+the|delete\s+(?:all|every|the))\b",
    rf"{_BEGINS}(?:system|assistant|developer)\s*:",
    r"\b(?:new|updated)\s+(?:system\s+)?(?:instructions?|prompt)\s*:",
    r"<\|?(?:im_start|system|/?instructions?)\b",
    r"\bthe\s+(?:assistant|model|reader)\s+(?:must|should|shall|is\s+(?:now\s+)?(?:required|allowed|free))\b",
)

_WORDS = re.compile(rf"[{WIDE}]|[^\s{WIDE}]+")


def check_summary(
    text: str, *, replaced: Sequence[str], users: Sequence[str], tokens: int, replaced_tokens: int, max_tokens: int
) -> str | None:
    """Why a summary of the replaced texts is refused, in one line; None if it is accepted.

    Whatever it quotes must stand in one of them to the letter, white space and a final full stop or comma aside. One or
    two words may be a term and are let pass, unless they are put in the user's mouth. Each path, number, id, command,
    date and address in it must stand in them, it gives no orders to whoever reads it, and it is in a script of theirs.
    That it denies what was said cannot be told here.
    """
    if not text.strip():
        return "The summary is blank."
    if tokens > max_tokens:
        return f"The summary has {tokens:,} tokens; at most {max_tokens:,} are allowed."
    if tokens >= replaced_tokens:
        return f"The summary has {tokens:,} tokens, which is not less than the {replaced_tokens:,} it replaces."
    flat = _flatten(replaced)
    return (
        _find_misquotation(text, replaced=flat, users=_flatten(users))
        or _find_order(text)
        or _find_invented(text, flat)
        or _find_script(text, flat)
    )


def _find_order(text: str) -> str | None:
    # What it quotes is somebody's to the letter, and told as such.
    told = text
    for quotation in find_quotations(text):
        told = told.replace(quotation.text, "\0")
    order = order_pattern().search(told)
    return None if order is None else f"The summary gives orders to its reader: {_clip(' '.join(order[0].split()))}"


def _find_invented(text: str, replaced: str) -> str | None:
    """An exact word that nobody said. How it is spaced and whether a mark ends it makes no other word of it."""
    close = _SPACES.sub("", replaced).casefold()
    for token in find_exact(text):
        if _SPACES.sub("", token).rstrip(".,;:").casefold() not in close:
            return f"The summary tells what stands in none of the messages it replaces: {_clip(token)}"
    return None


def _find_script(text: str, replaced: str) -> str | None:
    """A script in which a third of the summary is written and nothing of what it replaces."""
    letters = sum(map(str.isalpha, text))
    for script in _SCRIPTS:
        if len(script.findall(text)) * 3 > letters > 0 and not script.search(replaced):
            return "The summary is written in a script that none of the messages it replaces is in."
    return None


@cache
def order_pattern() -> re.Pattern[str]:
    """What tells whoever reads it what to do: a closed list, English and Indonesian."""
    return re.compile(f"(?:{'|'.join(_ORDERS)})", re.IGNORECASE | re.MULTILINE)


def _find_misquotation(text: str, *, replaced: str, users: str) -> str | None:
    for quotation in find_quotations(text):
        quoted = " ".join(quotation.text.split())
        if quotation.by_user:
            if not _stands_in(quoted, users):
                return f"The summary quotes the user with words the user did not type: {_clip(quoted)}"
        elif _count_words(quoted) > _TERM_WORDS and not _stands_in(quoted, replaced):
            return f"The summary quotes what stands in none of the messages it replaces: {_clip(quoted)}"
    return None


def _stands_in(quoted: str, texts: str) -> bool:
    # American usage puts the full stop or comma of the sentence inside the quotation.
    return quoted in texts or quoted.rstrip(".,") in texts


def _flatten(texts: Iterable[str]) -> str:
    """The texts with single spaces, a line each: no quotation can run from one into the next."""
    return "\n".join(" ".join(text.split()) for text in texts)


def _count_words(quoted: str) -> int:
    return sum(any(character.isalnum() for character in word) for word in _WORDS.findall(quoted))


def _clip(quoted: str) -> str:
    return f"“{quoted}”" if len(quoted) <= _SHOWN else f"“{quoted[:_SHOWN]} …”"
