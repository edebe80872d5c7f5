"""Check summaries that a model wrote, and account for what a compaction removed.

``find_summary_problem`` rejects a summary that gives instructions, invents exact strings, misquotes the user or
changes the language, as far as that can be checked without another model. ``build_certificate`` counts the exact
strings and directives that are still in the prompt, recallable or lost.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set

from lamella.core.compaction.draft import PromptDraft
from lamella.core.log.receipts import CompactionCertificate, CompactionStep
from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.digest import iter_digest_messages
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import UNSPACED_SCRIPTS, WORD_ENDS, WORD_STARTS, detect_foreign_language
from lamella.core.text.exact_terms import extract_exact_strings, extract_exact_tokens_cached
from lamella.core.text.notation import (
    canonical_values,
    collect_canonical_values,
    iter_large_spelled_numbers,
    normalize_characters,
    normalize_digits_and_dashes,
)
from lamella.core.text.rule_detection import (
    extract_quotes,
    find_injected_instruction,
    mask_quotations,
    normalize_quotes,
)
from lamella.core.values import replace

_MAX_TERM_WORDS = 2
_MAX_SHOWN_CHARS = 60

_SPACES = re.compile(r"\s+")
# Scripts that can be recognised by their letters. Latin is missing: it is used by too many languages.
_SCRIPTS = tuple(
    re.compile(f"[{letters}]")
    for letters in (
        r"\u0400-\u052f",
        r"\u0370-\u03ff",
        r"\u0590-\u05ff",
        r"\u0600-\u06ff",
        r"\u0900-\u0dff",
        UNSPACED_SCRIPTS,
    )
)
_WORDS = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+")

# A word with Latin and Cyrillic letters looks like another word.
_MIXED_SCRIPT_WORD = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*[\u0400-\u052f])\w+")

# Part of a Windows path; such a path can contain spaces.
_BACKSLASH_PATH = re.compile(r"[\w.-]+(?:\\[\w.-]+)+")
# Text after one of these phrases is presented as the user's words, with or without quotation marks.
_USER_SPEECH = re.compile(
    r"\b(?:users?|human|customer|pengguna|pelanggan)\s+(?:\w+\s+){0,2}(?:said|says|wrote|typed|berkata|bilang|menulis)\s*:"
    r"[*_]*[ \t]+(?P<words>[^\W_].*?)(?=[.!?]*(?:\s|$)(?<=[.!?\n]\s)|[.!?]*$)",
    re.IGNORECASE | re.MULTILINE,
)


def find_summary_problem(
    text: str,
    *,
    replaced_texts: Sequence[str],
    user_texts: Sequence[str],
    tokens: int,
    replaced_tokens: int,
    max_tokens: int,
    translated: bool = False,
) -> str | None:
    """Return why a summary of the replaced texts is rejected, in one line, or None if it is accepted.

    The checks are:

    - The summary is not blank, not longer than ``max_tokens`` and shorter than the text it replaces.
    - Each quotation occurs literally in a replaced text, except for white space and a final full stop or comma. A
      quotation of one or two words may be a term and passes, unless it is attributed to the user.
    - Each path, number, id, command, date and address occurs in the replaced texts, possibly in another notation.
    - The summary gives its reader no instructions.
    - Its script and language occur in the replaced texts, unless it was to be ``translated``.

    Invisible characters make no difference. The checks cannot detect that a summary contradicts the replaced texts.
    """
    if not any(map(str.isalnum, text)):
        return "The summary is blank."
    if tokens > max_tokens:
        return f"The summary has {tokens:,} tokens; at most {max_tokens:,} are allowed."
    if tokens >= replaced_tokens:
        return f"The summary has {tokens:,} tokens, which is not less than the {replaced_tokens:,} it replaces."
    seen, flat, typed = (
        normalize_characters(text),
        _join_into_single_lines(replaced_texts),
        _join_into_single_lines(user_texts),
    )
    straight = normalize_characters(normalize_quotes(text))
    # Quotations are checked twice, with the quotation marks as written and with straight ones.
    return (
        _find_misquotation(seen, replaced=flat, users=typed)
        or _find_misquotation(straight, replaced=normalize_quotes(flat), users=normalize_quotes(typed))
        or _find_instruction(seen, flat)
        or _find_invented_token(seen, flat)
        or (None if translated else _find_foreign_script(seen, flat) or _find_foreign_language(seen, replaced_texts))
    )


def _find_instruction(text: str, replaced: str) -> str | None:
    # A literal quotation repeats words of the conversation, so an instruction in it is not the summary's own.
    own = normalize_quotes(_mask_known_quotes(text, replaced))
    order = find_injected_instruction(_mask_known_quotes(own, normalize_quotes(replaced)))
    if order is not None:
        return f"The summary gives orders to its reader: {_format_short_quotation(order)}"
    disguised = [word for word in _MIXED_SCRIPT_WORD.findall(text) if word not in replaced]
    return (
        f"The summary writes a word in letters of two scripts: {_format_short_quotation(disguised[0])}"
        if disguised
        else None
    )


def _mask_known_quotes(text: str, replaced: str) -> str:
    return mask_quotations(text, should_mask=lambda quoted: _occurs_in(" ".join(quoted.split()), replaced))


def _find_invented_token(text: str, replaced: str) -> str | None:
    """Return an error if the summary contains an exact string that occurs in no replaced text.

    Other notations of a token count as occurrences; a part of a longer token does not.
    """
    close = normalize_digits_and_dashes(replaced.casefold())
    known = collect_canonical_values(extract_exact_strings(replaced))
    told = (*extract_exact_strings(text), *(match[0] for match in _BACKSLASH_PATH.finditer(text)))
    for token in told:
        if not (_occurs_as_word(token, close) or any(_is_known(key, known) for key in canonical_values(token))):
            return (
                f"The summary tells what stands in none of the messages it replaces: {_format_short_quotation(token)}"
            )
    for words, number in iter_large_spelled_numbers(text):
        if number not in known and " ".join(words.split()).casefold() not in close:
            return (
                f"The summary tells what stands in none of the messages it replaces: {_format_short_quotation(words)}"
            )
    return None


def _is_known(key: str, known: Set[str]) -> bool:
    day, _, time = key.partition("T")
    return key in known or (bool(time) and day in known and f"T{time}" in known)


def _occurs_as_word(token: str, replaced: str) -> bool:
    """Return whether an exact string occurs in the text as a whole word; spacing does not matter."""
    bare = normalize_digits_and_dashes(token.casefold()).rstrip(".,;:")
    # "v1.2" and "1.2" are the same version.
    bare = bare[1:] if re.match(r"v\d", bare) else bare
    spaced = r"\s*".join(map(re.escape, bare.split()))
    if not re.search(r"[\d/\\.]", bare):
        return re.search(spaced, replaced) is not None
    starts = rf"(?:{WORD_STARTS}|(?<=\bv))(?<!\d[.,])(?<!\W[-+])(?<!^[-+])" if bare[:1].isalnum() else ""
    ends = rf"{WORD_ENDS}(?![.,]\d)(?!\.[a-z])" if bare[-1:].isalnum() else ""
    return re.search(f"{starts}{spaced}{ends}", replaced, re.MULTILINE) is not None


def find_foreign_text_problem(text: str, replaced_texts: Sequence[str]) -> str | None:
    """Return an error if a summary is in a script or a language that none of the replaced texts is in."""
    seen = normalize_characters(text)
    return _find_foreign_script(seen, _join_into_single_lines(replaced_texts)) or _find_foreign_language(
        seen, replaced_texts
    )


def _find_foreign_script(text: str, replaced: str) -> str | None:
    """Return an error if a third of the letters are in a script that no replaced text uses."""
    letters = sum(map(str.isalpha, text))
    for script in _SCRIPTS:
        if len(script.findall(text)) * 3 > letters > 0 and not script.search(replaced):
            return "The summary is written in a script that none of the messages it replaces is in."
    return None


def _find_foreign_language(text: str, replaced: Iterable[str]) -> str | None:
    language = detect_foreign_language(text, replaced)
    return None if language is None else f"The summary is in {language}, which none of the messages it replaces is in."


def _find_misquotation(text: str, *, replaced: str, users: str) -> str | None:
    for quotation in extract_quotes(text):
        quoted = " ".join(quotation.text.split())
        if quotation.by_user:
            if not _occurs_in(quoted, users):
                return (
                    f"The summary quotes the user with words the user did not type: {_format_short_quotation(quoted)}"
                )
        elif _count_words(quoted) > _MAX_TERM_WORDS and not _occurs_in(quoted, replaced):
            return (
                f"The summary quotes what stands in none of the messages it replaces: {_format_short_quotation(quoted)}"
            )
    for speech in _USER_SPEECH.finditer(text):
        if speech["words"].casefold() not in users.casefold():
            return f"The summary quotes the user with words the user did not type: {_format_short_quotation(speech['words'])}"
    return None


def _occurs_in(quoted: str, texts: str) -> bool:
    # American usage puts the full stop or comma of the sentence inside the quotation marks.
    return quoted in texts or quoted.rstrip(".,") in texts


def _join_into_single_lines(texts: Iterable[str]) -> str:
    """Join the texts, one per line and with single spaces, so that no quotation spans two of them."""
    return "\n".join(" ".join(normalize_characters(text).split()) for text in texts)


def _count_words(quoted: str) -> int:
    return sum(any(character.isalnum() for character in word) for word in _WORDS.findall(quoted))


def _format_short_quotation(quoted: str) -> str:
    """Return a text in quotation marks, cut if it is long."""
    return f"“{quoted}”" if len(quoted) <= _MAX_SHOWN_CHARS else f"“{quoted[:_MAX_SHOWN_CHARS]} …”"


# The certificate of a compaction.

# A text that a compaction touched, and whether its original can be recalled.
_TouchedText = tuple[str, bool]


def _list_removed_ids(steps: Sequence[CompactionStep]) -> set[str]:
    return {name for step in steps for name in step.removed}


def build_certificate(
    before: PromptState,
    draft: PromptDraft,
    steps: Sequence[CompactionStep],
    *,
    branch_ids: Collection[str],
) -> CompactionCertificate:
    """Count the exact strings and directives in the touched texts: still in the prompt, recallable, or lost."""
    named = _list_removed_ids(steps)
    recallable = frozenset(branch_ids)
    words: dict[str, bool] = {}
    for text, recalled in _list_touched_texts(before, named, recallable):
        for word in extract_exact_tokens_cached(text):
            words[word] = words.get(word, False) or recalled
    stand = _exact_strings_still_in_prompt(draft, words) if words else set[str]()
    users = {turn.question.id for turn in before.history.turns}
    users |= {message.id for message in iter_digest_messages(before.history.digest)}
    # Most compactions only shorten replies, and then no message has to be read for directives.
    found = {} if named.isdisjoint(users) else replace(draft, state=before).directives.by_message
    said: dict[str, bool] = {}
    for name, sentences in found.items():
        if name in named:
            recalled = not branch_ids or name in recallable
            said |= {sentence: said.get(sentence, False) or recalled for sentence in sentences}
    shown = (
        {sentence for sentence in said if any(sentence in text for text in _iter_user_texts(draft))}
        if said
        else set[str]()
    )
    return CompactionCertificate(
        exact_strings=_count_kept_and_lost(words, stand), rules=_count_kept_and_lost(said, shown)
    )


def _exact_strings_still_in_prompt(draft: PromptDraft, words: Collection[str]) -> set[str]:
    """Return those of some exact strings that are still in the request."""
    shown = {
        word
        for message in draft.prompt.messages
        for piece in message.pieces
        for word in extract_exact_tokens_cached(piece)
    }
    # An outline may name a command without the Markdown marks by which ``extract_exact_strings`` recognises it.
    shortened = "\n".join(_iter_shortened_texts(draft))
    return {word for word in words if word in shown or word in shortened}


def _count_kept_and_lost(found: dict[str, bool], in_prompt: Collection[str]) -> tuple[int, int, int]:
    stands = sum(one in in_prompt for one in found)
    recallable = sum(recalled for one, recalled in found.items() if one not in in_prompt)
    return stands, recallable, len(found) - stands - recallable


def _list_touched_texts(
    before: PromptState, removed_ids: Collection[str], branch_ids: frozenset[str]
) -> list[_TouchedText]:
    exchanges = before.history.turns
    said = [one for turn in exchanges for one in (turn.question, turn.reply, *turn.joined_replies)]
    touched = [
        (message.text, not branch_ids or message.id in branch_ids)
        for message in iter_digest_messages(before.history.digest)
        if message.id in removed_ids
    ]
    touched += [
        (
            one.segment.text if one.full_texts is None else one.full_texts[one.segment.id],
            not branch_ids or one.segment.id in branch_ids,
        )
        for one in said
        if one.segment.id in removed_ids
    ]
    # Attachments and tool results of a turn can be recalled with their turn.
    tools = [placed_result.artifact for turn in exchanges for placed_result in turn.tool_results]
    touched += [(artifact.text, True) for artifact in tools if artifact.id in removed_ids]
    rounds = [one.segment for turn in exchanges for one in turn.rounds]
    touched += [(segment.text, True) for segment in rounds if segment.id in removed_ids]
    return touched + [(entry.artifact.text, True) for name, entry in before.library.items() if name in removed_ids]


def _iter_shortened_texts(draft: PromptDraft) -> Iterator[str]:
    """Yield the texts in the history that are shorter than their originals or that replace removed messages."""
    for segment in draft.prompt.segments(LayerId.L4):
        if segment.form is not ArtifactForm.FULL:
            yield segment.text


def _iter_user_texts(draft: PromptDraft) -> Iterator[str]:
    history = draft.state.history
    yield from (message.text for message in iter_digest_messages(history.digest))
    yield from (turn.question.text for turn in history.turns)
