"""Options: what commands that talk with a model take alike."""

from pathlib import Path
from typing import Annotated

import typer

from lamella.engine.sending.job import list_runners
from lamella.runners.registry import RUNNERS

ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="local, gguf:PATH, anthropic:NAME, openai:NAME, gemini:NAME or openai-compatible:URL#NAME.",
        show_default=False,
    ),
]
VaultOption = Annotated[
    Path | None,
    typer.Option(help="A folder of notes that paths are meant in; else they are meant from here.", show_default=False),
]
SystemOption = Annotated[
    str | None, typer.Option(help="The system prompt, from the next question on.", metavar="TEXT", show_default=False)
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of this conversation; may be repeated."),
]
ActiveOption = Annotated[
    str | None,
    typer.Option("--active-note", metavar="PATH", help="The note that is open: its pictures are sent as well."),
]
RunnerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The way of answering, as `lamella runners` lists them.",
        show_default=False,
        autocompletion=lambda: [*list_runners(RUNNERS).items()],
    ),
]
KeptOption = Annotated[
    str | None,
    typer.Option(
        "--chat",
        metavar="NAME",
        help="Go on with this conversation, or begin it, and keep it; else nothing is kept.",
    ),
]
PreviewOption = Annotated[
    bool, typer.Option("--preview", help="Show what would be sent, and its cost; send and keep nothing.")
]
AnswerOption = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=1,
        help="How long an answer may be, in tokens; else 1,024, of local 256.",
        show_default=False,
    ),
]
