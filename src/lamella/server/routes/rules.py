"""Routes for user rules: lasting instructions, detected or added by hand, that every compaction keeps."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from lamella.conversation.conversation import StoredConversation
from lamella.schemas.compaction import rule_to_json, rules_to_json
from lamella.server.bodies import AddedRuleJson, RemovedRuleJson, RuleListJson, response_docs
from lamella.server.state import ChatCaller, ReadCaller, StateDep

router = APIRouter(prefix="/v1/conversations/{conversation}/rules", tags=["rules"])
_RuleSelector = Annotated[
    str, Path(min_length=1, max_length=500, description="A rule by its id, its number or its words.")
]


class RuleBody(BaseModel):
    """One sentence with an instruction that applies from the next turn on."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=10_000, examples=["Answer in one sentence."])]


@router.get("", summary="The rules that hold", responses=response_docs(RuleListJson))
def list_rules(*, conversation: str, state: StateDep, caller: ReadCaller) -> dict[str, object]:
    """List every rule with the message it came with, newest last; rules added by hand have the origin `user`."""
    chat = state.open_conversation(caller, conversation)
    return rules_to_json(chat.id, chat.rules())


@router.post("", status_code=201, summary="Add a rule", responses=response_docs(AddedRuleJson, 201))
async def add_rule(*, conversation: str, body: RuleBody, state: StateDep, caller: ChatCaller) -> dict[str, object]:
    """Add a rule that applies from the next turn on; every prompt contains it, whatever is compacted."""

    def do(chat: StoredConversation) -> dict[str, object]:
        added = chat.add_rule(body.text)
        return {**rules_to_json(chat.id, chat.rules()), "added": rule_to_json(added)}

    return await state.change_conversation(caller, conversation, do)


@router.delete("/{rule}", summary="Remove a rule", responses=response_docs(RemovedRuleJson))
async def remove_rule(
    *, conversation: str, rule: _RuleSelector, state: StateDep, caller: ChatCaller
) -> dict[str, object]:
    """Remove a rule from the next turn on; the message it came with stays unchanged."""

    def do(chat: StoredConversation) -> dict[str, object]:
        removed = chat.remove_rule(rule)
        return {**rules_to_json(chat.id, chat.rules()), "removed": rule_to_json(removed)}

    return await state.change_conversation(caller, conversation, do)
