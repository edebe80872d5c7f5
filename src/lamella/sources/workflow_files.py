"""Workflow files: find them by name or path, read them and check them.

``WorkflowFolder`` has the workflows of the user's folder and the built-in ones, and ``read_workflow`` reads a file. An
error says what is wrong and where.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from lamella.core.log.events.compaction import (
    FieldPlacement,
    SectionKind,
    StageFieldSpec,
    StageFieldType,
    StageSpec,
    WorkflowSpec,
)
from lamella.core.workflow.phrases import language_name
from lamella.errors import SourceTooLargeError, WorkflowError
from lamella.files import read_regular_file

WORKFLOW_SUFFIX = ".toml"
_SHIPPED_FOLDER = Path(__file__).parent / "shipped"
_MAX_FILE_BYTES = 1_000_000
_MOST_STAGES = 100
_MAX_INSTRUCTIONS_CHARS = 20_000
_MAX_LABEL_CHARS = 80
_MAX_DESCRIPTION_CHARS = 500
_ID_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_FORMAT_HINT = "docs/reference/formats/workflow-file.md has the fields of a workflow file, and one to begin with."


# A text, or the same text in several languages.
LocalizedText = str | dict[str, str]


class FieldTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of a stage, as a workflow file defines it."""

    name: str
    labels: dict[str, str] = {}
    type: StageFieldType = StageFieldType.ANY
    description: LocalizedText = ""
    document: FieldPlacement = FieldPlacement.TEXT
    heading: bool = True


class StageTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stage as a workflow file defines it."""

    id: str
    labels: dict[str, str]
    phase: LocalizedText = ""
    instructions: LocalizedText = ""
    required: list[str] = []
    search: bool = False
    section: SectionKind | None = None
    headings: dict[str, str] = {}
    fields: list[FieldTable] = []


class SummaryTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of summaries, as a workflow file defines it."""

    language: str = ""
    form: str = ""


class WorkflowToml(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow as its file defines it. ``lamella`` is the version of the format."""

    lamella: int
    name: str
    stages: list[StageTable]
    title: LocalizedText = ""
    language: str = "en"
    languages: list[str] = []
    title_from: str = ""
    summary: SummaryTable = SummaryTable()


class WorkflowFolder:
    """Workflows by name, from the user's folder and the built-in ones, or from any file by its path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, name: str, *, language: str | None = None) -> WorkflowSpec:
        """Return the workflow of a name, or of the file at a path, by default in the language of its file.

        The user's own workflows have precedence over built-in ones.
        """
        if is_workflow_path(name):
            return read_workflow(Path(name).expanduser(), language=language)
        own = self._folder / f"{name}{WORKFLOW_SUFFIX}"
        for path in (own, _SHIPPED_FOLDER / own.name):
            # The check of the name comes before any file access: a name must not contain parts of a path.
            if _ID_PATTERN.fullmatch(name) and path.is_file():
                return read_workflow(path, name=name, language=language)
        raise WorkflowError(
            f"There is no workflow {name!r}.",
            hint=f"There are: {', '.join(self.list_names())}. Your own go into {self._folder}, or are named by path.",
        )

    def list_names(self) -> list[str]:
        """Return the names of all workflows, sorted."""
        try:
            own = [path.stem for path in self._folder.glob(f"*{WORKFLOW_SUFFIX}") if _ID_PATTERN.fullmatch(path.stem)]
        except OSError:
            own = []
        return sorted({*own, *(path.stem for path in _SHIPPED_FOLDER.glob(f"*{WORKFLOW_SUFFIX}"))})


def is_workflow_path(name: str) -> bool:
    """Return whether a workflow is named by the path of its file."""
    return name.endswith(WORKFLOW_SUFFIX) or "/" in name or "\\" in name


def read_workflow(path: Path, *, name: str | None = None, language: str | None = None) -> WorkflowSpec:
    """Read the workflow in a file, by default in its own language.

    If it was found by ``name``, the name in the file must be the same.
    """
    table = _to_workflow_table(_load_toml(path), path)
    for fault in _iter_workflow_problems(table, name=name):
        raise WorkflowError(f"{path}: {fault}.", hint=_FORMAT_HINT)
    chosen = _choose_language(table, language)
    return WorkflowSpec(
        name=table.name,
        title=_localize(table.title, chosen, table.language),
        language=chosen,
        title_from=table.title_from,
        summary_language=table.summary.language,
        summary_form=table.summary.form,
        stages=tuple(_to_stage(one, chosen, table.language) for one in table.stages),
    )


def _choose_language(table: WorkflowToml, language: str | None) -> str:
    """Return the language to work in; raise ``WorkflowError`` if the workflow is not written in the wanted one."""
    offered = list_languages(table)
    if language is None:
        return table.language
    wanted = language.strip().casefold().replace("_", "-")
    found = next((one for one in offered if wanted == one or wanted.partition("-")[0] == one), None)
    if found is None:
        names = ", ".join(f"{one} ({language_name(one)})" for one in offered)
        raise WorkflowError(f"The workflow {table.name} is not there in {language!r}.", hint=f"Choose: {names}.")
    return found


def list_languages(table: WorkflowToml) -> list[str]:
    """Return the languages of a workflow: that of its file first."""
    return list(dict.fromkeys((table.language, *table.languages)))


def _localize(text: LocalizedText, language: str, default: str) -> str:
    """Return a text in a language, else in that of the file, else in any."""
    if isinstance(text, str):
        return text.strip()
    found = text.get(language) or text.get(default) or next(iter(text.values()), "")
    return found.strip()


def _to_stage(table: StageTable, language: str, default: str) -> StageSpec:
    return StageSpec(
        id=table.id,
        labels={name: label.strip() for name, label in table.labels.items()},
        phase=_localize(table.phase, language, default),
        instructions=_localize(table.instructions, language, default),
        required=tuple(table.required),
        search=table.search,
        section=table.section,
        headings={name: label.strip() for name, label in table.headings.items()},
        fields=tuple(
            StageFieldSpec(
                name=one.name,
                labels={name: label.strip() for name, label in one.labels.items()},
                type=one.type,
                description=_localize(one.description, language, default),
                document=one.document,
                heading=one.heading,
            )
            for one in table.fields
        ),
    )


def _load_toml(path: Path) -> dict[str, object]:
    import tomllib  # imported here, because only users of workflows need it

    try:
        return tomllib.loads(read_regular_file(path, limit=_MAX_FILE_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise WorkflowError(
            f"The workflow in {path} cannot be read: {error.strerror or error}.", hint="Check the path."
        ) from error
    except SourceTooLargeError as error:
        raise WorkflowError(error.message, hint=_FORMAT_HINT) from error
    except UnicodeDecodeError as error:
        raise WorkflowError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise WorkflowError(f"{path} is not TOML: {error}.", hint=_FORMAT_HINT) from error


def _to_workflow_table(values: dict[str, object], path: Path) -> WorkflowToml:
    """Convert parsed TOML to a table; raise with the position of a wrong field."""
    try:
        return convert(values, WorkflowToml)
    except ValidationError as error:
        message = str(error).replace("Object", "A table").replace("`$.", "`").replace("$", "the file")
        raise WorkflowError(f"{path}: {message}.", hint=_FORMAT_HINT) from error


def _iter_workflow_problems(table: WorkflowToml, *, name: str | None) -> Iterator[str]:
    if table.lamella != 1:
        yield f"lamella is {table.lamella}, and this version reads 1"
    if not _ID_PATTERN.fullmatch(table.name):
        yield f"name is {table.name!r}; it takes small letters, digits, _ and -"
    elif name is not None and table.name != name:
        yield f"name is {table.name!r}, and the file is called {name!r}"
    if not 1 <= len(table.stages) <= _MOST_STAGES:
        yield f"it has {len(table.stages)} stages, and takes 1 to {_MOST_STAGES}"
    for what, line in (
        *(("title", title) for title in _texts_of(table.title)),
        *(("language", language) for language in list_languages(table)),
        ("summary.language", table.summary.language),
        ("summary.form", table.summary.form),
    ):
        if len(line) > _MAX_LABEL_CHARS or not line.isprintable():
            yield f"{what} has {len(line):,} characters or more than one line; it takes {_MAX_LABEL_CHARS} on one"
    yield from _iter_stage_problems(table.stages)
    stage, _, field = table.title_from.partition(".")
    if table.title_from and (not field or stage not in [one.id for one in table.stages]):
        yield f"title_from is {table.title_from!r}; it takes a stage and a field of it, as in stage.field"


def _iter_stage_problems(stages: list[StageTable]) -> Iterator[str]:
    ids = [stage.id for stage in stages]
    for number, stage in enumerate(stages, start=1):
        if ids.index(stage.id) != number - 1:
            yield f"stage {number} has the id {stage.id!r}, which an earlier one has"
        yield from (f"stage {number} {fault}" for fault in _iter_single_stage_problems(stage))


def _iter_single_stage_problems(stage: StageTable) -> Iterator[str]:
    """Yield the problems of a single stage, without regard to other stages."""
    if not _ID_PATTERN.fullmatch(stage.id):
        yield f"has the id {stage.id!r}; it takes small letters, digits, _ and -"
    if not stage.labels:
        yield "has no label"
    labels = [*stage.labels.items(), *(("phase", phase or "-") for phase in _texts_of(stage.phase))]
    labels += [(language, label) for language, label in stage.headings.items()]
    for language, label in labels:
        if len(label) > _MAX_LABEL_CHARS or not label.isprintable() or not label.strip():
            yield f"has a label ({language}) of {len(label):,} characters; it takes 1 to {_MAX_LABEL_CHARS} on one line"
    for instructions in _texts_of(stage.instructions):
        if len(instructions) > _MAX_INSTRUCTIONS_CHARS:
            yield f"has instructions of {len(instructions):,} characters, more than {_MAX_INSTRUCTIONS_CHARS:,}"
    for field in stage.required:
        if not field.strip() or not field.isprintable() or stage.required.count(field) > 1:
            yield f"requires {field!r}, which is blank or named twice"
    names = [one.name for one in stage.fields]
    for described in stage.fields:
        name, texts = described.name, [*described.labels.values(), *_texts_of(described.description)]
        if not name.strip() or not name.isprintable() or names.count(name) > 1:
            yield f"describes the field {name!r}, which is blank or described twice"
        if any(len(text) > _MAX_DESCRIPTION_CHARS or not text.isprintable() for text in texts):
            yield f"describes {name!r} with more than {_MAX_DESCRIPTION_CHARS} characters, or on several lines"


def _texts_of(text: LocalizedText) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())
