"""``lamella code``: what is done with code, a command each."""

import typer

from lamella.faces.cli.code.functions import add_functions, analyse
from lamella.faces.cli.code.select import select
from lamella.faces.cli.code.solve import filter_files, solve, state

code_app = typer.Typer(name="code", help="Choose files of a repository, and have code explained, tested or mended.")


@code_app.callback()
def code() -> None:
    """Choose files of a repository, and have code explained, tested or mended."""


code_app.command()(select)
add_functions(code_app)
code_app.command()(analyse)
code_app.command()(state)
code_app.command()(solve)
code_app.command("filter")(filter_files)
