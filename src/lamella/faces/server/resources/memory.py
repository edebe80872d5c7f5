"""Memory: what is remembered beyond one conversation, for each owner apart."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from lamella.faces.server.bodies.library import FactJson, MemoryJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State, Talker
from lamella.views.recall import view_fact, view_memory

router = APIRouter(prefix="/v1/memory", tags=["memory"])
_Which = Annotated[str, Path(min_length=1, max_length=500, description="A fact by its number or id.")]


class FactBody(BaseModel):
    """One fact, on one line."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=10_000, examples=["Writes in British English."])]


@router.get("", summary="What is remembered", responses=told(MemoryJson))
def read_memory(*, state: State, caller: Reader) -> dict[str, object]:
    """Every fact and every line about a conversation, numbered."""
    return view_memory("", state.engine_of(caller).memory.read())


@router.post("", status_code=201, summary="Remember a fact", responses=told(FactJson, 201))
def add_fact(*, body: FactBody, state: State, caller: Talker) -> dict[str, object]:
    """Remember a fact; one that is there already is told."""
    fact, is_new = state.engine_of(caller).memory.add(body.text)
    return view_fact(fact, new=is_new)


@router.put("/{fact}", summary="Put another text in place of a fact", responses=told(FactJson))
def edit_fact(*, fact: _Which, body: FactBody, state: State, caller: Talker) -> dict[str, object]:
    """Another text in place of a fact, which is the user's from then on."""
    return view_fact(state.engine_of(caller).memory.edit(fact, body.text))


@router.delete("/{fact}", summary="Forget a fact", responses=told(FactJson))
def remove_fact(*, fact: _Which, state: State, caller: Talker) -> dict[str, object]:
    """Take a fact out."""
    return view_fact(state.engine_of(caller).memory.remove(fact), removed=True)
