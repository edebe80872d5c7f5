"""Solutions: a question about code with its history, answered, and files chosen for one; also at the old addresses."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from lamella.code import ChatKind
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.bodies.solutions import SelectionJson, SolutionJson
from lamella.faces.server.doors.hosted import resolve_model
from lamella.faces.server.solving import AskedSolution
from lamella.faces.server.state import Caller, ServerState, State, Talker
from lamella.refusals import NameTakenError
from lamella.runners.kinds.requests import IGNORED, read_problem
from lamella.runners.kinds.solving import word_question
from lamella.wiring import MOST_TOKENS, filter_request

router = APIRouter(tags=["code"])
_BEDS: dict[str, Any] = {"path": "beds.js", "content": "export function water(bed) {\n  bed.wet = 1;\n}\n"}
_ASKED: dict[str, Any] = {
    "prompt": "And why?",
    "messages": [{"role": "user", "content": "What does it do?"}, {"role": "assistant", "content": "It waters."}],
    "chatState": {"given": ["regular"]},
}
_Budget = Annotated[int | None, Field(ge=1, le=MOST_TOKENS, description="Within how many tokens files are chosen.")]
_Model = Annotated[str | None, Field(max_length=300, description="One that may be named here; else the usual one.")]
_Files = Annotated[
    list[JsonValue] | dict[str, JsonValue] | None,
    Field(description="Files with `path` and `content`, or contents by path.", examples=[[_BEDS]]),
]
_Unread = Annotated[JsonValue, Field(description="Ignored; neither stored nor logged.")]


class _RequestBody(BaseModel):
    """What both requests have. Who asks, with which key and in which plan, is not for a client to say."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    model: _Model = None
    codebase: _Files = None
    filter_max_tokens_count: _Budget = None
    api_key: _Unread = None
    user_id: _Unread = None
    is_premium: _Unread = None

    def tell(self, state: ServerState) -> dict[str, object]:
        """The request as it is read further: nothing of what is ignored but its name, and the model as it is meant."""
        given = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        model = {"model": resolve_model(self.model, state)} if self.model else {}
        return {**given, **model, **{name: None for name in IGNORED if name in given}}


class SolutionBody(_RequestBody):
    """A question, and all that the client knows of the conversation."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ASKED]})

    prompt: str | None = None
    messages: list[JsonValue] | None = None
    code_snippet: str | None = None
    use_template: bool | None = None
    is_codebase_analysis: bool | None = None
    kind: ChatKind | None = None
    chat_state: dict[str, JsonValue] | None = None
    conversation: Annotated[str | None, Field(max_length=200, description="Where it is kept; else nowhere.")] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=10_000_000)] = None


class FilterBody(_RequestBody):
    """Files, and the question that they are chosen for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"codebase": [_BEDS], "question": "What waters a bed?"}]})

    question: str | None = None
    prompt: str | None = None
    filter_type: Literal["regularFilter"] = "regularFilter"


@router.post("/Unfold/New/solution", summary="Answer a question with its history", responses=told(SolutionJson))
@router.post("/v1/solution", summary="Answer a question with its history", responses=told(SolutionJson))
async def solve(*, request: Request, body: SolutionBody, state: State, caller: Talker) -> dict[str, object]:
    """The answer, the whole history and the new state; kept only where a conversation is named."""
    problem = body.tell(state)
    key = await state.suite.pool.workers.finish(lambda: _settle(state, caller, problem))
    return await AskedSolution(state, caller).answer(request, problem, key)


@router.post("/Unfold/new/codebase-filter", summary="Choose files for a question", responses=told(SelectionJson))
@router.post("/v1/codebase-filter", summary="Choose files for a question", responses=told(SelectionJson))
async def choose_files(*, body: FilterBody, state: State, caller: Talker) -> dict[str, object]:
    """What was chosen of the files, with its content; nothing of them is kept, and no model is asked."""

    def choose() -> dict[str, object]:
        request = body.tell(state)
        model = str(request.get("model") or state.suite.model)
        # A name may be that of a file with weights, which counting would open.
        state.engine_of(caller).check_model(model)
        return filter_request({**request, "model": model})

    return await asyncio.to_thread(choose)


def _settle(state: ServerState, caller: Caller, request: dict[str, object]) -> str | None:
    """Refuse what cannot be asked before anything is begun; the key of the conversation that it is kept in, if any."""
    problem = read_problem(request)[0]
    word_question(problem)
    engine = state.engine_of(caller)
    if problem.model is not None:
        engine.check_model(problem.model)
    if problem.conversation is None:
        request["model"] = problem.model or state.suite.model
        return None
    key = _find(state, caller, problem.conversation, model=problem.model or state.suite.model)
    request["conversation"] = key
    return key


def _find(state: ServerState, caller: Caller, name: str, *, model: str) -> str:
    """The key of a conversation, which is begun where there is none."""
    engine = state.engine_of(caller)
    found = engine.look_up(name)
    if found is not None:
        return found.conversation
    try:
        return engine.begin(name, title=None, **{**state.suite.fit(model), "model": model}).id
    except NameTakenError:
        return state.find_key(caller, name)
