"""Kinds of questions about code: the one function that answers them, and what the documented endpoints take."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.attach import BUDGET
from lamella.errors import CallError
from lamella.wiring.code import select_files

if TYPE_CHECKING:
    from lamella.engine.engine import Engine
    from lamella.engine.sending.events import Event
    from lamella.holdings import CodeSelection
    from lamella.runners.kinds.requests import FileRequest
    from lamella.runners.kinds.solving import Problem, Solution
    from lamella.runners.kinds.state import ChatState

    GivenState = ChatState | Mapping[str, object]


async def solve(
    engine: "Engine",
    prompt: str = "",
    *,
    messages: Sequence[Mapping[str, object]] = (),
    code: str = "",
    kind: str = "regular",
    state: "GivenState | None" = None,
    template: bool = True,
    model: str | None = None,
    conversation: str | None = None,
    files: Mapping[str, str] | None = None,
    budget: int = BUDGET,
    max_tokens: int | None = None,
    tell: "Callable[[Event], None] | None" = None,
) -> "Solution":
    """Answer one question of a kind, with the history that a client has: the reply, all of the history, the state.

    Without a ``conversation`` nothing is kept, and ``state`` is what the last solution gave; with one the store has the
    history, and ``messages`` may be left out. From ``files``, by path, are chosen those that a question about a
    codebase needs. ``tell`` hears of events on the way.
    """
    from lamella.runners.kinds.blocks import ChatKind
    from lamella.runners.kinds.requests import FileRequest, make_problem

    problem = make_problem(
        prompt,
        messages=messages,
        code=code,
        kind=kind,
        state=state,
        template=template,
        model=model,
        conversation=conversation,
        max_tokens=max_tokens,
    )
    if files and problem.kind is not ChatKind.CODEBASE:
        raise CallError(f"files go with no {problem.kind}.", hint="Choose the kind codebase, or leave them out.")
    chosen = FileRequest(dict(files), problem.prompt, budget, problem.model) if files else None
    return await _solve(engine, problem, chosen, tell=tell)


async def solve_request(
    engine: "Engine", body: object, *, tell: "Callable[[Event], None] | None" = None
) -> dict[str, object]:
    """The same from the body of a request to the answer's, in the names of the documented endpoint."""
    from lamella.core.values import replace
    from lamella.runners.kinds.requests import read_problem
    from lamella.views.code.solutions import view_solution

    problem, files, ignored = read_problem(body)
    if problem.model is not None:
        # A request is somebody else's word: it does not choose where keys go.
        engine.check_model(problem.model)
    solution = await _solve(engine, problem, files, tell=tell)
    return view_solution(replace(solution, ignored=ignored))


def open_solver(
    body: object, *, store: str | None = None, vault: Path | None = None, model: str | None = None
) -> "Engine":
    """What answers a request: over the store if that names a conversation to be kept in, else over none.

    What is not kept goes to the model that is set, else to the one that comes along.
    """
    from lamella.adapters.providers.places import DEMO_MODEL
    from lamella.wiring.python import open_engine
    from lamella.wiring.services import read_services
    from lamella.wiring.trust import find_store

    services = read_services()
    if isinstance(body, Mapping) and body.get("conversation"):
        return open_engine(find_store(store, services), vault=vault, model=model)
    return open_engine("memory:", vault=vault, model=model or services.settings.model or DEMO_MODEL)


def filter_request(body: object) -> dict[str, object]:
    """Files with their contents and a question come in, what was chosen of them comes out, with its content."""
    from lamella.runners.kinds.requests import read_filter
    from lamella.views.code.solutions import view_filter

    request, ignored = read_filter(body)
    return view_filter(_choose(request), ignored)


async def _solve(
    engine: "Engine", problem: "Problem", files: "FileRequest | None", *, tell: "Callable[[Event], None] | None"
) -> "Solution":
    from asyncio import to_thread

    from lamella.adapters.sources.code.attaching import attach_code
    from lamella.core.values import replace
    from lamella.runners.kinds.solving import solve_problem

    if files is not None:
        selection = await to_thread(_choose, files)
        # What is kept has its files beside the talk; where nothing is, they have to be part of what was said.
        kept = problem.conversation is not None
        more = {"attach": tuple(attach_code(selection))} if kept else {"code": _join(problem.code, selection.text)}
        problem = replace(problem, **more)
    return await solve_problem(engine, problem, tell=tell)


def _choose(request: "FileRequest") -> "CodeSelection":
    budget = BUDGET if request.budget is None else request.budget
    return select_files(request.files, request.question, budget=budget, model=request.model)


def _join(code: str, chosen: str) -> str:
    return f"{code}\n\n{chosen}" if code.strip() else chosen
