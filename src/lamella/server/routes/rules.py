"""Routes for user rules: lasting instructions, detected or added by hand, that every compaction keeps."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lamella.conversation.conversation import Conversation
from lamella.schemas.compaction import (
    AddedRuleJson,
    RemovedRuleJson,
    RuleListJson,
    added_rule_to_json,
    removed_rule_to_json,
    rules_to_json,
)
from lamella.server.openapi import make_router
from lamella.server.state import ChatCaller, ReadCaller, StateDep

router = make_router(prefix="/v1/conversations/{conversation}/rules", tag="rules")
_RuleSelector = Annotated[
    str, Path(min_length=1, max_length=500, description="A rule by its id, its number or its words.")
]


class RuleBody(BaseModel):
    """One sentence with an instruction that applies from the next turn on."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=10_000, examples=["Answer in one sentence."])]


@router.get("", summary="The rules that hold")
def list_rules(*, conversation: str, state: StateDep, caller: ReadCaller) -> RuleListJson:
    """List every rule with the message it came with, newest last; rules added by hand have the origin `user`."""
    chat = state.open_conversation(caller, conversation)
    return rules_to_json(chat.id, chat.rules())


@router.post("", status_code=201, summary="Add a rule")
async def add_rule(*, conversation: str, body: RuleBody, state: StateDep, caller: ChatCaller) -> AddedRuleJson:
    """Add a rule that applies from the next turn on; every prompt contains it, whatever is compacted."""

    def do(chat: Conversation) -> AddedRuleJson:
        added = chat.add_rule(body.text)
        return added_rule_to_json(chat.id, chat.rules(), added)

    return await state.change_conversation(caller, conversation, do)


@router.delete("/{rule}", summary="Remove a rule")
async def remove_rule(
    *, conversation: str, rule: _RuleSelector, state: StateDep, caller: ChatCaller
) -> RemovedRuleJson:
    """Remove a rule from the next turn on; the message it came with stays unchanged."""

    def do(chat: Conversation) -> RemovedRuleJson:
        removed = chat.remove_rule(rule)
        return removed_rule_to_json(chat.id, chat.rules(), removed)

    return await state.change_conversation(caller, conversation, do)
