"""Routes for the settings of a conversation, the settings of the server, and trusted locations."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query
from msgspec import to_builtins
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella.conversation.conversation import Conversation
from lamella.errors import NotFoundError, SettingError
from lamella.schemas.catalog import (
    ConversationSettingsJson,
    ServerSettingsJson,
    TrustedPlaceJson,
    TrustJson,
    TrustListJson,
    chat_settings_to_json,
    configuration_to_json,
)
from lamella.server.openapi import make_router
from lamella.server.state import AdminCaller, ChatCaller, ReadCaller, ServerState, StateDep
from lamella.wiring import add_trust, get_trust_key, mask_url_secrets, open_trust_file, resolve_conversation_settings

router = make_router(prefix="/v1", tag="settings")
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
    "summary_check",
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


def check_setting_names(settings: Mapping[str, JsonValue]) -> dict[str, object]:
    """Return the settings of a request; raises ``SettingError`` for one that cannot be set over HTTP."""
    strange = sorted(set(settings) - set(CONVERSATION_SETTINGS))
    if strange:
        raise SettingError(
            f"{strange[0][:60]!r} is no setting of a conversation that can be set from here.",
            hint=f"Choose among: {', '.join(CONVERSATION_SETTINGS)}.",
        )
    return dict(settings)


@router.get("/conversations/{conversation}/settings", summary="Settings of a conversation")
def read_chat_settings(*, conversation: str, state: StateDep, caller: ReadCaller) -> ConversationSettingsJson:
    """Return a conversation's own settings and the effective ones, each with its origin."""
    return _chat_settings_to_json(state, state.open_conversation(caller, conversation))


@router.patch("/conversations/{conversation}/settings", summary="Set settings of a conversation")
async def set_chat_settings(
    *, conversation: str, body: SettingsBody, state: StateDep, caller: ChatCaller
) -> ConversationSettingsJson:
    """Change settings by name from the next turn on; null resets one.

    If one setting is rejected, none is changed.
    """
    given = check_setting_names(body.settings)

    def set_them(chat: Conversation) -> ConversationSettingsJson:
        chat.set(**given)
        chat.save_settings()
        return _chat_settings_to_json(state, chat)

    return await state.change_conversation(caller, conversation, set_them)


def _chat_settings_to_json(state: ServerState, chat: Conversation) -> ConversationSettingsJson:
    own = {name: chat.settings[name] for name in CONVERSATION_SETTINGS if name in chat.settings}
    found = resolve_conversation_settings(chat.settings, state.engine_pool.services)
    return chat_settings_to_json(
        chat.id, own, to_builtins(found.settings), found.origins, names=CONVERSATION_SETTINGS, mask=mask_url_secrets
    )


@router.get("/settings", summary="Settings of the server")
def show_settings(*, state: StateDep, _caller: AdminCaller) -> ServerSettingsJson:
    """Return every setting with its origin; passwords in addresses are masked."""
    found = state.engine_pool.services.resolved
    files = {str(origin): str(path) for origin, path in found.files.items()}
    return configuration_to_json(to_builtins(found.settings), found.origins, files, mask_url_secrets)


@router.post("/trust", summary="Say yes to a place that a conversation names")
def trust_place(*, body: TrustBody, _caller: AdminCaller) -> TrustJson:
    """Allow a location, once and by name, that only another person's file or text names."""
    location = get_trust_key(body.field, body.place)
    return TrustJson(field=body.field, place=location, new=add_trust(body.field, location))


@router.get("/trust", summary="Places that were said yes to")
def list_trust(*, _caller: AdminCaller) -> TrustListJson:
    """List every allowed location, oldest first."""
    listed = open_trust_file().read()
    return TrustListJson(
        trusted=[TrustedPlaceJson(field=one.field, place=one.place, since=one.since) for one in listed]
    )


@router.delete("/trust", summary="Take a yes back")
def distrust_place(
    *, _caller: AdminCaller, field: Annotated[str, Query(max_length=50)], place: Annotated[str, Query(max_length=500)]
) -> TrustJson:
    """Withdraw the permission for a location; it is asked about again when only another person's text names it."""
    named = get_trust_key(field, place)
    if not open_trust_file().remove(field, named):
        raise NotFoundError(f"{named} is not trusted.", hint="GET /v1/trust lists what is.")
    return TrustJson(field=field, place=named, new=False)
