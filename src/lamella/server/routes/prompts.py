"""Routes for prompts: sent turns, previews with their cost, the ledger, and why an artifact is in the prompt."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from secrets import token_hex
from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from lamella import Turn
from lamella.attach import Attachment
from lamella.conversation.conversation import Conversation
from lamella.errors import LamellaError, NotFoundError
from lamella.schemas.ledger import CacheMiss, LedgerJson, build_ledger_rows, ledger_to_json
from lamella.schemas.prompts import (
    BudgetJson,
    PromptExplanationJson,
    ProviderRequestJson,
    SentTurnJson,
    TurnPreviewJson,
    WorkingSetJson,
    budget_to_json,
    explanation_to_json,
    sent_turn_to_json,
    turn_preview_to_json,
)
from lamella.schemas.strata import StrataJson, iter_turn_strata
from lamella.server.caching import has_etag
from lamella.server.openapi import describe_response, json_response, make_router
from lamella.server.routes.catalog import list_known_prices
from lamella.server.state import ReadCaller, ServerState, StateDep
from lamella.server.turns import AttachedList, parse_attachments
from lamella.wiring import build_request_body

router = make_router(prefix="/v1/conversations/{conversation}", tag="prompts")
_TurnNumber = Annotated[int, Path(ge=1, le=1_000_000_000)]
_NameList = Annotated[list[str], Field(max_length=500)]
# A range of turns in one response.
_MAX_STRATA_TURNS = 1_000
# Prices and facts about models may differ after a restart.
_PROCESS_ID = token_hex(4)


class PreviewBody(BaseModel):
    """A question to preview."""

    model_config = ConfigDict(extra="forbid")

    text: str = ""
    attach: AttachedList = []
    detach: _NameList = []
    drop: _NameList = []
    pin: _NameList = []
    unpin: _NameList = []
    refresh: Annotated[_NameList, Field(description="Read again; one that cannot be read stays as it is.")] = []
    fold: bool = False
    model: Annotated[str | None, Field(max_length=300)] = None
    whole: Annotated[bool, Field(description="With the envelope and its messages.")] = False


@router.get("/turns/{number}", summary="The envelope of a turn")
def read_turn(
    *,
    conversation: str,
    number: _TurnNumber,
    state: StateDep,
    caller: ReadCaller,
    texts: Annotated[bool, Query(description="Whether layers and messages come with their texts.")] = True,
) -> SentTurnJson:
    """Return a turn as it was sent: five layers with every segment, messages, the prefix change and the cost.

    It is built again from the log; `same_bytes` says whether its hash equals that of the request sent.
    """
    chat = state.open_conversation(caller, conversation)
    turn = _get_turn(chat, number)
    question = chat.turns()[number - 1].message.question_event
    return sent_turn_to_json(chat.id, turn, None if question is None else question.imprint, with_texts=texts)


@router.get(
    "/turns/{number}/request", summary="The exact body of a turn", responses=describe_response(ProviderRequestJson)
)
def read_request(
    *,
    conversation: str,
    number: _TurnNumber,
    state: StateDep,
    caller: ReadCaller,
    provider: Annotated[str, Query(min_length=1, max_length=60, description="Whose wire format.")],
    max_tokens: Annotated[int | None, Query(ge=1, le=10_000_000)] = None,
) -> JSONResponse:
    """Return the body that a provider's SDK sends for a turn, byte for byte; nothing is sent."""
    turn = _get_turn(state.open_conversation(caller, conversation), number)
    body = build_request_body(
        turn, provider, max_answer_tokens=max_tokens, allow_any_model=True, services=state.engine_pool.services
    )
    return JSONResponse(body)


@router.post("/preview", summary="What the next turn would cost")
async def preview(*, conversation: str, body: PreviewBody, state: StateDep, caller: ReadCaller) -> TurnPreviewJson:
    """Preview a question: the request with its tokens, cache use and cost. Nothing is sent, and nothing changes."""

    def build() -> tuple[str, Turn]:
        chat = state.open_conversation(caller, conversation)
        turn = chat.preview(
            body.text,
            attach=[*parse_attachments(body.attach, state), *_read_attachments_again(body.refresh, state)],
            detach=body.detach,
            drop=body.drop,
            pin=body.pin,
            unpin=body.unpin,
            fold=body.fold,
            model=body.model,
            at=state.engine_pool.backend.default_change_time(),
        )
        return chat.id, turn

    pool = state.engine_pool.pool
    key, built = await pool.workers.run(build)
    turn = await pool.with_provider_forecast(built)
    return turn_preview_to_json(key, turn, with_messages=body.whole)


@router.get("/budget", summary="How full the window is")
def read_budget(*, conversation: str, state: StateDep, caller: ReadCaller) -> BudgetJson:
    """Return the token counts of the next request by layer, and how many tokens are left."""
    chat = state.open_conversation(caller, conversation)
    return budget_to_json(chat.id, chat.preview())


@router.get("/working-set", summary="What the model can read")
def read_working_set(*, conversation: str, state: StateDep, caller: ReadCaller) -> WorkingSetJson:
    """Return the ids of the artifacts that the model can read in the next turn, in their current text."""
    chat = state.open_conversation(caller, conversation)
    return WorkingSetJson(conversation=chat.id, working_set=chat.working_set)


@router.get("/ledger", summary="The ledger")
def read_ledger(*, conversation: str, state: StateDep, caller: ReadCaller) -> LedgerJson:
    """Return each turn with its model calls: predicted and reported usage, who caused a cache miss, cost and time."""
    chat = state.open_conversation(caller, conversation)
    return ledger_to_json(
        chat.id,
        build_ledger_rows(chat.turns(), chat.ledger(), chat.receipts(), chat.cache_misses()),
        chat.profile_mismatches(),
    )


@router.get("/why", summary="Why something is in the prompt or is not")
def explain_artifact(
    *,
    conversation: str,
    state: StateDep,
    caller: ReadCaller,
    name: Annotated[str, Query(min_length=1, max_length=2_000)],
) -> PromptExplanationJson:
    """Explain why an artifact or a message is in the next prompt or not, and how to include it."""
    chat = state.open_conversation(caller, conversation)
    return explanation_to_json(chat.id, chat.why(name))


@router.get(
    "/strata", summary="The prompts turn by turn", response_class=Response, responses=describe_response(StrataJson)
)
def read_strata(
    *,
    request: Request,
    conversation: str,
    state: StateDep,
    caller: ReadCaller,
    first: Annotated[int | None, Query(alias="from", ge=1, le=1_000_000_000, description="First turn.")] = None,
    last: Annotated[int | None, Query(alias="to", ge=1, le=1_000_000_000, description="Last turn.")] = None,
    messages: Annotated[bool, Query(description="Each earlier message as a piece of its own.")] = False,
    layout: Annotated[str | None, Query(max_length=40, description="As it would have been in this layout.")] = None,
    model: Annotated[
        str | None, Query(max_length=200, description="As it would have been with a model of `GET /v1/prices`.")
    ] = None,
) -> Response:
    """Return what was sent in each turn of the active branch, piece by piece in the order of the request.

    Without a range, the last 1,000 turns are returned, and at most 1,000 of a range. With a layout or a model, the same
    questions are built again under these settings: nothing is sent, and nothing was reported.
    """
    chat = state.open_conversation(caller, conversation)
    supposed = f"{layout or ''}-{model or ''}"
    etag = f'W/"{_PROCESS_ID}-{chat.id}-{chat.version}-{first or ""}-{last or ""}-{int(messages)}-{supposed}"'
    if has_etag(request.headers, etag):
        return Response(status_code=304, headers={"ETag": etag})
    records = chat.turns()
    end = min(last or len(records), len(records))
    begin = max(1, end - _MAX_STRATA_TURNS + 1) if first is None else first
    end = min(end, begin + _MAX_STRATA_TURNS - 1)
    compactions: dict[int, str] = {}
    misses: dict[int, CacheMiss | None] = {}
    if layout is None and model is None:
        turns, calls = chat.sent_turns(begin, end), dict(enumerate(chat.ledger(), start=1))
        compactions = _list_compactions(chat)
        misses = dict(enumerate(chat.cache_misses(), start=1))
    else:
        turns, calls = (
            islice(_replay_with_layout_or_model(chat, state, layout, model), begin - 1, max(begin - 1, end)),
            {},
        )
    strata = iter_turn_strata(
        turns,
        calls,
        {number: record.message.at for number, record in enumerate(records, start=1)},
        compactions,
        misses,
        groups_history=not messages,
    )
    body = StrataJson(conversation=chat.id, head=chat.head, count=len(records), turns=list(strata))
    response = json_response(body)
    response.headers["ETag"] = etag
    return response


def _read_attachments_again(names: Sequence[str], state: ServerState) -> Iterator[Attachment]:
    for name in names:
        with suppress(LamellaError):
            yield from parse_attachments([name], state)


def _replay_with_layout_or_model(
    chat: Conversation, state: ServerState, layout: str | None, model: str | None
) -> Iterator[Turn]:
    """Yield the turns as they would have been; a model must be one whose price is known, since others may be files."""
    if model is not None and model not in (*state.engine_pool.list_allowed_models(), *list_known_prices(state)):
        raise NotFoundError(f"No price is known for {model[:100]!r}.", hint="GET /v1/prices lists the models with one.")
    return chat.replay(layout=layout, model=model)


def _list_compactions(chat: Conversation) -> dict[int, str]:
    """Return the compactions between two turns of the active branch, by the number of the turn after them."""
    numbers: dict[str, int] = {}
    for following, record in enumerate(chat.turns(), start=2):
        numbers[record.message.id] = following
        if record.reply is not None:
            numbers[record.reply.id] = following
    found: dict[int, str] = {}
    for marker in chat.compaction_markers():
        number = numbers.get(marker.message)
        if number is not None and marker.receipt is not None:
            found[number] = marker.receipt.id
        elif number is not None and found.get(number) in marker.voided:
            found.pop(number)
    return found


def _get_turn(chat: Conversation, number: int) -> Turn:
    if number > len(chat.turns()):
        raise NotFoundError(
            f"The conversation {chat.name} has {len(chat.turns()):,} turns.", hint="Choose one of those, from 1."
        )
    return next(chat.sent_turns(number, number))
