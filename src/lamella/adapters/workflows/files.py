"""Workflow files: found by name or path, read, and checked; what is wrong with one is told with where it stands."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from lamella.adapters.files.reading import read_plain
from lamella.core.log.events.stage import StageSpec, WorkflowSpec
from lamella.errors import SourceTooLargeError, WorkflowError

SUFFIX = ".toml"
_SHIPPED = Path(__file__).parent / "shipped"
_LARGEST = 1_000_000
_MOST_STAGES = 100
_LONGEST_TEXT = 20_000
_LONGEST_LINE = 80
_ID = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_HINT = "docs/workflows.md has the fields of a workflow file, and one to begin with."


class StageTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage as files have it."""

    id: str
    labels: dict[str, str]
    phase: str = ""
    instructions: str = ""
    required: list[str] = []
    search: bool = False


class SummaryTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How summaries are written, as files have it."""

    language: str = ""
    form: str = ""


class WorkflowTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow as files have it; ``lamella`` is the version of this shape."""

    lamella: int
    name: str
    stages: list[StageTable]
    title: str = ""
    language: str = "en"
    title_from: str = ""
    summary: SummaryTable = SummaryTable()


class WorkflowFolder:
    """Workflows by name: those of a folder of one's own, and those that ship, or any file by its path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str) -> WorkflowSpec:
        """The workflow of a name, or in the file of a path; one's own come before those that ship."""
        if is_path(name):
            return read_workflow(Path(name).expanduser())
        own = self._folder / f"{name}{SUFFIX}"
        for path in (own, _SHIPPED / own.name):
            if _ID.fullmatch(name) and path.is_file():
                return read_workflow(path, name=name)
        raise WorkflowError(
            f"There is no workflow {name!r}.",
            hint=f"There are: {', '.join(self.list_names())}. Your own go into {self._folder}, or are named by path.",
        )

    def list_names(self) -> list[str]:
        """The names of all that there are."""
        try:
            own = [path.stem for path in self._folder.glob(f"*{SUFFIX}") if _ID.fullmatch(path.stem)]
        except OSError:
            own = []
        return sorted({*own, *(path.stem for path in _SHIPPED.glob(f"*{SUFFIX}"))})


def is_path(name: str) -> bool:
    """Whether a workflow is named by its file."""
    return name.endswith(SUFFIX) or "/" in name or "\\" in name


def read_workflow(path: Path, *, name: str | None = None) -> WorkflowSpec:
    """The workflow in a file, which is called as its file is where that was found by ``name``."""
    table = _convert(_load(path), path)
    for fault in _find_faults(table, name=name):
        raise WorkflowError(f"{path}: {fault}.", hint=_HINT)
    return WorkflowSpec(
        name=table.name,
        title=table.title.strip(),
        language=table.language,
        title_from=table.title_from,
        summary_language=table.summary.language,
        summary_form=table.summary.form,
        stages=tuple(
            StageSpec(
                id=one.id,
                labels={language: label.strip() for language, label in one.labels.items()},
                phase=one.phase.strip(),
                instructions=one.instructions.strip(),
                required=tuple(one.required),
                search=one.search,
            )
            for one in table.stages
        ),
    )


def _load(path: Path) -> dict[str, object]:
    import tomllib  # only for those who work in stages

    try:
        return tomllib.loads(read_plain(path, limit=_LARGEST).decode("utf-8-sig"))
    except OSError as error:
        raise WorkflowError(
            f"The workflow in {path} cannot be read: {error.strerror or error}.", hint="Check the path."
        ) from error
    except SourceTooLargeError as error:
        raise WorkflowError(error.message, hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise WorkflowError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise WorkflowError(f"{path} is not TOML: {error}.", hint=_HINT) from error


def _convert(values: dict[str, object], path: Path) -> WorkflowTable:
    try:
        return convert(values, WorkflowTable)
    except ValidationError as error:
        told = str(error).replace("Object", "A table").replace("`$.", "`").replace("$", "the file")
        raise WorkflowError(f"{path}: {told}.", hint=_HINT) from error


def _find_faults(table: WorkflowTable, *, name: str | None) -> Iterator[str]:
    if table.lamella != 1:
        yield f"lamella is {table.lamella}, and this version reads 1"
    if not _ID.fullmatch(table.name):
        yield f"name is {table.name!r}; it takes small letters, digits, _ and -"
    elif name is not None and table.name != name:
        yield f"name is {table.name!r}, and the file is called {name!r}"
    if not 1 <= len(table.stages) <= _MOST_STAGES:
        yield f"it has {len(table.stages)} stages, and takes 1 to {_MOST_STAGES}"
    for what, line in (
        ("title", table.title),
        ("language", table.language),
        ("summary.language", table.summary.language),
        ("summary.form", table.summary.form),
    ):
        if len(line) > _LONGEST_LINE or not line.isprintable():
            yield f"{what} has {len(line):,} characters or more than one line; it takes {_LONGEST_LINE} on one"
    yield from _find_stage_faults(table.stages)
    stage, _, field = table.title_from.partition(".")
    if table.title_from and (not field or stage not in [one.id for one in table.stages]):
        yield f"title_from is {table.title_from!r}; it takes a stage and a field of it, as in stage.field"


def _find_stage_faults(stages: list[StageTable]) -> Iterator[str]:
    ids = [stage.id for stage in stages]
    for number, stage in enumerate(stages, start=1):
        if ids.index(stage.id) != number - 1:
            yield f"stage {number} has the id {stage.id!r}, which an earlier one has"
        yield from (f"stage {number} {fault}" for fault in _find_own_faults(stage))


def _find_own_faults(stage: StageTable) -> Iterator[str]:
    """What is wrong with a stage by itself."""
    if not _ID.fullmatch(stage.id):
        yield f"has the id {stage.id!r}; it takes small letters, digits, _ and -"
    if not stage.labels:
        yield "has no label"
    for language, label in {**stage.labels, "phase": stage.phase or "-"}.items():
        if len(label) > _LONGEST_LINE or not label.isprintable() or not label.strip():
            yield f"has a label ({language}) of {len(label):,} characters; it takes 1 to {_LONGEST_LINE} on one line"
    if len(stage.instructions) > _LONGEST_TEXT:
        yield f"has instructions of {len(stage.instructions):,} characters, more than {_LONGEST_TEXT:,}"
    for field in stage.required:
        if not field.strip() or not field.isprintable() or stage.required.count(field) > 1:
            yield f"requires {field!r}, which is blank or named twice"
