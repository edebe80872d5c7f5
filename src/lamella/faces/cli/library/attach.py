"""``lamella attach`` and ``lamella refresh``: what the next turn of a conversation reads, read now and written down."""

from typing import Annotated

import typer

from lamella.attach import Attachment, find_policy
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.commands import EVERYTHING
from lamella.errors import UsageError
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption
from lamella.faces.cli.chat.attaching import with_policy
from lamella.faces.cli.chat.options import VaultOption
from lamella.faces.cli.library.doing import check_names, do
from lamella.wiring import open_files

QuestionOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="TEXT",
        help="What it is about: of a folder or tag that does not fit, such notes come first; else the last question.",
        show_default=False,
    ),
]


def attach(
    *,
    chat: ChatName,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="A file, folder, note, tag, or lines as in note.md:10-20."),
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option(metavar="PATH:10-20", help="Lines of a file as a selection; may be repeated.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="follow, snapshot or pin.", metavar="NAME", show_default=False)
    ] = None,
    question: QuestionOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Attach something to the next turn of a conversation: it is read now, and kept with it until then.

    lamella attach garden decisions/one-index.md --vault examples/vault
    """
    find_policy(policy)
    if not names and not select:
        raise UsageError("Nothing is named that is to be attached.", hint="As in lamella attach garden note.md.")
    named = check_names(names or ())

    def find() -> Ask:
        files = open_files(vault)
        found: list[Attachment] = [one for name in named for one in files.find(name.removeprefix("@"))]
        found += [files.select(name) for name in select or ()]
        attached = tuple(with_policy(one, policy).attachment() for one in found)
        return Ask(text=question or "", attach=attached)

    several = len(named) + len(select or ()) > 1
    do(chat, find, store=store, as_json=as_json, vault=vault, whole=several)


def refresh(
    *,
    chat: ChatName,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="What to read again, by its id; else all of it.")
    ] = None,
    question: QuestionOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Read what a conversation has attached again; what changed goes with the next turn, the rest stays as it is.

    lamella refresh garden --vault examples/vault
    """
    named = check_names(names) if names else (EVERYTHING,)
    do(chat, Ask(text=question or "", refresh=named), store=store, as_json=as_json, vault=vault)
