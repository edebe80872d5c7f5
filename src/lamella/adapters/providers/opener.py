"""From a model's name to a provider that answers. Whatever is missing is said before anything is sent.

Keys come in by the names of their variables. They go into the provider and nowhere else: no message or repr has one.
"""

from collections.abc import Mapping

from lamella.adapters.providers.connection.address import check_connection
from lamella.adapters.providers.connection.package import check_package
from lamella.adapters.providers.facts.models import BuiltInModels
from lamella.adapters.providers.openai_chat.row import COMPATIBLE_EXAMPLE
from lamella.adapters.providers.registry import FORMS, find_row
from lamella.adapters.providers.row import ProviderOptions, ProviderRow, find_key
from lamella.errors import KeyRefusedError, SettingError
from lamella.ports import ChatProvider, ModelBook


def open_provider(
    model: str, *, keys: Mapping[str, str], models: ModelBook | None = None, options: ProviderOptions | None = None
) -> ChatProvider:
    """The provider of a model, by the name that requests to it carry; ``keys`` by the names of their variables."""
    options, models = options or ProviderOptions(), models or BuiltInModels()
    row = find_model_row(model, models)
    if row.package is not None:
        check_package(row.package)
    assert row.open is not None, "rows that nothing opens are not found"
    return row.open(model, key=_find_key(row, keys), models=models, options=options)


def find_model_row(model: str, models: ModelBook) -> ProviderRow:
    """The row of the provider that a model is asked through; an error if there is none."""
    prefix, colon, rest = model.partition(":")
    row = find_row(prefix)
    if not colon and (row is None or row.follows):
        # Well-known names need no prefix.
        row = find_row(models.model(model).provider)
        if row is None or row.open is None or not row.needs_key:
            raise SettingError(f"Nobody knows who has the model {model!r}.", hint=f"Name it as one of: {FORMS}.")
        return row
    if row is None or row.open is None or not row.takes(rest):
        raise SettingError(
            f"There is no provider {prefix!r}.",
            hint=f"Name a model as one of: {FORMS}. Any server that speaks OpenAI's API: {COMPATIBLE_EXAMPLE}.",
        )
    if row.follows == "NAME" and not rest.strip():
        raise SettingError(f"{model!r} names no model.", hint=f"Give its name after the colon: {prefix}:NAME.")
    return row


def _find_key(row: ProviderRow, keys: Mapping[str, str]) -> str:
    found = find_key(row, keys)
    if found is None and row.needs_key:
        raise KeyRefusedError(
            f"There is no key for {row.title}.",
            hint=f"Set {' or '.join(row.keys)} in the environment, or use the model local, which needs none.",
        )
    if found is None or not row.needs_key:
        return found[1] if found else ""
    name, key = found
    check_connection(provider=f"{row.title}, in {name},", key=key, address="https://localhost")
    return key
