"""Notes: what can be attached from the vault, by how its name goes on, and by what it says."""

from typing import Annotated

from fastapi import APIRouter, Query

from lamella.errors import NotAvailableError
from lamella.faces.server.bodies.library import NoteHitsJson, NoteNamesJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State
from lamella.views.notes import view_hits

router = APIRouter(prefix="/v1/notes", tags=["notes"])


@router.get("/complete", summary="Names that a word after @ may become", responses=told(NoteNamesJson))
def complete(
    *,
    state: State,
    _caller: Reader,
    q: Annotated[str, Query(max_length=500)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, object]:
    """Paths of the vault that have the word in them; any of them can be attached by its name."""
    files = state.suite.open_files()
    if files is None:
        raise NotAvailableError("No vault is served here.", hint="Attach a text with its kind, path and text.")
    return {"lamella": 1, "query": q, "names": files.complete(q, limit=limit)}


@router.get("/search", summary="Search the vault", responses=told(NoteHitsJson))
def search(
    *,
    state: State,
    caller: Reader,
    q: Annotated[str, Query(min_length=1, max_length=2_000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> dict[str, object]:
    """Passages of the vault, the best first, offline."""
    notes = state.engine_of(caller).notes
    report = notes.refresh()
    return view_hits(q, notes.search(q, limit=limit, refresh=False), report)
