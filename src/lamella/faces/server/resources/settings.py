"""Settings: those of a conversation, which its owner sets, and those of the server, which are shown."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lamella.engine.chat import Chat
from lamella.errors import SettingError
from lamella.faces.server.bodies.catalog import ChatSettingsJson, ServerSettingsJson, TrustJson, TrustListJson
from lamella.faces.server.bodies.shape import told
from lamella.faces.server.state import Admin, Reader, ServerState, State, Talker
from lamella.refusals import NotFoundError
from lamella.views.serving.settings import view_chat_settings, view_configuration
from lamella.wiring import add_trust, configure_chat, mask, name_place, open_trust

router = APIRouter(prefix="/v1", tags=["settings"])
# What somebody who is let in may say of a conversation of theirs. None of these reads a file, starts a program or names
# a place; a model is held to those that whoever runs the server named.
CHAT_SETTINGS = (
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
    Field(max_length=len(CHAT_SETTINGS), examples=[{"layout": "in_place", "temperature": 0.2}]),
]


class SettingsBody(BaseModel):
    """Settings by name."""

    model_config = ConfigDict(extra="forbid")

    settings: ChatSettingsBody


class TrustBody(BaseModel):
    """A place to say yes to: which setting names it, and the place."""

    model_config = ConfigDict(extra="forbid")

    field: Annotated[str, Field(max_length=50, examples=["model"])]
    place: Annotated[str, Field(min_length=1, max_length=500, examples=["local"])]


def read_settings(given: Mapping[str, JsonValue]) -> dict[str, object]:
    """Settings that may be set from here."""
    strange = sorted(set(given) - set(CHAT_SETTINGS))
    if strange:
        raise SettingError(
            f"{strange[0][:60]!r} is no setting of a conversation that can be set from here.",
            hint=f"Choose among: {', '.join(CHAT_SETTINGS)}.",
        )
    return dict(given)


@router.get(
    "/conversations/{conversation}/settings", summary="Settings of a conversation", responses=told(ChatSettingsJson)
)
def read_chat_settings(*, conversation: str, state: State, caller: Reader) -> dict[str, object]:
    """The settings that a conversation has of its own, and those in force, with where each was found."""
    return _view(state, state.open_chat(caller, conversation))


@router.patch(
    "/conversations/{conversation}/settings", summary="Set settings of a conversation", responses=told(ChatSettingsJson)
)
async def set_chat_settings(
    *, conversation: str, body: SettingsBody, state: State, caller: Talker
) -> dict[str, object]:
    """Settings by name, in force from the next turn on; null takes one back where there may be none.

    If one is refused none is set.
    """
    given = read_settings(body.settings)

    def set_them(chat: Chat) -> dict[str, object]:
        chat.set(**given)
        chat.keep()
        return _view(state, chat)

    return await state.change(caller, conversation, set_them)


def _view(state: ServerState, chat: Chat) -> dict[str, object]:
    own = {name: chat.settings[name] for name in CHAT_SETTINGS if name in chat.settings}
    found = configure_chat(chat.settings, state.suite.services)
    return view_chat_settings(chat.id, own, found, names=CHAT_SETTINGS, mask=mask)


@router.get("/settings", summary="Settings of the server", responses=told(ServerSettingsJson))
def show_settings(*, state: State, _caller: Admin) -> dict[str, object]:
    """Every setting with where it was found; passwords in addresses are masked."""
    return view_configuration(state.suite.services.found, mask)


@router.post("/trust", summary="Say yes to a place that a conversation names", responses=told(TrustJson))
def trust_place(*, body: TrustBody, _caller: Admin) -> dict[str, object]:
    """Say yes, once and by name, to a place that only somebody else's words name."""
    place = name_place(body.field, body.place)
    return {"lamella": 1, "field": body.field, "place": place, "new": add_trust(body.field, place)}


@router.get("/trust", summary="Places that were said yes to", responses=told(TrustListJson))
def list_trust(*, _caller: Admin) -> dict[str, object]:
    """Every place that was said yes to, or that was named and answered, the oldest first."""
    listed = [{"field": one.field, "place": one.place, "since": one.since} for one in open_trust().read()]
    return {"lamella": 1, "trusted": listed}


@router.delete("/trust", summary="Take a yes back", responses=told(TrustJson))
def distrust_place(
    *, _caller: Admin, field: Annotated[str, Query(max_length=50)], place: Annotated[str, Query(max_length=500)]
) -> dict[str, object]:
    """Take it back: it is asked about again when only somebody else names it."""
    named = name_place(field, place)
    if not open_trust().remove(field, named):
        raise NotFoundError(f"{named} is not trusted.", hint="GET /v1/trust lists what is.")
    return {"lamella": 1, "field": field, "place": named, "new": False}
