"""Attaching: a selection as what a turn takes, given by a program or chosen in a vault."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lamella.adapters.sources.code.rendering import make_artifacts, name_code, name_via
from lamella.adapters.sources.obsidian.rules import read_rules
from lamella.adapters.sources.vault import Vault
from lamella.attach import BUDGET, Attachment, Code, Codebase
from lamella.core.artifacts.model import Artifact
from lamella.core.artifacts.wanted import Wanted
from lamella.core.values import replace
from lamella.holdings import CodeForm, CodeSelection


class FolderChoice(Protocol):
    """Chooses from a folder that is called ``root``; ``hides`` says of a path that it is never read."""

    def __call__(
        self,
        folder: Path,
        question: str,
        *,
        root: str,
        budget: int,
        touched: Collection[str],
        hides: Callable[[str], bool],
    ) -> CodeSelection: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCode(Code):
    """A source file that came with a codebase, and leaves with it."""

    codebase: str

    def attachment(self) -> Artifact | Wanted:
        made = super(ChosenCode, self).attachment()
        return made if isinstance(made, Wanted) else replace(made, source=replace(made.source, via=self.codebase))


def attach_code(selection: CodeSelection) -> list[Attachment]:
    """What a selection attaches to a turn: what stands for it, and its files in full."""
    root = selection.root or "."
    overview = Codebase(path=root, question=selection.question, text=selection.overview, budget=selection.budget)
    full = (one for one in selection.files if one.form is CodeForm.FULL)
    return [
        overview,
        *(ChosenCode(path=name_code(root, one.path), text=one.text, codebase=name_via(root)) for one in full),
    ]


class VaultCode:
    """Chooses from folders of a vault, by its rules besides those of git."""

    def __init__(self, vault: Path, choose: FolderChoice) -> None:
        self._vault, self._choose = vault, choose

    def choose(
        self, wanted: Wanted, *, question: str, touched: Collection[str]
    ) -> tuple[Sequence[Artifact], Sequence[str]]:
        folder = Vault(self._vault).locate(wanted.name)
        root = _name_folder(wanted.name)
        rules = read_rules(self._vault)
        start = "" if root == "." else f"{root}/"
        known = {path.removeprefix(start) for path in touched if path.startswith(start)}
        selection = self._choose(
            folder,
            question,
            root=root,
            budget=wanted.budget or BUDGET,
            touched=known,
            hides=lambda path: rules.hides(start + path),
        )
        return make_artifacts(selection, policy=wanted.policy, read=True), selection.told


def _name_folder(name: str) -> str:
    return "/".join(part for part in name.split("/") if part not in ("", ".")) or "."
