"""Routes for the notes of the vault: completion of names, and search."""

from typing import Annotated

from fastapi import Query

from lamella.errors import NotAvailableError
from lamella.schemas.library import NameCompletionsJson, NoteHitsJson, hits_to_json
from lamella.server.openapi import make_router
from lamella.server.state import ReadCaller, StateDep

router = make_router(prefix="/v1/notes", tag="notes")


@router.get("/complete", summary="Names that a word after @ may become")
def complete(
    *,
    state: StateDep,
    _caller: ReadCaller,
    q: Annotated[str, Query(max_length=500)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> NameCompletionsJson:
    """List the notes, folders, tags and headings of the vault that match the word; each can be attached by its name."""
    files = state.engine_pool.open_attachment_resolver()
    if files is None:
        raise NotAvailableError("No vault is served here.", hint="Attach a text with its kind, path and text.")
    return NameCompletionsJson(
        query=q,
        names=files.complete_path(q, limit=limit),
        folders=files.complete_folder(q, limit=limit),
        tags=files.complete_tag(q.removeprefix("#"), limit=limit),
        headings=files.complete_heading(q, limit=limit),
    )


@router.get("/search", summary="Search the vault")
def search(
    *,
    state: StateDep,
    caller: ReadCaller,
    q: Annotated[str, Query(min_length=1, max_length=2_000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> NoteHitsJson:
    """Search the vault offline and return passages, best first."""
    notes = state.get_engine(caller).notes
    report = notes.refresh()
    return hits_to_json(q, notes.search(q, limit=limit, refresh=False), report)
