"""Routes for compaction: plan, apply and undo it, and recall of what left the prompt."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from lamella.conversation.conversation import Conversation
from lamella.conversation.recall import DEFAULT_RECALL_TOKENS
from lamella.errors import HistoryConflictError, InvalidOperationError
from lamella.schemas.compaction import (
    PlanJson,
    RecallJson,
    ReceiptListJson,
    UndoResultJson,
    plan_to_json,
    recall_to_json,
    receipts_to_json,
)
from lamella.server.openapi import make_router
from lamella.server.state import ChatCaller, ReadCaller, StateDep

router = make_router(prefix="/v1/conversations/{conversation}", tag="compaction")
_TargetShare = Annotated[float | None, Field(gt=0, le=1, description="Target size as a share of the context window.")]

# A message by its id, or as `turn:3` and `reply:3`.
_MessageRef = Annotated[str | None, Field(min_length=1, max_length=100, examples=["turn:3"])]


class PlanBody(BaseModel):
    """The target size, and the range to compact: the whole conversation, or only from or up to a message."""

    model_config = ConfigDict(extra="forbid")

    to: _TargetShare = None
    since: Annotated[_MessageRef, Field(description="Only from here on; every byte before it stays.")] = None
    until: Annotated[_MessageRef, Field(description="Only up to here.")] = None


class CommitBody(PlanBody):
    """The target size and the range; with a receipt, only if the plan is still the same."""

    receipt: Annotated[str | None, Field(max_length=100)] = None


class UndoBody(BaseModel):
    """The compaction to undo together with all later ones; by default the last one."""

    model_config = ConfigDict(extra="forbid")

    receipt: Annotated[str | None, Field(max_length=100)] = None


@router.get("/compactions", summary="The compactions in force")
def list_compactions(*, conversation: str, state: StateDep, caller: ReadCaller) -> ReceiptListJson:
    """List the receipts in force on the active branch, oldest first."""
    chat = state.open_conversation(caller, conversation)
    return receipts_to_json(chat.id, chat.receipts())


@router.post("/compactions/plan", summary="Plan a compaction")
async def plan(*, conversation: str, body: PlanBody, state: StateDep, caller: ChatCaller) -> PlanJson:
    """Plan a compaction and return what it would remove and save.

    Nothing changes, but a model may be asked for a summary.
    """

    def do(chat: Conversation) -> PlanJson:
        return plan_to_json(chat.id, chat.plan(body.to, since=body.since, until=body.until), committed=False)

    return await state.change_conversation(caller, conversation, do, is_long=True)


@router.post("/compactions", status_code=201, summary="Compact")
async def commit(*, conversation: str, body: CommitBody, state: StateDep, caller: ChatCaller) -> PlanJson:
    """Compact the conversation. Removed text can be recalled, and the compaction can be undone."""

    def do(chat: Conversation) -> PlanJson:
        planned = chat.plan(body.to, since=body.since, until=body.until)
        if planned.receipt is None:
            raise InvalidOperationError(
                f"There is nothing to compact: the next request has {planned.before.total:,} tokens, and up to "
                f"{planned.target_tokens:,} are aimed for.",
                hint="Aim lower with `to`, or drop or unpin something.",
            )
        if body.receipt not in (None, planned.receipt.id):
            raise HistoryConflictError("What would be done now is not what was planned.", hint="Plan it again.")
        chat.commit(planned)
        return plan_to_json(chat.id, planned, committed=True)

    return await state.change_conversation(caller, conversation, do, is_long=True)


@router.post("/compactions/undo", summary="Take a compaction back")
async def undo_compactions(*, conversation: str, body: UndoBody, state: StateDep, caller: ChatCaller) -> UndoResultJson:
    """Undo a compaction and all later ones; the next turn is built as if they had never happened."""

    def do(chat: Conversation) -> UndoResultJson:
        before = chat.receipts()
        chat.undo(body.receipt)
        left = {one.id for one in chat.receipts()}
        return UndoResultJson(conversation=chat.id, undone=[one.id for one in before if one.id not in left])

    return await state.change_conversation(caller, conversation, do)


@router.get("/recall", summary="Recall what left the prompt")
def recall(
    *,
    conversation: str,
    state: StateDep,
    caller: ReadCaller,
    q: Annotated[str, Query(min_length=1, max_length=10_000)],
    limit: Annotated[int | None, Query(ge=1, le=100, description="Maximum number of hits.")] = None,
    max_tokens: Annotated[
        int, Query(ge=1, le=100_000, description="Maximum number of tokens of all hits.")
    ] = DEFAULT_RECALL_TOKENS,
    whole: Annotated[bool, Query(description="Return the whole text of each hit.")] = False,
) -> RecallJson:
    """Search for text that is no longer in the prompt in full, best first; there are no hits if nothing fits."""
    chat = state.open_conversation(caller, conversation)
    return recall_to_json(chat.id, q, chat.recall(q, limit, max_tokens=max_tokens), whole=whole)
