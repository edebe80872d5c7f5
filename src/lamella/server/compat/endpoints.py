"""The routes of the compatibility endpoints."""

from collections.abc import Awaitable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lamella.errors import NotFoundError
from lamella.server.compat.descriptions import (
    AnthropicMessageJson,
    ChatCompletionJson,
    ChatCompletionRequest,
    DeletedResponseJson,
    MessagesRequest,
    ResponseJson,
    ResponsesRequest,
    TokenCountJson,
    TokenCountRequest,
)
from lamella.server.compat.json_spans import Replacement, encode_json, find_members, find_root, replace_spans
from lamella.server.compat.requests import build_passthrough_body, parse_object_body, parse_request
from lamella.server.compat.service import (
    CompatService,
    Upstream,
    UpstreamError,
    format_notes,
    upstream_error_response,
)
from lamella.server.compat.translation import FORMATS
from lamella.server.compat.upstream import UpstreamResponse
from lamella.server.compat.wires import ApiFormat
from lamella.server.json_responses import EscapedJSONResponse
from lamella.server.openapi import CHUNK_STREAM_DOCS, describe_request, describe_response
from lamella.server.state import Caller, ChatCaller, ReadCaller
from lamella.wiring import mask_keys

router = APIRouter(prefix="/v1", tags=["compat"])
_ANSWER = "Events, or the whole answer."


def _service(request: Request) -> CompatService:
    service: CompatService = request.app.state.compat
    return service


async def _answer_or_error(request: Request, answering: Awaitable[Response]) -> Response:
    try:
        return await answering
    except UpstreamError as error:
        return upstream_error_response(error, request.url.path)


@router.post(
    "/chat/completions",
    summary="OpenAI's Chat Completions API",
    response_class=Response,
    responses=describe_response(ChatCompletionJson, other_content=CHUNK_STREAM_DOCS, description=_ANSWER),
    openapi_extra=describe_request(ChatCompletionRequest),
)
async def create_chat_completion(request: Request, caller: ChatCaller) -> Response:
    """Answer a request as OpenAI's API does; the messages of the request are the whole conversation."""
    return await _answer_or_error(request, _service(request).answer(request, ApiFormat.CHAT, caller))


@router.post(
    "/responses",
    summary="OpenAI's Responses API",
    response_class=Response,
    responses=describe_response(ResponseJson, other_content=CHUNK_STREAM_DOCS, description=_ANSWER),
    openapi_extra=describe_request(ResponsesRequest),
)
async def create_response(request: Request, caller: ChatCaller) -> Response:
    """Answer a request as OpenAI's API does; `previous_response_id` continues a stored response of the same owner."""
    return await _answer_or_error(request, _service(request).answer(request, ApiFormat.RESPONSES, caller))


@router.post(
    "/messages",
    summary="Anthropic's Messages API",
    response_class=Response,
    responses=describe_response(AnthropicMessageJson, other_content=CHUNK_STREAM_DOCS, description=_ANSWER),
    openapi_extra=describe_request(MessagesRequest),
)
async def create_message(request: Request, caller: ChatCaller) -> Response:
    """Answer a request as Anthropic's API does; the messages of the request are the whole conversation."""
    return await _answer_or_error(request, _service(request).answer(request, ApiFormat.MESSAGES, caller))


@router.post(
    "/messages/count_tokens",
    summary="Count the tokens of a request of Anthropic's API",
    response_class=Response,
    responses=describe_response(TokenCountJson),
    openapi_extra=describe_request(TokenCountRequest),
)
async def count_tokens(request: Request, caller: ChatCaller) -> Response:
    """Return the provider's count, or an estimate if the provider has another API."""
    service = _service(request)
    client = parse_request(ApiFormat.MESSAGES, await request.body())
    notes: list[str] = []
    upstream = await service.find_upstream_or_default(caller, client.model, notes)
    if upstream.endpoint is not None and ApiFormat.MESSAGES in upstream.endpoint.api_formats:
        body = build_passthrough_body(client, model=upstream.name_without_provider)
        return await _forward_to_upstream(service, request, upstream, "/messages/count_tokens", body, notes=notes)
    counter = service.state.engine_pool.services.counter.get_tokenizer(upstream.model)
    texts = FORMATS[ApiFormat.MESSAGES].collect_texts(client.body)
    tools = encode_json(client.body.get("tools") or []).decode()
    counted = await service.run_in_worker(lambda: sum(counter.count(text) for text in (*texts, tools)))
    return EscapedJSONResponse({"input_tokens": counted}, headers=format_notes(notes))


@router.get(
    "/responses/{response_id}",
    summary="A stored response",
    response_class=Response,
    responses=describe_response(ResponseJson),
)
async def read_response(response_id: str, request: Request, caller: ReadCaller) -> Response:
    """Return a response that was created without `"store": false`, if it belongs to the caller."""
    service = _service(request)
    found = await service.run_in_worker(lambda: service.responses.find(caller.owner, response_id))
    if found is not None:
        return EscapedJSONResponse(found.body)
    upstream = await _find_upstream_of_response(service, caller, response_id)
    return await _forward_to_upstream(service, request, upstream, f"/responses/{response_id}", None, method="GET")


@router.delete(
    "/responses/{response_id}",
    summary="Delete a stored response",
    response_class=Response,
    responses=describe_response(DeletedResponseJson),
)
async def delete_response(response_id: str, request: Request, caller: ChatCaller) -> Response:
    """Delete a response of the caller."""
    service = _service(request)
    if await service.run_in_worker(lambda: service.responses.find(caller.owner, response_id)) is not None:
        await service.run_in_worker(lambda: service.responses.delete(caller.owner, response_id))
        return EscapedJSONResponse({"id": response_id, "object": "response", "deleted": True})
    upstream = await _find_upstream_of_response(service, caller, response_id)
    return await _forward_to_upstream(service, request, upstream, f"/responses/{response_id}", None, method="DELETE")


@router.post("/embeddings", include_in_schema=False)
async def create_embeddings(request: Request, caller: ChatCaller) -> Response:
    """Pass a request on to the provider of the default model, if that has this API."""
    service, data = _service(request), await request.body()
    body = parse_object_body(data)
    upstream = await service.find_upstream_or_default(caller, "", [])
    if upstream.endpoint is None or ApiFormat.CHAT not in upstream.endpoint.api_formats:
        raise NotFoundError(
            "The provider of this server has no embeddings.",
            hint="Start it with a model of OpenAI or a compatible server.",
        )
    named = str(body.get("model") or "")
    own = named.removeprefix("openai:").removeprefix("openai-chat:")
    return await _forward_to_upstream(
        service, request, upstream, "/embeddings", data if own == named else _with_model_name(data, own)
    )


async def _find_upstream_of_response(service: CompatService, caller: Caller, response_id: str) -> Upstream:
    """Return the upstream that may have a response, if it belongs to the caller."""
    upstream = await service.find_upstream_or_default(caller, "", [])
    has_responses = upstream.endpoint is not None and ApiFormat.RESPONSES in upstream.endpoint.api_formats
    is_plain = response_id.replace("_", "").replace("-", "").isalnum()
    if (
        not has_responses
        or not is_plain
        or not await service.run_in_worker(lambda: service.responses.is_owned_by(caller.owner, response_id))
    ):
        raise NotFoundError(f"There is no response {response_id[:100]!r}.", hint="Send the id of one as it came.")
    return upstream


def _with_model_name(data: bytes, model: str) -> bytes:
    members = find_members(data, find_root(data))
    return replace_spans(data, [Replacement(members["model"], encode_json(model))]) if "model" in members else data


async def _forward_to_upstream(
    service: CompatService,
    request: Request,
    upstream: Upstream,
    path: str,
    body: bytes | None,
    *,
    method: str = "POST",
    notes: Sequence[str] = (),
) -> Response:
    """Return what an upstream answers to a request that is no question to a model."""
    assert upstream.endpoint is not None, "the caller has checked it"
    query = request.url.query
    response: UpstreamResponse = await service.http.send(
        upstream.endpoint, path, body, method=method, query=query, headers=request.headers
    )
    data: Any = await (response.read_error() if response.is_error else response.read())
    if response.is_error:
        data = mask_keys(data.decode("utf-8", "replace"))
    return Response(data, response.status, headers={**response.headers, **format_notes(notes)})
