"""Opening: a store has one trust key, and other locations have others."""

from pathlib import Path

import pytest

from lamella.errors import LamellaError
from lamella.stores.open_store import get_store_trust_key

NAMED = {
    "postgresql://me:secret@h:5/x": "postgresql://me@h:5/x",
    "postgres://h/x?password=secret&sslpassword=s&connect_timeout=3": "postgresql://h/x",
    "postgresql:///x?host=evil": "postgresql://evil/x",
    "postgresql://%65vil/x": "postgresql://evil/x",
    "postgresql://h/x?hostaddr=1.2.3.4": "postgresql://h/x?hostaddr=1.2.3.4",
    "postgresql://h/x?sslmode=disable": "postgresql://h/x?sslmode=disable",
    "postgresql:///x?service=work": "postgresql:///x?service=work",
    "postgresql://h./x": "postgresql://h./x",
    "postgresql://a,b:1/x": "postgresql://a,b:1/x",
    "postgresql:///x?host=a,b&port=7": "postgresql://a:7,b:7/x",
    "postgresql://[::1]:7/x": "postgresql://[::1]:7/x",
    "postgresql://u%40v@h/a%2Fb": "postgresql://u%40v@h/a%2Fb",
    "postgresql://h/x?schema=lamella": "postgresql://h/x",
    "postgresql://h/x?schema=other": "postgresql://h/x?schema=other",
    "postgresql:///x?host=/run/pg": "postgresql://%2Frun%2Fpg/x",
}


@pytest.mark.parametrize(("url", "place"), NAMED.items())
def test_server_store_trust_key_is_canonical(url: str, place: str) -> None:
    assert (get_store_trust_key(url), get_store_trust_key(place)) == (place, place)


def test_file_store_trust_key_resolves_links_and_memory_has_none(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "chats.db")
    assert get_store_trust_key(f"sqlite:///{tmp_path}/link.db") == f"sqlite:///{tmp_path.resolve()}/chats.db"
    assert [get_store_trust_key(url) for url in ("memory:", "sqlite://", "sqlite:///:memory:")] == [None] * 3


def test_circular_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    with pytest.raises(LamellaError, match="leads to no file"):
        get_store_trust_key(f"sqlite:///{tmp_path}/ring/chats.db")
