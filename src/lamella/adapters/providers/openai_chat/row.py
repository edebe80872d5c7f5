"""The rows of Chat Completions in the registry: OpenAI's own, and any server that speaks the same API."""

from typing import TYPE_CHECKING

from lamella.adapters.providers.connection.address import check_connection
from lamella.adapters.providers.connection.package import check_package
from lamella.adapters.providers.row import ProviderOptions, ProviderRow, SdkPackage
from lamella.errors import AddressError, SettingError
from lamella.ports import ChatProvider, ModelBook

if TYPE_CHECKING:
    from lamella.adapters.providers.wire.dialect import Dialect

OPENAI_KEYS = ("OPENAI_API_KEY",)
OPENAI_SDK = SdkPackage(package="openai", module="openai", extra="openai")
COMPATIBLE_KEY = "LAMELLA_API_KEY"
COMPATIBLE_EXAMPLE = "openai-compatible:http://localhost:8000/v1#name"


def speak_chat() -> "Dialect":
    """The dialect of Chat Completions."""
    from lamella.adapters.providers.openai_chat import request, response
    from lamella.adapters.providers.wire.body import join_extras
    from lamella.adapters.providers.wire.dialect import Dialect

    return Dialect(
        name="openai",
        maker="openai",
        build=request.build_request,
        write=join_extras,
        is_answer=response.is_answer,
        is_event=response.is_event,
        read_reply=response.read_reply,
        read_events=response.read_events,
    )


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    del model  # requests name it
    from lamella.adapters.providers.openai_chat.send import OpenAIChatProvider

    return OpenAIChatProvider(key=key, models=models, patience=options.patience)


def read_address(model: str) -> str:
    """The address in a model's name. What looks like a password is refused, and never repeated."""
    address = model.partition(":")[2].partition("#")[0]
    if "@" in address or "?" in address:
        raise AddressError(
            "The address of the server has more in it than an address.",
            hint=f"Leave out user, password and query, and set {COMPATIBLE_KEY} if the server wants a key.",
        )
    check_connection(provider="the server", key="none", address=address)
    return address


def _open_compatible(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    address, name = read_address(model), model.partition("#")[2]
    check_connection(provider="the server", key=key or "none", address=address)
    if not name.strip():
        raise SettingError(
            f"{address} is asked for no model.", hint=f"Give the model's name after #, as in {COMPATIBLE_EXAMPLE}."
        )
    check_package(OPENAI_SDK)
    from lamella.adapters.providers.openai_chat.send import OpenAIChatProvider

    return OpenAIChatProvider(key=key, address=address, models=models, patience=options.patience)


OPENAI_CHAT = ProviderRow(
    names=("openai-chat",),
    form="openai-chat:NAME",
    title="OpenAI",
    keys=OPENAI_KEYS,
    package=OPENAI_SDK,
    open=_open,
)
COMPATIBLE = ProviderRow(
    names=("openai-compatible",),
    form="openai-compatible:URL#NAME",
    title="the server",
    keys=(COMPATIBLE_KEY,),
    needs_key=False,
    open=_open_compatible,
)
