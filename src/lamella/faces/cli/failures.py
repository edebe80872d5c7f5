"""How a failure is told: a sentence and a hint on stderr, and as JSON on stdout where that was asked for."""

import json

import typer

from lamella.errors import BadInputError, LamellaError


def exit_code(error: LamellaError) -> int:
    """2 for what the caller can mend, 1 for work that could not be done."""
    return 2 if isinstance(error, BadInputError) else 1


def print_failure(error: LamellaError, *, as_json: bool) -> None:
    """Tell people, and programs that asked for JSON."""
    typer.echo(f"error: {error.message}", err=True)
    typer.echo(f"hint: {error.hint}", err=True)
    if as_json:
        body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        typer.echo(json.dumps(body, ensure_ascii=False))
