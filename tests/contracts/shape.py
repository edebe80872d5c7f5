"""The shape of code: how long files and functions are, how they branch, and what they take by position."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef

_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a file may grow to."""

    file_lines: int
    function_lines: int = 50
    complexity: int = 8
    positional: int | None = 3


def find_breaches(source: str, limits: Limits) -> Iterator[str]:
    """Everything in a source that is over a limit, each as a sentence."""
    lines = source.count("\n") + (not source.endswith("\n"))
    if lines > limits.file_lines:
        yield f"has {lines} lines, over {limits.file_lines}"
    for function in _functions(ast.parse(source)):
        yield from _function_breaches(function, limits)


def _function_breaches(function: Function, limits: Limits) -> Iterator[str]:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if lines > limits.function_lines:
        yield f"{function.name} has {lines} lines, over {limits.function_lines}"
    branches = complexity(function)
    if branches > limits.complexity:
        yield f"{function.name} has complexity {branches}, over {limits.complexity}"
    taken = len(positional(function))
    if limits.positional is not None and taken > limits.positional:
        yield f"{function.name} takes {taken} parameters by position, over {limits.positional}"


def complexity(function: Function) -> int:
    """One, and one more for each place where the flow parts; nested functions count with the one they stand in."""
    return 1 + sum(isinstance(node, _BRANCHES) for node in ast.walk(function))


def positional(function: Function) -> list[str]:
    """The parameters that can be given by position, without the object a method belongs to."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _functions(module: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
