"""Rules: what a user wants done from now on, as it was said or added by hand; whatever is compacted, they stand."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from lamella.engine.chat import Chat
from lamella.faces.server.bodies.conversations import AddedRuleJson, RemovedRuleJson, RuleListJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State, Talker
from lamella.views.recall import view_rule, view_rules

router = APIRouter(prefix="/v1/conversations/{conversation}/rules", tags=["rules"])
_Which = Annotated[str, Path(min_length=1, max_length=500, description="A rule by its id, its number or its words.")]


class RuleBody(BaseModel):
    """One sentence that says what is to be done from the next turn on."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=10_000, examples=["Answer in one sentence."])]


@router.get("", summary="The rules that hold", responses=told(RuleListJson))
def list_rules(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """Every rule with the message that it was said in, the newest last; those added by hand are the user's own."""
    chat = state.open_chat(caller, conversation)
    return view_rules(chat.id, chat.rules())


@router.post("", status_code=201, summary="Add a rule", responses=told(AddedRuleJson, 201))
async def add_rule(*, conversation: str, body: RuleBody, state: State, caller: Talker) -> dict[str, object]:
    """Have something done from the next turn on: it stands in every prompt, whatever is compacted."""

    def do(chat: Chat) -> dict[str, object]:
        added = chat.add_rule(body.text)
        return {**view_rules(chat.id, chat.rules()), "added": view_rule(added)}

    return await state.change(caller, conversation, do)


@router.delete("/{rule}", summary="Remove a rule", responses=told(RemovedRuleJson))
async def remove_rule(*, conversation: str, rule: _Which, state: State, caller: Talker) -> dict[str, object]:
    """Have a rule hold no more from the next turn on; what was said stays as it was said."""

    def do(chat: Chat) -> dict[str, object]:
        removed = chat.remove_rule(rule)
        return {**view_rules(chat.id, chat.rules()), "removed": view_rule(removed)}

    return await state.change(caller, conversation, do)
