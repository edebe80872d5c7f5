"""Find the conversation that a user means, and unused names for imported conversations."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import chain, count
from secrets import token_hex

from lamella.errors import InvalidOperationError
from lamella.hints import quote_for_shell
from lamella.ports import ConversationListItem, Store

# This many characters of a generated key are taken for the beginning of a key, even if beginnings of names do not count.
_MIN_KEY_PREFIX = 6
_MAX_LISTED_NAMES = 5


def find_conversation_by_name(
    store: Store, name_or_key: str, *, match_prefix: bool = True
) -> ConversationListItem | None:
    """Return the conversation with this name, key or title, or with a name, key or title that starts like this.

    Titles also match in another case. Returns None if there is none. Raises ``InvalidOperationError`` if several match.
    Callers that would create or erase a conversation pass ``match_prefix=False``: `notes` must not match `notes-2`.
    """
    found = store.find_conversation(name_or_key)
    if found is not None:
        return found
    alive = [listed for listed in store.list_conversations() if listed.erased_at is None]
    wanted = name_or_key.casefold()
    exact = [listed for listed in alive if listed.title == name_or_key]
    titled = exact or [listed for listed in alive if wanted and listed.title.casefold() == wanted]
    if titled:
        return _get_single_match(titled, f"have the title {name_or_key!r}")
    begun = [listed for listed in alive if _matches_prefix(listed, name_or_key, match_prefix=match_prefix)]
    if not begun and match_prefix and wanted.strip("… "):
        # Lists show a long title with an ellipsis at its end.
        begun = [listed for listed in alive if listed.title.casefold().startswith(wanted.rstrip("… "))]
    return _get_single_match(begun, f"begin with {name_or_key!r}") if begun else None


def make_unused_name(store: Store, *, today: date) -> str:
    """Return an unused name that is easy to type; names of erased conversations count as used."""
    used_names = {listed.name for listed in store.list_conversations()}
    while (name := f"{today:%Y-%m-%d}-{token_hex(2)}") in used_names:
        pass
    return name


def find_tombstone(store: Store, name_or_key: str) -> ConversationListItem | None:
    """Return the tombstone with this key, or the last one with this name; None if there is none."""
    erased = [listed for listed in store.list_conversations() if listed.erased_at is not None]
    keyed = next((listed for listed in erased if listed.conversation == name_or_key), None)
    return keyed or next((listed for listed in erased if listed.name == name_or_key), None)


def unused_name(store: Store, wanted_name: str) -> str:
    """Return the name if it is unused, otherwise the name with a number."""
    return next(name for name in _iter_numbered_names(wanted_name) if store.find_conversation(name) is None)


def conversation_not_found_error(name_or_key: str) -> InvalidOperationError:
    """Return the error for a conversation that does not exist."""
    return InvalidOperationError(
        f"There is no conversation {name_or_key!r}.",
        hint=lambda hints: f"{hints.list_chats_hint()} lists the conversations.",
    )


def _matches_prefix(summary: ConversationListItem, prefix: str, *, match_prefix: bool) -> bool:
    if match_prefix and summary.name.startswith(prefix):
        return True
    # Conversations created before there were generated keys use their name as key.
    chosen = summary.conversation == summary.name
    long = match_prefix or len(prefix) >= _MIN_KEY_PREFIX
    return long and not chosen and summary.conversation.startswith(prefix)


def _get_single_match(matches: Sequence[ConversationListItem], description: str) -> ConversationListItem:
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(quote_for_shell(listed.name) for listed in matches[:_MAX_LISTED_NAMES])
    more = f" and {len(matches) - _MAX_LISTED_NAMES:,} more" if len(matches) > _MAX_LISTED_NAMES else ""
    raise InvalidOperationError(
        f"{len(matches):,} conversations {description}: {names}{more}.", hint="Say which, by its name."
    )


def _iter_numbered_names(name: str) -> Iterator[str]:
    return chain((name,), (f"{name}-{number}" for number in count(2)))
