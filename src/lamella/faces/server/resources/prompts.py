"""Prompts: what was sent, what would be sent next and for how much, and why things stand where they do."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from lamella import Turn
from lamella.engine.chat import Chat
from lamella.faces.server.attached import AttachedList, read_attached
from lamella.faces.server.bodies.ledger import LedgerJson
from lamella.faces.server.bodies.prompts import (
    BudgetJson,
    ReasonJson,
    RequestJson,
    SentTurnJson,
    WeighedTurnJson,
    WorkingSetJson,
)
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Reader, State
from lamella.refusals import NotFoundError
from lamella.views.ledger import make_rows, view_ledger
from lamella.views.reasons import view_reason
from lamella.views.serving.prompts import view_budget, view_next, view_sent, view_working_set
from lamella.wiring import write_request

router = APIRouter(prefix="/v1/conversations/{conversation}", tags=["prompts"])
_Number = Annotated[int, Path(ge=1, le=1_000_000_000)]
_Names = Annotated[list[str], Field(max_length=500)]


class PreviewBody(BaseModel):
    """A question that might be asked."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    attach: AttachedList = []
    detach: _Names = []
    drop: _Names = []
    fold: bool = False
    model: Annotated[str | None, Field(max_length=300)] = None
    whole: Annotated[bool, Field(description="With the envelope and its messages.")] = False


@router.get("/turns/{number}", summary="The envelope of a turn", responses=told(SentTurnJson))
def read_turn(*, conversation: str, number: _Number, state: State, caller: Reader) -> dict[str, object]:
    """A turn as it was sent: five layers with every segment, messages, what moved and what it cost.

    It is built again from the log; `same_bytes` says whether its hash is that of what was sent.
    """
    chat = state.open_chat(caller, conversation)
    turn = _find_turn(chat, number)
    rows = make_rows(chat.turns(), chat.ledger())
    return view_sent(chat.id, turn, rows[number - 1].imprint)


@router.get("/turns/{number}/request", summary="The exact body of a turn", responses=told(RequestJson))
def read_request(
    *,
    conversation: str,
    number: _Number,
    state: State,
    caller: Reader,
    provider: Annotated[str, Query(min_length=1, max_length=60, description="Whose wire format.")],
    max_tokens: Annotated[int | None, Query(ge=1, le=10_000_000)] = None,
) -> dict[str, object]:
    """The body that a provider's SDK sends for a turn, byte for byte; nothing is sent."""
    turn = _find_turn(state.open_chat(caller, conversation), number)
    return write_request(turn, provider, answer=max_tokens, any_model=True, services=state.suite.services)


@router.post("/preview", summary="What the next turn would cost", responses=told(WeighedTurnJson))
def preview(*, conversation: str, body: PreviewBody, state: State, caller: Reader) -> dict[str, object]:
    """What asking this would send, with its tokens, cache and price, before it is sent. Nothing changes."""
    chat = state.open_chat(caller, conversation)
    turn = chat.preview(
        body.text,
        attach=read_attached(body.attach, state),
        detach=body.detach,
        drop=body.drop,
        fold=body.fold,
        model=body.model,
    )
    return view_next(chat.id, turn, whole=body.whole)


@router.get("/budget", summary="How full the window is", responses=told(BudgetJson))
def read_budget(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """What the next request weighs by layer, and what fits."""
    chat = state.open_chat(caller, conversation)
    return view_budget(chat.id, chat.preview())


@router.get("/working-set", summary="What the model can read", responses=told(WorkingSetJson))
def read_working_set(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """The ids of what the model can read in the next turn in its current text."""
    chat = state.open_chat(caller, conversation)
    return view_working_set(chat.id, chat.working_set)


@router.get("/ledger", summary="The ledger", responses=told(LedgerJson))
def read_ledger(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """Each turn with its model calls: what was predicted, what was reported, whose doing a miss was, money and time."""
    chat = state.open_chat(caller, conversation)
    return view_ledger(chat.id, make_rows(chat.turns(), chat.ledger()), chat.doubts())


@router.get("/why", summary="Why something is in the prompt or is not", responses=told(ReasonJson))
def tell_why(
    *, conversation: str, state: State, caller: Reader, name: Annotated[str, Query(min_length=1, max_length=2_000)]
) -> dict[str, object]:
    """Why an artifact or a message is in the next prompt or is not, and what would bring it in."""
    chat = state.open_chat(caller, conversation)
    return view_reason(chat.id, chat.why(name))


def _find_turn(chat: Chat, number: int) -> Turn:
    if number > len(chat.turns()):
        raise NotFoundError(
            f"The conversation {chat.name} has {len(chat.turns()):,} turns.", hint="Choose one of those, from 1."
        )
    return next(turn for turn in chat.replay() if turn.number == number)
