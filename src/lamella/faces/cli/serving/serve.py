"""``lamella serve``: the engine over HTTP, for any program."""

from pathlib import Path
from typing import Annotated

import typer

from lamella.errors import ExtraMissingError, tell_install
from lamella.faces.cli.access import StoreOption
from lamella.faces.cli.chat.options import ModelOption


def serve(
    *,
    vault: Annotated[
        Path | None, typer.Argument(help="A folder of notes that conversations may read.", show_default=False)
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen at; else this machine's own alone.", show_default=False)
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.", show_default=False)] = None,
    workers: Annotated[int, typer.Option(min=1, help="How many processes; more than one needs PostgreSQL.")] = 1,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Serve conversations over HTTP, to this machine alone unless settings say otherwise; Ctrl-C stops it."""
    try:
        from lamella.faces.server.serving import ServeOptions, run_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "uvicorn", "starlette", "prometheus_client"):
            raise
        raise ExtraMissingError(
            f"The server needs {error.name}, which is not installed.", hint=tell_install("server")
        ) from error
    run_server(ServeOptions(vault=vault, store=store, model=model, host=host, port=port), workers=workers)
