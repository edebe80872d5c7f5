"""Routes for code questions with their history, and for selecting files; also at the paths of an older API."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from lamella.code import CodeTask
from lamella.errors import NameConflictError
from lamella.runners.code_questions import render_question
from lamella.runners.code_requests import IGNORED_FIELDS, parse_code_question
from lamella.schemas.code import FilterResponseJson, SolutionJson
from lamella.server.openapi import make_router
from lamella.server.state import Caller, ChatCaller, ServerState, StateDep
from lamella.server.turns import CodeQuestionTurn
from lamella.wiring import MAX_CODE_BUDGET, resolve_request_model, select_files_for_request

router = make_router(tag="code")
_EXAMPLE_FILE: dict[str, Any] = {"path": "beds.js", "content": "export function water(bed) {\n  bed.wet = 1;\n}\n"}
_EXAMPLE_REQUEST: dict[str, Any] = {
    "prompt": "And why?",
    "messages": [{"role": "user", "content": "What does it do?"}, {"role": "assistant", "content": "It waters."}],
    "chatState": {"given": ["regular"]},
}
_Budget = Annotated[int | None, Field(ge=1, le=MAX_CODE_BUDGET, description="Within how many tokens files are chosen.")]
_Model = Annotated[str | None, Field(max_length=300, description="One that may be named here; else the usual one.")]
_Files = Annotated[
    list[JsonValue] | dict[str, JsonValue] | None,
    Field(description="Files with `path` and `content`, or contents by path.", examples=[[_EXAMPLE_FILE]]),
]
_IgnoredField = Annotated[JsonValue, Field(description="Ignored; neither stored nor logged.")]


class _RequestBody(BaseModel):
    """Common fields of both requests. The identity, key and plan that a client sends are ignored."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    model: _Model = None
    codebase: _Files = None
    filter_max_tokens_count: _Budget = None
    api_key: _IgnoredField = None
    user_id: _IgnoredField = None
    is_premium: _IgnoredField = None

    def to_request(self, state: ServerState) -> tuple[dict[str, object], tuple[str, ...]]:
        """Return the request with its model resolved, and a warning if that is another one than it names.

        Of ignored fields only the names are kept.
        """
        given = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        request = {**given, **{name: None for name in IGNORED_FIELDS if name in given}}
        if not self.model:
            return request, ()
        pool = state.engine_pool
        model, warning = resolve_request_model(
            self.model, default=pool.model, allowed=pool.list_allowed_models(), services=pool.services
        )
        return {**request, "model": model}, (warning,) if warning else ()


class CodeQuestionBody(_RequestBody):
    """A question, and the client's history and state of the conversation."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE_REQUEST]})

    prompt: str | None = None
    messages: list[JsonValue] | None = None
    code_snippet: str | None = None
    use_template: bool | None = None
    is_codebase_analysis: bool | None = None
    kind: CodeTask | None = None
    chat_state: dict[str, JsonValue] | None = None
    conversation: Annotated[str | None, Field(max_length=200, description="Where it is kept; else nowhere.")] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=10_000_000)] = None


class FileSelectionBody(_RequestBody):
    """Files, and the question to select them for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"codebase": [_EXAMPLE_FILE], "question": "What waters a bed?"}]}
    )

    question: str | None = None
    prompt: str | None = None
    filter_type: Literal["regularFilter"] = "regularFilter"


@router.post("/Unfold/New/solution", summary="Answer a question with its history")
@router.post("/v1/solution", summary="Answer a question with its history")
async def solve(*, request: Request, body: CodeQuestionBody, state: StateDep, caller: ChatCaller) -> SolutionJson:
    """Answer a code question; return the answer, the whole history and the new state.

    The conversation is stored only if the request names one.
    """
    workers = state.engine_pool.pool.workers
    problem, warnings = await workers.run(lambda: body.to_request(state))
    key = await workers.run_uncancellable(lambda: _validate_request(state, caller, problem))
    return await CodeQuestionTurn(state, caller).answer(request, problem, key, warnings=warnings)


@router.post("/Unfold/new/codebase-filter", summary="Choose files for a question")
@router.post("/v1/codebase-filter", summary="Choose files for a question")
async def choose_files(*, body: FileSelectionBody, state: StateDep, caller: ChatCaller) -> FilterResponseJson:
    """Select files for a question and return their content; nothing is stored, and no model is called."""

    def choose() -> FilterResponseJson:
        request, warnings = body.to_request(state)
        model = str(request.get("model") or state.engine_pool.model)
        # The name may be that of a file with model weights, which counting tokens would open.
        state.get_engine(caller).check_model_is_trusted(model)
        return select_files_for_request({**request, "model": model}, warnings=warnings)

    return await asyncio.to_thread(choose)


def _validate_request(state: ServerState, caller: Caller, request: dict[str, object]) -> str | None:
    """Reject an invalid request before anything is created; return the key of its conversation, or None."""
    problem = parse_code_question(request)[0]
    render_question(problem)
    engine = state.get_engine(caller)
    if problem.model is not None:
        engine.check_model_is_trusted(problem.model)
    if problem.conversation is None:
        request["model"] = problem.model or state.engine_pool.model
        return None
    key = _get_or_create_conversation(
        state, caller, problem.conversation, model=problem.model or state.engine_pool.model
    )
    request["conversation"] = key
    return key


def _get_or_create_conversation(state: ServerState, caller: Caller, name: str, *, model: str) -> str:
    """Return the key of a conversation, which is created if it does not exist."""
    engine = state.get_engine(caller)
    found = engine.find_conversation(name)
    if found is not None:
        return found.conversation
    try:
        defaults = state.engine_pool.default_settings_for(model)
        # The question brings the system prompt of its task.
        settings = {name: value for name, value in defaults.items() if name != "system"}
        return engine.create(name, title=None, **{**settings, "model": model}).id
    except NameConflictError:
        # Another request created it in the meantime.
        return state.get_conversation_key(caller, name)
