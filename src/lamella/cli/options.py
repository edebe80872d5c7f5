"""Options of all commands that send questions to a model."""

from pathlib import Path
from typing import Annotated

import typer

from lamella.conversation.runner_context import list_runners
from lamella.runners.registry import RUNNERS

ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="local, gguf:PATH, anthropic:NAME, openai:NAME, gemini:NAME or openai-compatible:URL#NAME.",
        show_default="setting `model`, or local",
    ),
]
VaultOption = Annotated[
    Path | None,
    typer.Option(help="Notes folder; paths are relative to it.", show_default="current folder"),
]
SystemOption = Annotated[
    str | None, typer.Option(help="System prompt, from the next message on.", metavar="TEXT", show_default=False)
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Setting of this conversation. Repeatable."),
]
ActiveNoteOption = Annotated[
    str | None,
    typer.Option("--active-note", metavar="PATH", help="The note that you have open; its images are sent too."),
]
RunnerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How to answer; `lamella runners` lists the runners.",
        show_default="setting `runner`",
        autocompletion=lambda: [*list_runners(RUNNERS).items()],
    ),
]
ChatOption = Annotated[
    str | None,
    typer.Option(
        "--chat",
        metavar="NAME",
        help="Continue or start this conversation and store the answer in it.",
        show_default="not stored",
    ),
]
PreviewOption = Annotated[bool, typer.Option("--preview", help="Show the request and its cost without sending it.")]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=1,
        help="Maximum answer length in tokens.",
        show_default="1024; 256 for the demo model",
    ),
]
