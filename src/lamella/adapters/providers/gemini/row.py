"""Gemini's row in the registry."""

from typing import TYPE_CHECKING

from lamella.adapters.providers.facts import gemini
from lamella.adapters.providers.row import ProviderOptions, ProviderRow, SdkPackage
from lamella.ports import ChatProvider, ModelBook

if TYPE_CHECKING:
    from lamella.adapters.providers.wire.body import Body
    from lamella.adapters.providers.wire.dialect import Dialect
    from lamella.core.messages.request import Request
    from lamella.profiles import ModelProfile


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    from lamella.adapters.providers.gemini.send import GeminiProvider
    from lamella.adapters.providers.gemini.storage import wish_store

    store = wish_store(options.storage, models.model(model))
    return GeminiProvider(key=key, models=models, patience=options.patience, store=store)


def _speak() -> "Dialect":
    from lamella.adapters.providers.gemini import request, response
    from lamella.adapters.providers.wire.dialect import Dialect

    def build(asked: "Request", profile: "ModelProfile") -> "Body":
        del profile  # this API caches without being told to
        return request.build_request(asked)

    return Dialect(
        name="gemini",
        maker="google",
        build=build,
        write=request.write_body,
        is_answer=response.is_answer,
        is_event=response.is_answer,
        read_reply=response.read_reply,
        read_events=response.read_events,
    )


GEMINI = ProviderRow(
    names=("gemini", "google"),
    form="gemini:NAME",
    title="Gemini",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    package=SdkPackage(package="google-genai", module="google.genai", extra="gemini"),
    open=_open,
    dialect=_speak,
    models=gemini.MODELS,
    caches=gemini.CACHES,
    pictures=gemini.PICTURES,
)
