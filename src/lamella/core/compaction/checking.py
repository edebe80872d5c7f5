"""Checking a summary that a model wrote: what can be told without asking another model."""

import re
from collections.abc import Iterable, Sequence, Set

from lamella.core.text.exact import find_exact
from lamella.core.text.languages import find_foreign
from lamella.core.text.notation import find_counted, level, list_values, read_value, settle
from lamella.core.text.said.orders import find_order
from lamella.core.text.said.quotes import find_quotations, mask_quotations, straighten
from lamella.core.text.scripts import WIDE, WORD_ENDS, WORD_STARTS

_TERM_WORDS = 2
_SHOWN = 60

_SPACES = re.compile(r"\s+")
# Scripts that are told apart by their letters alone: Latin is everybody's, and stands for no language.
_SCRIPTS = tuple(
    re.compile(f"[{letters}]")
    for letters in (r"\u0400-\u052f", r"\u0370-\u03ff", r"\u0590-\u05ff", r"\u0600-\u06ff", r"\u0900-\u0dff", WIDE)
)
_WORDS = re.compile(rf"[{WIDE}]|[^\s{WIDE}]+")

# A word that has letters of two scripts passes for another one.
_DISGUISED = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*[\u0400-\u052f])\w+")

# A part of a path of Windows that has spaces in it.
_BACKSLASHED = re.compile(r"[\w.-]+(?:\\[\w.-]+)+")
# What stands behind one of these is given as the user's words, with marks around it or without.
_SPEECH = re.compile(
    r"\b(?:users?|human|customer|pengguna|pelanggan)\s+(?:\w+\s+){0,2}(?:said|says|wrote|typed|berkata|bilang|menulis)\s*:"
    r"[*_]*[ \t]+(?P<words>[^\W_].*?)(?=[.!?]*(?:\s|$)(?<=[.!?\n]\s)|[.!?]*$)",
    re.IGNORECASE | re.MULTILINE,
)


def check_summary(
    text: str,
    *,
    replaced: Sequence[str],
    users: Sequence[str],
    tokens: int,
    replaced_tokens: int,
    max_tokens: int,
    translated: bool = False,
) -> str | None:
    """Why a summary of the replaced texts is refused, in one line; None if it is accepted.

    Whatever it quotes must stand in one of them to the letter, white space and a final full stop or comma aside. One or
    two words may be a term and are let pass, unless they are put in the user's mouth. Each path, number, id, command,
    date and address in it must stand in them, in this notation or another, it gives no orders to whoever reads it, and
    it is in a script and a language of theirs, unless it was to be ``translated``. Characters that nobody sees make no
    difference. That it denies what was said cannot be told here.
    """
    if not any(map(str.isalnum, text)):
        return "The summary is blank."
    if tokens > max_tokens:
        return f"The summary has {tokens:,} tokens; at most {max_tokens:,} are allowed."
    if tokens >= replaced_tokens:
        return f"The summary has {tokens:,} tokens, which is not less than the {replaced_tokens:,} it replaces."
    seen, flat, typed = settle(text), _flatten(replaced), _flatten(users)
    straight = settle(straighten(text))
    return (
        _find_misquotation(seen, replaced=flat, users=typed)
        or _find_misquotation(straight, replaced=straighten(flat), users=straighten(typed))
        or _find_order(seen, flat)
        or _find_invented(seen, flat)
        or (None if translated else _find_script(seen, flat) or _find_language(seen, replaced))
    )


def _find_order(text: str, replaced: str) -> str | None:
    # What it quotes to the letter is somebody's, and told as such.
    own = straighten(_mask(text, replaced))
    order = find_order(_mask(own, straighten(replaced)))
    if order is not None:
        return f"The summary gives orders to its reader: {_clip(order)}"
    disguised = [word for word in _DISGUISED.findall(text) if word not in replaced]
    return f"The summary writes a word in letters of two scripts: {_clip(disguised[0])}" if disguised else None


def _mask(text: str, replaced: str) -> str:
    return mask_quotations(text, stands=lambda quoted: _stands_in(" ".join(quoted.split()), replaced))


def _find_invented(text: str, replaced: str) -> str | None:
    """An exact word that nobody said, in this notation or another, or a part of one that somebody said."""
    close = level(replaced.casefold())
    known = list_values(find_exact(replaced))
    told = (*find_exact(text), *(match[0] for match in _BACKSLASHED.finditer(text)))
    for token in told:
        if not (_is_said(token, close) or any(_is_known(key, known) for key in read_value(token))):
            return f"The summary tells what stands in none of the messages it replaces: {_clip(token)}"
    for words, number in find_counted(text):
        if number not in known and " ".join(words.split()).casefold() not in close:
            return f"The summary tells what stands in none of the messages it replaces: {_clip(words)}"
    return None


def _is_known(key: str, known: Set[str]) -> bool:
    day, _, time = key.partition("T")
    return key in known or (bool(time) and day in known and f"T{time}" in known)


def _is_said(token: str, replaced: str) -> bool:
    """Whether an exact word stands in the text, and not as a part of a longer one; how it is spaced does not matter."""
    bare = level(token.casefold()).rstrip(".,;:")
    # A version is one with its letter and without.
    bare = bare[1:] if re.match(r"v\d", bare) else bare
    spaced = r"\s*".join(map(re.escape, bare.split()))
    if not re.search(r"[\d/\\.]", bare):
        return re.search(spaced, replaced) is not None
    starts = rf"(?:{WORD_STARTS}|(?<=\bv))(?<!\d[.,])(?<!\W[-+])(?<!^[-+])" if bare[:1].isalnum() else ""
    ends = rf"{WORD_ENDS}(?![.,]\d)(?!\.[a-z])" if bare[-1:].isalnum() else ""
    return re.search(f"{starts}{spaced}{ends}", replaced, re.MULTILINE) is not None


def _find_script(text: str, replaced: str) -> str | None:
    """A script in which a third of the summary is written and nothing of what it replaces."""
    letters = sum(map(str.isalpha, text))
    for script in _SCRIPTS:
        if len(script.findall(text)) * 3 > letters > 0 and not script.search(replaced):
            return "The summary is written in a script that none of the messages it replaces is in."
    return None


def _find_language(text: str, replaced: Iterable[str]) -> str | None:
    language = find_foreign(text, replaced)
    return None if language is None else f"The summary is in {language}, which none of the messages it replaces is in."


def _find_misquotation(text: str, *, replaced: str, users: str) -> str | None:
    for quotation in find_quotations(text):
        quoted = " ".join(quotation.text.split())
        if quotation.by_user:
            if not _stands_in(quoted, users):
                return f"The summary quotes the user with words the user did not type: {_clip(quoted)}"
        elif _count_words(quoted) > _TERM_WORDS and not _stands_in(quoted, replaced):
            return f"The summary quotes what stands in none of the messages it replaces: {_clip(quoted)}"
    for speech in _SPEECH.finditer(text):
        if speech["words"].casefold() not in users.casefold():
            return f"The summary quotes the user with words the user did not type: {_clip(speech['words'])}"
    return None


def _stands_in(quoted: str, texts: str) -> bool:
    # American usage puts the full stop or comma of the sentence inside the quotation.
    return quoted in texts or quoted.rstrip(".,") in texts


def _flatten(texts: Iterable[str]) -> str:
    """The texts with single spaces, a line each: no quotation can run from one into the next."""
    return "\n".join(" ".join(settle(text).split()) for text in texts)


def _count_words(quoted: str) -> int:
    return sum(any(character.isalnum() for character in word) for word in _WORDS.findall(quoted))


def _clip(quoted: str) -> str:
    return f"“{quoted}”" if len(quoted) <= _SHOWN else f"“{quoted[:_SHOWN]} …”"
