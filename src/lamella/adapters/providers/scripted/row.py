"""The row of scripts in files."""

from pathlib import Path

from lamella.adapters.providers.row import ProviderOptions, ProviderRow
from lamella.ports import ChatProvider, ModelBook


def _open(model: str, *, key: str, models: ModelBook, options: ProviderOptions) -> ChatProvider:
    del key, models, options  # a script needs none of them
    from lamella.adapters.providers.scripted.script_file import open_script

    return open_script(Path(model.partition(":")[2]).expanduser())


SCRIPTED = ProviderRow(names=("scripted",), form="scripted:FILE", needs_key=False, open=_open)
