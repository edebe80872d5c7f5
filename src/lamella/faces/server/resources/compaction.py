"""Compaction: plan it, do what was planned, take it back; and recall of what left the prompt."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from lamella.engine.chat import Chat
from lamella.errors import CallError, DivergedError
from lamella.faces.server.bodies.compaction import PlanJson, RecallJson, ReceiptListJson, UndoneJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State, Talker
from lamella.views.recall import view_recall
from lamella.views.receipts import view_plan, view_receipt, view_undo

router = APIRouter(prefix="/v1/conversations/{conversation}", tags=["compaction"])
_Share = Annotated[float | None, Field(gt=0, le=1, description="How much to come down to, as a share of what fits.")]

# A message by its id, or as `turn:3` and `reply:3`.
_Place = Annotated[str | None, Field(min_length=1, max_length=100, examples=["turn:3"])]


class PlanBody(BaseModel):
    """How far to come down, and where: in all that was said, or from a message on, or up to one."""

    model_config = ConfigDict(extra="forbid")

    to: _Share = None
    since: Annotated[_Place, Field(description="Only from here on; every byte before it stays.")] = None
    until: Annotated[_Place, Field(description="Only up to here.")] = None


class CommitBody(PlanBody):
    """How far to come down, and where; with a receipt, only if that is still what would be done."""

    receipt: Annotated[str | None, Field(max_length=100)] = None


class UndoBody(BaseModel):
    """The compaction to void with all after it; else the last one."""

    model_config = ConfigDict(extra="forbid")

    receipt: Annotated[str | None, Field(max_length=100)] = None


@router.get("/compactions", summary="The compactions in force", responses=told(ReceiptListJson))
def list_compactions(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """The receipts in force on the active branch, oldest first."""
    chat = state.open_chat(caller, conversation)
    return {"lamella": 1, "conversation": chat.id, "receipts": [view_receipt(one) for one in chat.receipts()]}


@router.post("/compactions/plan", summary="Plan a compaction", responses=told(PlanJson))
async def plan(*, conversation: str, body: PlanBody, state: State, caller: Talker) -> dict[str, object]:
    """What compacting would take out and bring; nothing changes, but a model may be asked for a summary."""

    def do(chat: Chat) -> dict[str, object]:
        return view_plan(chat.id, chat.plan(body.to, since=body.since, until=body.until), committed=False)

    return await state.change(caller, conversation, do, long=True)


@router.post("/compactions", status_code=201, summary="Compact", responses=told(PlanJson, 201))
async def commit(*, conversation: str, body: CommitBody, state: State, caller: Talker) -> dict[str, object]:
    """Make room. Nothing is lost: what is taken out can be recalled, and all of it undone."""

    def do(chat: Chat) -> dict[str, object]:
        planned = chat.plan(body.to, since=body.since, until=body.until)
        if planned.receipt is None:
            raise CallError(
                f"There is nothing to compact: the next request has {planned.before.total:,} tokens, and up to "
                f"{planned.goal:,} are aimed for.",
                hint="Aim lower with `to`, or drop or unpin something.",
            )
        if body.receipt not in (None, planned.receipt.id):
            raise DivergedError("What would be done now is not what was planned.", hint="Plan it again.")
        chat.commit(planned)
        return view_plan(chat.id, planned, committed=True)

    return await state.change(caller, conversation, do, long=True)


@router.post("/compactions/undo", summary="Take a compaction back", responses=told(UndoneJson))
async def undo(*, conversation: str, body: UndoBody, state: State, caller: Talker) -> dict[str, object]:
    """Void a compaction and all after it: the next turn is as if they had never been."""

    def do(chat: Chat) -> dict[str, object]:
        before = chat.receipts()
        chat.undo(body.receipt)
        left = {one.id for one in chat.receipts()}
        return view_undo(chat.id, [one.id for one in before if one.id not in left])

    return await state.change(caller, conversation, do)


@router.get("/recall", summary="Recall what left the prompt", responses=told(RecallJson))
def recall(
    *,
    conversation: str,
    state: State,
    caller: Reader,
    q: Annotated[str, Query(min_length=1, max_length=10_000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
) -> dict[str, object]:
    """Originals that the prompt no longer holds in full and that have these words, best first."""
    chat = state.open_chat(caller, conversation)
    return view_recall(chat.id, q, chat.recall(q, limit))
