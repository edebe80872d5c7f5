"""What a conversation touched of a folder, so that files are chosen with it in mind."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.faces.cli.access import opened_chat
from lamella.wiring import list_conversations

if TYPE_CHECKING:
    from lamella.engine.keeping.stored import StoredChat


def find_touched(chat: str | None, folder: Path | None, *, store: str | None) -> tuple[str, ...]:
    """The files of a folder that a conversation has, by their paths in it; none where it is yet to begin."""
    if chat is None or folder is None:
        return ()
    if not any(chat in (one.name, one.conversation, one.title) for one in list_conversations(store, create=True)):
        return ()
    with opened_chat(store, chat) as stored:
        return tuple(_find_inside(stored, folder))


def _find_inside(chat: "StoredChat", folder: Path) -> Iterator[str]:
    """What came by a choice before does not choose itself again."""
    root = folder.resolve()
    for one in chat.library():
        path = Path(one.id.partition("#")[0]).absolute()
        if one.via is None and path.is_relative_to(root):
            yield path.relative_to(root).as_posix()
