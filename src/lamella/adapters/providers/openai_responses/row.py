"""OpenAI's rows in the registry: by its own name, and by that of the Responses API."""

from typing import TYPE_CHECKING

from lamella.adapters.providers.facts import gpt
from lamella.adapters.providers.openai_chat.row import OPENAI_KEYS, OPENAI_SDK, speak_chat
from lamella.adapters.providers.row import ProviderOptions, ProviderRow
from lamella.ports import ChatProvider, ModelBook

if TYPE_CHECKING:
    from lamella.adapters.providers.wire.dialect import Dialect


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    del model  # requests name it
    from lamella.adapters.providers.openai_responses.send import OpenAIResponsesProvider

    return OpenAIResponsesProvider(key=key, models=models, patience=options.patience)


def _speak() -> "Dialect":
    from lamella.adapters.providers.openai_responses import request, response
    from lamella.adapters.providers.wire.body import join_extras
    from lamella.adapters.providers.wire.dialect import Dialect

    return Dialect(
        name="openai-responses",
        maker="openai",
        build=request.build_request,
        write=join_extras,
        is_answer=response.is_answer,
        is_event=response.is_event,
        read_reply=response.read_reply,
        read_events=response.read_events,
    )


# The Responses API says why its cache was missed, keeps entries longer and serves more from it than Chat Completions,
# so it is what OpenAI's own name opens. As a dialect that name means what most programs speak: Chat Completions.
OPENAI = ProviderRow(
    names=("openai",),
    form="openai:NAME",
    title="OpenAI",
    keys=OPENAI_KEYS,
    package=OPENAI_SDK,
    open=_open,
    dialect=speak_chat,
    models=gpt.MODELS,
    caches=gpt.CACHES,
    pictures=gpt.PICTURES,
)
OPENAI_RESPONSES = ProviderRow(
    names=("openai-responses",), title="OpenAI", keys=OPENAI_KEYS, package=OPENAI_SDK, open=_open, dialect=_speak
)
