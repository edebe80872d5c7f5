"""The rows of models in this process: the one that ships, and weights in files."""

from lamella.adapters.providers.connection.package import check_package
from lamella.adapters.providers.local.weights import LOCAL
from lamella.adapters.providers.row import ProviderOptions, ProviderRow, SdkPackage
from lamella.ports import ChatProvider, ModelBook


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    del key, models  # neither is needed for weights
    check_package(SdkPackage(package="xllamacpp", module="xllamacpp", extra="local"))
    from lamella.adapters.providers.local.provider import LocalProvider
    from lamella.adapters.providers.local.weights import find_weights

    find_weights(model, record=options.record)
    return LocalProvider(model=model, progress=options.progress, record=options.record)


def _open_local(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    del model
    return _open(LOCAL, key=key, models=models, options=options)


LOCAL_MODEL = ProviderRow(names=(LOCAL,), form=LOCAL, needs_key=False, here=True, open=_open_local)
GGUF_FILE = ProviderRow(names=("gguf",), form="gguf:PATH", needs_key=False, here=True, open=_open)
