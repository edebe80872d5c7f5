"""Anthropic's row in the registry."""

from typing import TYPE_CHECKING

from lamella.adapters.providers.facts import claude
from lamella.adapters.providers.row import ProviderOptions, ProviderRow, SdkPackage
from lamella.ports import ChatProvider, ModelBook

if TYPE_CHECKING:
    from lamella.adapters.providers.wire.dialect import Dialect


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    del model  # requests name it
    from lamella.adapters.providers.anthropic.send import AnthropicProvider

    return AnthropicProvider(key=key, models=models, patience=options.patience)


def _speak() -> "Dialect":
    from lamella.adapters.providers.anthropic import request, response
    from lamella.adapters.providers.wire.body import join_extras
    from lamella.adapters.providers.wire.dialect import Dialect

    return Dialect(
        name="anthropic",
        maker="anthropic",
        build=request.build_request,
        write=join_extras,
        is_answer=response.is_answer,
        is_event=response.is_event,
        read_reply=response.read_reply,
        read_events=response.read_events,
    )


ANTHROPIC = ProviderRow(
    names=("anthropic",),
    form="anthropic:NAME",
    title="Anthropic",
    keys=("ANTHROPIC_API_KEY",),
    package=SdkPackage(package="anthropic", module="anthropic", extra="anthropic"),
    open=_open,
    dialect=_speak,
    models=claude.MODELS,
    caches=claude.CACHES,
    pictures=claude.PICTURES,
)
