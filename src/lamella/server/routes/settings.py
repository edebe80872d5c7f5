"""Routes for the settings of a conversation, the settings of the server, and trusted locations."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella.conversation.conversation import StoredConversation
from lamella.errors import NotFoundError, SettingError
from lamella.schemas.catalog import chat_settings_to_json, configuration_to_json
from lamella.server.bodies import ConversationSettingsJson, ServerSettingsJson, TrustJson, TrustListJson, response_docs
from lamella.server.state import AdminCaller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.wiring import add_trust, get_trust_key, mask_secrets, open_trust_file, resolve_conversation_settings

router = APIRouter(prefix="/v1", tags=["settings"])
# The settings that a caller may change in its own conversations. None of them reads a file, starts a program or names a
# location. A model is restricted to those that the operator named.
CONVERSATION_SETTINGS = (
    "model",
    "profile",
    "window",
    "reserve",
    "layout",
    "carry_forward",
    "history",
    "history_turns",
    "warn",
    "target",
    "trigger",
    "hard",
    "compaction",
    "image_notes",
    "system",
    "instructions",
    "temperature",
    "reasoning_effort",
    "attachments",
    "linger",
    "cache_marks",
    "runner",
    "steps",
    "turn_seconds",
    "turn_tokens",
    "max_cost",
    "tool_output",
    "summarizer",
)
ChatSettingsBody = Annotated[
    dict[str, JsonValue],
    Field(max_length=len(CONVERSATION_SETTINGS), examples=[{"layout": "in_place", "temperature": 0.2}]),
]


class SettingsBody(BaseModel):
    """Settings by name."""

    model_config = ConfigDict(extra="forbid")

    settings: ChatSettingsBody


class TrustBody(BaseModel):
    """A location to allow, and the setting that names it."""

    model_config = ConfigDict(extra="forbid")

    field: Annotated[str, Field(max_length=50, examples=["model"])]
    place: Annotated[str, Field(min_length=1, max_length=500, examples=["local"])]


def check_request_settings(settings: Mapping[str, JsonValue]) -> dict[str, object]:
    """Return the settings of a request; raises ``SettingError`` for one that cannot be set over HTTP."""
    strange = sorted(set(settings) - set(CONVERSATION_SETTINGS))
    if strange:
        raise SettingError(
            f"{strange[0][:60]!r} is no setting of a conversation that can be set from here.",
            hint=f"Choose among: {', '.join(CONVERSATION_SETTINGS)}.",
        )
    return dict(settings)


@router.get(
    "/conversations/{conversation}/settings",
    summary="Settings of a conversation",
    responses=response_docs(ConversationSettingsJson),
)
def read_chat_settings(*, conversation: str, state: StateDep, caller: ReadCaller) -> dict[str, object]:
    """Return a conversation's own settings and the effective ones, each with its origin."""
    return _settings_body(state, state.open_conversation(caller, conversation))


@router.patch(
    "/conversations/{conversation}/settings",
    summary="Set settings of a conversation",
    responses=response_docs(ConversationSettingsJson),
)
async def set_chat_settings(
    *, conversation: str, body: SettingsBody, state: StateDep, caller: ChatCaller
) -> dict[str, object]:
    """Change settings by name from the next turn on; null resets one.

    If one setting is rejected, none is changed.
    """
    given = check_request_settings(body.settings)

    def set_them(chat: StoredConversation) -> dict[str, object]:
        chat.set(**given)
        chat.save_settings()
        return _settings_body(state, chat)

    return await state.change_conversation(caller, conversation, set_them)


def _settings_body(state: ServerState, chat: StoredConversation) -> dict[str, object]:
    own = {name: chat.settings[name] for name in CONVERSATION_SETTINGS if name in chat.settings}
    found = resolve_conversation_settings(chat.settings, state.engine_pool.services)
    return chat_settings_to_json(chat.id, own, found, names=CONVERSATION_SETTINGS, mask=mask_secrets)


@router.get("/settings", summary="Settings of the server", responses=response_docs(ServerSettingsJson))
def show_settings(*, state: StateDep, _caller: AdminCaller) -> dict[str, object]:
    """Return every setting with its origin; passwords in addresses are masked."""
    return configuration_to_json(state.engine_pool.services.resolved, mask_secrets)


@router.post("/trust", summary="Say yes to a place that a conversation names", responses=response_docs(TrustJson))
def trust_place(*, body: TrustBody, _caller: AdminCaller) -> dict[str, object]:
    """Allow a location, once and by name, that only another person's file or text names."""
    place = get_trust_key(body.field, body.place)
    return {"lamella": 1, "field": body.field, "place": place, "new": add_trust(body.field, place)}


@router.get("/trust", summary="Places that were said yes to", responses=response_docs(TrustListJson))
def list_trust(*, _caller: AdminCaller) -> dict[str, object]:
    """List every allowed location, oldest first."""
    listed = [{"field": one.field, "place": one.place, "since": one.since} for one in open_trust_file().read()]
    return {"lamella": 1, "trusted": listed}


@router.delete("/trust", summary="Take a yes back", responses=response_docs(TrustJson))
def distrust_place(
    *, _caller: AdminCaller, field: Annotated[str, Query(max_length=50)], place: Annotated[str, Query(max_length=500)]
) -> dict[str, object]:
    """Withdraw the permission for a location; it is asked about again when only another person's text names it."""
    named = get_trust_key(field, place)
    if not open_trust_file().remove(field, named):
        raise NotFoundError(f"{named} is not trusted.", hint="GET /v1/trust lists what is.")
    return {"lamella": 1, "field": field, "place": named, "new": False}
