"""Code: selections from repositories, with an index where settings say."""

from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.attach import BUDGET
from lamella.errors import CallError
from lamella.wiring.retrieval import find_index_folder
from lamella.wiring.services import Services, read_services

if TYPE_CHECKING:
    from lamella.core.artifacts.model import Artifact
    from lamella.core.artifacts.wanted import Wanted
    from lamella.holdings import CodeSelection

# More than any model takes at once.
MOST_TOKENS = 10_000_000
Progress = Callable[[int, int], None]


def select_code(
    folder: str | PathLike[str],
    question: str,
    *,
    budget: int = BUDGET,
    touched: Collection[str] = (),
    model: str | None = None,
    tell: Progress | None = None,
) -> "CodeSelection":
    """The files of a folder that fit a question best, in full, as skeletons or by name, within a budget of tokens.

    ``touched`` are paths in the folder that the talk is about already. Tokens are those of ``model``, by default of the
    one that is set. What is learned of the folder is kept in an index; ``tell`` hears how many of how many files are
    read for that.
    """
    from lamella.engine.checks import check_folder

    root = check_folder(folder)
    if root is None:
        raise CallError("folder is None, not a folder.", hint="Give the folder that the code is in.")
    from lamella.adapters.sources.obsidian.rules import read_rules

    choosing = CodeChoosing(read_services(), model=model, tell=tell)
    hides = read_rules(root).hides if root.is_dir() else None
    return choosing.choose(root, question, root=root.as_posix(), budget=budget, touched=touched, hides=hides)


def select_files(
    files: Mapping[str, str],
    question: str,
    *,
    budget: int = BUDGET,
    touched: Collection[str] = (),
    model: str | None = None,
) -> "CodeSelection":
    """The same for files that are given with their contents, by path; nothing of them is kept or read elsewhere."""
    from lamella.adapters.sources.code.selecting import select_given
    from lamella.engine.checks import check_text

    if not isinstance(files, Mapping) or not all(isinstance(one, str) for pair in files.items() for one in pair):
        raise CallError("files are not texts by path.", hint='Give a dict such as {"src/main.py": "…"}.')
    services = read_services()
    return select_given(
        files,
        check_text(question, "question", may_be_empty=False),
        secrets=services.secrets,
        budget=_check_budget(budget),
        count=services.counter.measure(model or services.settings.model).count,
        touched=_check_touched(touched),
    )


class CodeChoosing:
    """Chooses from folders under the settings that were read."""

    def __init__(self, services: Services, *, model: str | None = None, tell: Progress | None = None) -> None:
        self._services, self._model, self._tell = services, model, tell

    def choose(
        self,
        folder: Path,
        question: str,
        *,
        root: str,
        budget: int = BUDGET,
        touched: Collection[str] = (),
        hides: Callable[[str], bool] | None = None,
    ) -> "CodeSelection":
        from lamella.adapters.retrieval.placing import place_index
        from lamella.adapters.sources.code.selecting import select_folder
        from lamella.engine.checks import check_text

        services = self._services
        return select_folder(
            folder,
            check_text(question, "question", may_be_empty=False),
            index=place_index(folder, find_index_folder(services), what="code"),
            secrets=services.secrets,
            hides=hides,
            root=root,
            budget=_check_budget(budget),
            count=services.counter.measure(self._model or services.settings.model).count,
            touched=_check_touched(touched),
            tell=self._tell,
        )


class LateCodeReader:
    """Chooses from the folders of a vault. What that takes is imported when somebody does: hardly a turn does."""

    def __init__(self, vault: Path, services: Services) -> None:
        self._vault, self._services = vault, services

    def choose(
        self, wanted: "Wanted", *, question: str, touched: Collection[str]
    ) -> "tuple[Sequence[Artifact], Sequence[str]]":
        from lamella.adapters.sources.code.attaching import VaultCode

        reader = VaultCode(self._vault, CodeChoosing(self._services).choose)
        return reader.choose(wanted, question=question, touched=touched)


def _check_budget(budget: object) -> int:
    if not isinstance(budget, int) or isinstance(budget, bool) or not 0 < budget <= MOST_TOKENS:
        raise CallError(f"budget is {budget!r}.", hint=f"Give a number of tokens from 1 to {MOST_TOKENS:,}.")
    return budget


def _check_touched(touched: object) -> Collection[str]:
    if isinstance(touched, str) or not isinstance(touched, Collection):
        raise CallError("touched is not a list of paths.", hint="Give a list of them.")
    return [str(path) for path in touched]
