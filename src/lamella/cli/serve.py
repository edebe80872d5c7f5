"""``lamella serve``: the engine over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from lamella.cli.access import StoreOption
from lamella.cli.options import ModelOption
from lamella.errors import ExtraNotInstalledError, install_hint


def serve(
    *,
    vault: Annotated[
        Path | None, typer.Argument(help="Notes folder that conversations may read.", show_default=False)
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default="setting `serve`, or 127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; 0 selects a free one.", show_default="setting `serve`, or 8765")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes; more than one needs PostgreSQL.")] = 1,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    model: ModelOption = None,
    store: StoreOption = None,
) -> None:
    """Serve conversations over HTTP, and a page to read and continue them, until Ctrl-C.

    By default only this machine can connect.
    """
    try:
        from lamella.server.serving import ServerOptions, run_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "uvicorn", "starlette", "prometheus_client"):
            raise
        raise ExtraNotInstalledError(
            f"The server needs {error.name}, which is not installed.", hint=install_hint("server")
        ) from error
    options = ServerOptions(vault=vault, store=store, model=model, host=host, port=port)
    run_server(options, workers=workers, opens_page=open_page)
