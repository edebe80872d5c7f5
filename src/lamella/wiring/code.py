"""Code selection and code questions, with the index in the folder that settings name.

``select_code`` selects the files of a folder for a question, and ``select_files`` from files given with their
contents. ``solve`` answers one code question for Python; ``solve_request`` and ``filter_request`` do it for the
request bodies of the code endpoints.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lamella.attach import DEFAULT_CODE_BUDGET
from lamella.errors import InvalidOperationError
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.sources import get_index_folder

if TYPE_CHECKING:
    from lamella.conversation.engine import Engine
    from lamella.conversation.turn_runner import TurnEvent
    from lamella.core.artifacts.model import Artifact, UnresolvedAttachment
    from lamella.ports import CodeSelection
    from lamella.runners.code_questions import CodeAnswer, CodeQuestion, InstructionsInPrompt
    from lamella.runners.code_requests import FileRequest
    from lamella.schemas.code import FilterResponseJson, SolutionJson

# Larger than any model's window.
MAX_CODE_BUDGET = 10_000_000
ProgressCallback = Callable[[int, int], None]


def select_code(
    folder: str | PathLike[str],
    question: str,
    *,
    budget: int = DEFAULT_CODE_BUDGET,
    recent_paths: Collection[str] = (),
    model: str | None = None,
    on_progress: ProgressCallback | None = None,
) -> "CodeSelection":
    """Select the files of a folder that match a question best, within a token budget.

    Files are included in full, as skeletons, or by name. ``recent_paths`` has paths in the folder that the conversation
    is about already. Tokens are counted for ``model``, by default the configured one. An index of the folder is kept
    between calls; ``on_progress`` is called with the number of files read for it and the total.
    """
    from lamella.conversation.validation import to_folder_path

    root = to_folder_path(folder)
    if root is None:
        raise InvalidOperationError("folder is None, not a folder.", hint="Give the folder that the code is in.")
    from lamella.sources.obsidian import read_ignore_rules

    choosing = ConfiguredCodeSelector(read_services(), model=model, on_progress=on_progress)
    hides = read_ignore_rules(root).is_hidden if root.is_dir() else None
    return choosing.select_files(
        root, question, root=root.as_posix(), budget=budget, recent_paths=recent_paths, is_hidden=hides
    )


def select_files(
    files: Mapping[str, str],
    question: str,
    *,
    budget: int = DEFAULT_CODE_BUDGET,
    recent_paths: Collection[str] = (),
    model: str | None = None,
) -> "CodeSelection":
    """Select from files that are passed with their contents, by path; nothing is stored and no other file is read."""
    from lamella.codebase.selection import select_from_texts
    from lamella.conversation.validation import check_text

    if not isinstance(files, Mapping) or not all(isinstance(one, str) for pair in files.items() for one in pair):
        raise InvalidOperationError("files are not texts by path.", hint='Give a dict such as {"src/main.py": "…"}.')
    services = read_services()
    return select_from_texts(
        files,
        check_text(question, "question", may_be_empty=False),
        secrets=services.secret_scanner,
        budget=_check_budget(budget),
        count_tokens=services.counter.get_tokenizer(model or services.settings.model).count,
        touched=_check_recent_paths(recent_paths),
    )


class ConfiguredCodeSelector:
    """Selects code from folders, with the settings that were read."""

    def __init__(
        self, services: ServiceContainer, *, model: str | None = None, on_progress: ProgressCallback | None = None
    ) -> None:
        self._services, self._model, self._on_progress = services, model, on_progress

    def select_files(
        self,
        folder: Path,
        question: str,
        *,
        root: str,
        budget: int = DEFAULT_CODE_BUDGET,
        recent_paths: Collection[str] = (),
        is_hidden: Callable[[str], bool] | None = None,
    ) -> "CodeSelection":
        from lamella.codebase.selection import select_from_folder
        from lamella.conversation.validation import check_text
        from lamella.retrieval.chunks import get_index_path

        services = self._services
        return select_from_folder(
            folder,
            check_text(question, "question", may_be_empty=False),
            index=get_index_path(folder, get_index_folder(services), file_suffix="code"),
            secrets=services.secret_scanner,
            is_hidden=is_hidden,
            root=root,
            budget=_check_budget(budget),
            count_tokens=services.counter.get_tokenizer(self._model or services.settings.model).count,
            touched=_check_recent_paths(recent_paths),
            report=self._on_progress,
        )


class LazyCodeReader:
    """Selects code from folders of a vault; the code for that is imported on first use, because few turns need it."""

    def __init__(self, vault: Path, services: ServiceContainer) -> None:
        self._vault, self._services = vault, services

    def select_files(
        self, attachment: "UnresolvedAttachment", *, question: str, recent_paths: Collection[str]
    ) -> "tuple[Sequence[Artifact], Sequence[str]]":
        from lamella.codebase.attachments import VaultCodeReader

        reader = VaultCodeReader(self._vault, ConfiguredCodeSelector(self._services).select_files)
        return reader.select_files(attachment, question=question, recent_paths=recent_paths)


def _check_budget(budget: object) -> int:
    if not isinstance(budget, int) or isinstance(budget, bool) or not 0 < budget <= MAX_CODE_BUDGET:
        raise InvalidOperationError(
            f"Invalid budget: {budget!r}", hint=f"Give a number of tokens from 1 to {MAX_CODE_BUDGET:,}."
        )
    return budget


def _check_recent_paths(recent_paths: object) -> Collection[str]:
    if isinstance(recent_paths, str) or not isinstance(recent_paths, Collection):
        raise InvalidOperationError("touched is not a list of paths.", hint="Give a list of them.")
    return [str(path) for path in recent_paths]


if TYPE_CHECKING:
    from lamella.conversation.engine import Engine
    from lamella.conversation.turn_runner import TurnEvent
    from lamella.ports import CodeSelection
    from lamella.runners.code_questions import CodeAnswer, CodeQuestion, InstructionsInPrompt
    from lamella.runners.code_requests import FileRequest

    TaskStateInput: TypeAlias = InstructionsInPrompt | Mapping[str, object]


# Code questions.


async def ask_about_code(
    engine: "Engine",
    prompt: str = "",
    *,
    messages: Sequence[Mapping[str, object]] = (),
    code: str = "",
    task: str = "regular",
    task_state: "TaskStateInput | None" = None,
    use_template: bool = True,
    model: str | None = None,
    conversation_key: str | None = None,
    files: Mapping[str, str] | None = None,
    budget: int = DEFAULT_CODE_BUDGET,
    max_tokens: int | None = None,
    on_event: "Callable[[TurnEvent], None] | None" = None,
) -> "CodeAnswer":
    """Answer one code question, and return the reply, the whole history and the task state.

    Without a ``conversation_key`` nothing is stored; pass the ``messages`` so far, and as ``task_state`` the one of the
    last answer. With a ``conversation_key`` the store has the history, and ``messages`` may be left out. From
    ``files``, by path, Lamella selects those that a question of the kind ``codebase`` needs. ``on_event`` is called
    with each event.
    """
    from lamella.runners.code_questions import CodeTask
    from lamella.runners.code_requests import FileRequest, build_code_question

    problem = build_code_question(
        prompt,
        messages=messages,
        code=code,
        kind=task,
        state=task_state,
        template=use_template,
        model=model,
        conversation_key=conversation_key,
        max_tokens=max_tokens,
    )
    if files and problem.task is not CodeTask.CODEBASE:
        raise InvalidOperationError(
            f"files go with no {problem.task}.", hint="Choose the kind codebase, or leave them out."
        )
    chosen = FileRequest(dict(files), problem.prompt, budget, problem.model) if files else None
    return await _answer_with_files(engine, problem, chosen, on_event=on_event)


def resolve_request_model(
    name: str, *, default: str, allowed: Collection[str] = (), services: ServiceContainer | None = None
) -> tuple[str, str]:
    """Return the model for a name that a client sends, and a warning if it is another model than the named one.

    Clients of this API often name a model of their own service, such as ``gpt-4o-mini``. If such a name is not
    configured here, the default answers. A name with a provider's prefix is meant for Lamella, so it stays.
    """
    from lamella.providers.registry import find_provider_entry
    from lamella.settings.model import mask_url_secrets
    from lamella.wiring.providers import find_model_problem

    named = next((one for one in (default, *allowed) if name in (one, one.partition(":")[2])), None)
    if named is not None:
        return named, ""
    entry = find_provider_entry(name.partition(":")[0])
    is_lamella_name = entry is not None and entry.create_provider is not None
    if is_lamella_name or find_model_problem(name, services=services) is None:
        return name, ""
    return default, f"The model {name} is not configured here; {mask_url_secrets(default)} is used."


def with_configured_model(body: object, default: str | None) -> tuple[object, tuple[str, ...]]:
    """Return a request whose model can be used here, and a warning if that is another one than it names.

    ``default`` is used in its place, by default the configured model, or else the demo model.
    """
    name = body.get("model") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(name, str) or not name.strip():
        return body, ()
    from lamella.providers.open_provider import DEMO_MODEL

    services = read_services()
    usual = default or services.settings.model or DEMO_MODEL
    model, warning = resolve_request_model(name, default=usual, services=services)
    return {**body, "model": model}, (warning,) if warning else ()


async def solve_request(
    engine: "Engine",
    body: object,
    *,
    warnings: Sequence[str] = (),
    on_event: "Callable[[TurnEvent], None] | None" = None,
) -> "SolutionJson":
    """Answer a code question from a request body, and return the response body of the code endpoint.

    ``warnings`` are added to those of the answer.
    """
    from lamella.core.values import replace
    from lamella.runners.code_requests import parse_code_question
    from lamella.schemas.code import solution_to_json

    problem, files, ignored = parse_code_question(body)
    if problem.model is not None:
        # The client of a request is not the user who owns the keys, so it may not choose where they are sent.
        engine.check_model_is_trusted(problem.model)
    solution = await _answer_with_files(engine, problem, files, on_event=on_event)
    return solution_to_json(replace(solution, ignored=ignored, warnings=(*warnings, *solution.warnings)))


def open_engine_for_request(
    body: object, *, store: str | None = None, vault: Path | None = None, model: str | None = None
) -> "Engine":
    """Open the engine that answers a request: over the store if the request names a conversation, else in memory.

    Without a conversation the default is the configured model, or else the demo model.
    """
    from lamella.providers.open_provider import DEMO_MODEL
    from lamella.wiring.python import open_engine
    from lamella.wiring.services import read_services
    from lamella.wiring.trust import resolve_store_url

    services = read_services()
    if isinstance(body, Mapping) and body.get("conversation"):
        return open_engine(resolve_store_url(store, services), vault=vault, model=model)
    return open_engine("memory:", vault=vault, model=model or services.settings.model or DEMO_MODEL)


def select_files_for_request(body: object, *, warnings: Sequence[str] = ()) -> "FilterResponseJson":
    """Select from the files in a request body for its question, and return the response body with their contents.

    ``warnings`` are added to those of the selection.
    """
    from lamella.core.values import replace
    from lamella.runners.code_requests import parse_filter_request
    from lamella.schemas.code import filter_to_json

    request, ignored = parse_filter_request(body)
    selection = _select_requested_files(request)
    return filter_to_json(replace(selection, warnings=(*warnings, *selection.warnings)), ignored)


async def _answer_with_files(
    engine: "Engine",
    question: "CodeQuestion",
    files: "FileRequest | None",
    *,
    on_event: "Callable[[TurnEvent], None] | None",
) -> "CodeAnswer":
    from asyncio import to_thread

    from lamella.codebase.attachments import selection_to_attachments
    from lamella.core.values import replace
    from lamella.runners.code_questions import answer_code_question

    if files is not None:
        selection = await to_thread(_select_requested_files, files)
        # A stored conversation has its files as attachments. Otherwise they must be part of the message itself, because
        # the client's history is all that remains for the next question.
        kept = question.conversation is not None
        more = (
            {"attach": tuple(selection_to_attachments(selection))}
            if kept
            else {"code": _append_code(question.code, selection.text)}
        )
        question = replace(question, **more)
    return await answer_code_question(engine, question, on_event=on_event)


def _select_requested_files(request: "FileRequest") -> "CodeSelection":
    budget = DEFAULT_CODE_BUDGET if request.budget is None else request.budget
    return select_files(request.files, request.question, budget=budget, model=request.model)


def _append_code(code: str, selected: str) -> str:
    return f"{code}\n\n{selected}" if code.strip() else selected
