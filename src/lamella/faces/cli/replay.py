"""``lamella replay``: what a model would be sent on each turn of a conversation, in a file or kept."""

import json
import shutil
import sys
from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import Annotated, TextIO

import typer

from lamella import Turn
from lamella.errors import UsageError
from lamella.faces.cli.access import StoreOption
from lamella.faces.cli.tables.replay import print_messages, print_table
from lamella.faces.cli.terminal.lines import show_json, tell_count
from lamella.faces.cli.terminal.progress import counted
from lamella.faces.cli.terminal.telling import tell
from lamella.faces.cli.transcripts import replay_named
from lamella.views.totals import Totals, view_totals
from lamella.views.turns import view_head, view_turn
from lamella.wiring import read_services


def replay(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|CHAT", help="A transcript (docs/transcript.md), - for stdin, or a kept conversation."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: envelopes, messages, costs.")] = False,
    messages: Annotated[bool, typer.Option("--messages", help="Print the messages of each turn as sent.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Print the verdict on every law; exit 1 if one fails.")
    ] = False,
    max_prefix_breaks: Annotated[
        int | None, typer.Option(min=0, help="With --check: exit 1 if the prefix moved more often.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="Override the layout: auto, library or in_place.")] = None,
    window: Annotated[int | None, typer.Option(help="Override the window, in tokens.")] = None,
    model: Annotated[str | None, typer.Option(help="Override the model, as provider:name.")] = None,
    store: StoreOption = None,
) -> int:
    """Show, turn by turn, what a model would be sent, what moved, what was cached and what it costs.

    lamella replay examples/walkthrough.json --layout in_place
    """
    if as_json and messages:
        raise UsageError("--json and --messages exclude each other.", hint="--json holds the messages, too.")
    if max_prefix_breaks is not None and not check:
        raise UsageError("--max-prefix-breaks needs --check.", hint="Add --check.")
    overrides = {"layout": layout, "window": window, "model": model}
    conversation, count, turns = replay_named(file, overrides=overrides, store=store, services=read_services())
    if as_json or not sys.stdout.isatty():
        # Where turns are shown as they are built, nobody needs to be told how many there were.
        turns = counted(turns, "Replaying", total=count)
    totals = Totals()
    passing = totals.count(turns)
    if as_json:
        _write_json(conversation, passing, totals=totals, out=sys.stdout)
    elif messages:
        print_messages(passing)
    else:
        print_table(conversation, passing, totals)
    return _verdict(totals, max_prefix_breaks, quiet=as_json) if check else 0


def _write_json(conversation: str, turns: Iterable[Turn], *, totals: Totals, out: TextIO) -> None:
    """Write the object when it is whole: an error on the way leaves no half of it behind.

    A turn is written as soon as it is built, so that memory holds one of them at a time.
    """
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as draft:
        written = False
        for turn in turns:
            draft.write(",\n" if written else _open_object(conversation, turn) + "\n")
            draft.write(show_json(json.dumps(view_turn(turn), ensure_ascii=False)))
            written = True
        if not written:
            draft.write(_open_object(conversation, None))
        draft.write(f'],\n"totals": {json.dumps(view_totals(totals))}}}\n')
        draft.seek(0)
        shutil.copyfileobj(draft, out)


def _open_object(conversation: str, first: Turn | None) -> str:
    """The object up to its first turn."""
    head = show_json(json.dumps(view_head(conversation, first), ensure_ascii=False))
    return head.removesuffix("}") + ', "turns": ['


def _verdict(totals: Totals, allowed: int | None, *, quiet: bool) -> int:
    good = allowed is None or totals.prefix_breaks <= allowed
    limit = "" if allowed is None else f", {allowed:,} allowed"
    tell(
        f"check {'passed' if good else 'failed'}: {tell_count(totals.turns, 'turn')} "
        f"{'holds' if totals.turns == 1 else 'hold'} every law; "
        f"the prefix moved {tell_count(totals.prefix_breaks, 'time')}{limit}.",
        err=quiet or not good,
    )
    return 0 if good else 1
