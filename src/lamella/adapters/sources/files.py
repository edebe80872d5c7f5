"""Files of text: notes, canvases, source code."""

from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Artifact, Source
from lamella.core.prompt.asked import Wanted


class FileReader:
    """Reads files of a vault that are their own text."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def read(self, wanted: Wanted) -> Artifact:
        text = self._vault.read_text(wanted.name)
        source = Source(path=self._vault.name(wanted.name), via=wanted.via)
        return make_artifact(wanted.kind, text=text, source=source, title=wanted.title, policy=wanted.policy)
