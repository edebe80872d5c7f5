"""Access tokens: only their hashes are stored, and a token is valid until it is revoked."""

from pathlib import Path

import pytest

from lamella.errors import SettingError
from lamella.settings.tokens import TOKEN_PREFIX, AccessScope, AccessTokenFile


@pytest.fixture
def book(tmp_path: Path) -> AccessTokenFile:
    return AccessTokenFile(tmp_path / "tokens.json")


def _add(book: AccessTokenFile, name: str = "laptop") -> str:
    return book.add(name, owner="ana", scope=AccessScope.CHAT, since="2026-11-17")


def test_token_is_stored_as_hash_only(book: AccessTokenFile) -> None:
    token = _add(book)
    assert token.startswith(TOKEN_PREFIX)
    assert token.removeprefix(TOKEN_PREFIX) not in book.path.read_text(encoding="utf-8")
    found = book.find_by_token(token)
    assert found is not None
    assert (found.name, found.owner, found.scope) == ("laptop", "ana", AccessScope.CHAT)
    assert book.find_by_token(token + "x") is None
    assert book.find_by_token("\ud800") is None


def test_token_file_is_private(book: AccessTokenFile) -> None:
    _add(book)
    assert book.path.stat().st_mode & 0o077 == 0


def test_revoked_token_is_unknown_at_once(book: AccessTokenFile) -> None:
    token, other = _add(book), AccessTokenFile(book.path)
    assert other.find_by_token(token) is not None
    assert book.remove("laptop")
    assert other.find_by_token(token) is None
    assert not book.remove("laptop")


def test_no_two_tokens_are_the_same_and_no_two_have_one_name(book: AccessTokenFile) -> None:
    assert _add(book) != _add(book, "phone")
    with pytest.raises(SettingError, match="Token already exists: laptop"):
        _add(book)


@pytest.mark.parametrize("name", ["Ana", "a/b", "", "../x", "a" * 64, "~ana", "a b", "a\n"])
def test_ambiguous_token_name_is_refused(book: AccessTokenFile, name: str) -> None:
    if name:
        with pytest.raises(SettingError, match="is no name of a token"):
            book.add("ok", owner=name, scope=AccessScope.READ, since="2026-11-17")
    with pytest.raises(SettingError):
        book.add(name or " ", owner="", scope=AccessScope.READ, since="2026-11-17")


def test_unreadable_token_file_grants_no_access(book: AccessTokenFile) -> None:
    assert book.find_by_token("anything") is None
    book.path.write_text("{", encoding="utf-8")
    with pytest.raises(SettingError, match="cannot be read"):
        book.find_by_token("anything")


def test_scope_includes_lower_ones() -> None:
    read, chat, admin = AccessScope
    assert [one.includes(chat) for one in (read, chat, admin)] == [False, True, True]
    assert admin.includes(read)
