"""Memory: what is remembered beyond one conversation, for each owner apart, and what a conversation has of it."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from lamella.engine.chat import Chat
from lamella.faces.server.bodies.library import FactJson, HeldMemoryJson, MemoryJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State, Talker
from lamella.views.recall import view_fact, view_memory

router = APIRouter(prefix="/v1", tags=["memory"])
_HELD = "/conversations/{conversation}/memory"
_Which = Annotated[str, Path(min_length=1, max_length=500, description="A fact by its number or id.")]


class FactBody(BaseModel):
    """One fact, on one line."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=10_000, examples=["Writes in British English."])]


@router.get("/memory", summary="What is remembered", responses=told(MemoryJson))
def read_memory(*, state: State, caller: Reader) -> dict[str, object]:
    """Every fact and every line about a conversation, numbered."""
    return view_memory("", state.engine_of(caller).memory.read())


@router.post("/memory", status_code=201, summary="Remember a fact", responses=told(FactJson, 201))
def add_fact(*, body: FactBody, state: State, caller: Talker) -> dict[str, object]:
    """Remember a fact; one that is there already is told."""
    fact, is_new = state.engine_of(caller).memory.add(body.text)
    return view_fact(fact, new=is_new)


@router.put("/memory/{fact}", summary="Put another text in place of a fact", responses=told(FactJson))
def edit_fact(*, fact: _Which, body: FactBody, state: State, caller: Talker) -> dict[str, object]:
    """Another text in place of a fact, which is the user's from then on."""
    return view_fact(state.engine_of(caller).memory.edit(fact, body.text))


@router.delete("/memory/{fact}", summary="Forget a fact", responses=told(FactJson))
def remove_fact(*, fact: _Which, state: State, caller: Talker) -> dict[str, object]:
    """Take a fact out."""
    return view_fact(state.engine_of(caller).memory.remove(fact), removed=True)


@router.get(_HELD, summary="The memory in a prompt", responses=told(HeldMemoryJson))
def read_held(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """The memory as it stands in the prompt of a conversation, which takes up what changed when it is asked to."""
    chat = state.open_chat(caller, conversation)
    return {"lamella": 1, "conversation": chat.id, "text": chat.memory}


@router.post(_HELD, status_code=201, summary="Remember a conversation", responses=told(FactJson, 201))
async def keep_recent(*, conversation: str, state: State, caller: Talker) -> dict[str, object]:
    """Remember what a conversation was about, on one line; a model may be asked for that."""

    def keep(chat: Chat) -> dict[str, object]:
        return view_fact(state.engine_of(caller).keep_recent(chat))

    return await state.change(caller, conversation, keep, long=True)
