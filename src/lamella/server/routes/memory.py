"""Routes for the memory of an owner, and for the part of it in a conversation's prompt."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lamella.conversation.conversation import Conversation
from lamella.schemas.compaction import (
    AddedFactJson,
    ConversationMemoryJson,
    FactJson,
    MemoryJson,
    RemovedFactJson,
    added_fact_to_json,
    fact_to_json,
    memory_to_json,
    removed_fact_to_json,
)
from lamella.server.openapi import make_router
from lamella.server.state import ChatCaller, ReadCaller, StateDep

router = make_router(prefix="/v1", tag="memory")
_CONVERSATION_MEMORY_PATH = "/conversations/{conversation}/memory"
_FactSelector = Annotated[str, Path(min_length=1, max_length=500, description="A fact by its number or id.")]


class FactBody(BaseModel):
    """One fact, on one line."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=10_000, examples=["Writes in British English."])]


@router.get("/memory", summary="What is remembered")
def read_memory(*, state: StateDep, caller: ReadCaller) -> MemoryJson:
    """Return every fact and every line about a conversation, numbered."""
    return memory_to_json("", state.get_engine(caller).memory.read())


@router.post("/memory", status_code=201, summary="Remember a fact")
def add_fact(*, body: FactBody, state: StateDep, caller: ChatCaller) -> AddedFactJson:
    """Save a fact; the response says if it was there already."""
    fact, is_new = state.get_engine(caller).memory.add(body.text)
    return added_fact_to_json(fact, is_new=is_new)


@router.put("/memory/{fact}", summary="Put another text in place of a fact")
def edit_fact(*, fact: _FactSelector, body: FactBody, state: StateDep, caller: ChatCaller) -> FactJson:
    """Replace the text of a fact, which counts as the user's own from then on."""
    return fact_to_json(state.get_engine(caller).memory.edit(fact, body.text))


@router.delete("/memory/{fact}", summary="Forget a fact")
def remove_fact(*, fact: _FactSelector, state: StateDep, caller: ChatCaller) -> RemovedFactJson:
    """Remove a fact."""
    return removed_fact_to_json(state.get_engine(caller).memory.remove(fact))


@router.get(_CONVERSATION_MEMORY_PATH, summary="The memory in a prompt")
def read_conversation_memory(*, conversation: str, state: StateDep, caller: ReadCaller) -> ConversationMemoryJson:
    """Return the memory in the prompt of a conversation; on request, update it with what changed."""
    chat = state.open_conversation(caller, conversation)
    return ConversationMemoryJson(conversation=chat.id, text=chat.memory)


@router.post(_CONVERSATION_MEMORY_PATH, status_code=201, summary="Remember a conversation")
async def save_one_line_summary(*, conversation: str, state: StateDep, caller: ChatCaller) -> FactJson:
    """Save a one-line summary of a conversation in the memory; a model may be asked for it."""

    def keep(chat: Conversation) -> FactJson:
        return fact_to_json(state.get_engine(caller).save_one_line_summary(chat))

    return await state.change_conversation(caller, conversation, keep, is_long=True)
