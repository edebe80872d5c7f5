"""Checking a summary that a model wrote: what can be told without asking another model."""

import re
from collections.abc import Iterable, Sequence

from lamella.core.text.said.quotes import find_quotations
from lamella.core.text.scripts import WIDE

_TERM_WORDS = 2
_SHOWN = 60

_WORDS = re.compile(rf"[{WIDE}]|[^\s{WIDE}]+")


def check_summary(
    text: str, *, replaced: Sequence[str], users: Sequence[str], tokens: int, replaced_tokens: int, max_tokens: int
) -> str | None:
    """Why a summary of the replaced texts is refused, in one line; None if it is accepted.

    Whatever it quotes must stand in one of them to the letter, white space and a final full stop or comma aside. One or
    two words may be a term and are let pass, unless they are put in the user's mouth.
    """
    if not text.strip():
        return "The summary is blank."
    if tokens > max_tokens:
        return f"The summary has {tokens:,} tokens; at most {max_tokens:,} are allowed."
    if tokens >= replaced_tokens:
        return f"The summary has {tokens:,} tokens, which is not less than the {replaced_tokens:,} it replaces."
    return _find_misquotation(text, replaced=_flatten(replaced), users=_flatten(users))


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
