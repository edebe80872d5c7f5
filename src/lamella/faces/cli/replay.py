"""``lamella replay``: what a model would be sent on each turn of a conversation in a file."""

import sys
from typing import Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.replay_json import write_json
from lamella.faces.cli.replay_table import print_messages, print_table
from lamella.faces.cli.totals import Totals
from lamella.faces.cli.transcripts import find_folder, load_named
from lamella.faces.cli.waiting import counted
from lamella.wiring import replay_transcript


def replay(
    *,
    file: Annotated[str, typer.Argument(help="A transcript (docs/transcript.md), or - to read it from stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: envelopes, messages, costs.")] = False,
    messages: Annotated[bool, typer.Option("--messages", help="Print the messages of each turn as sent.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Print the verdict on every law; exit 1 if one fails.")
    ] = False,
    max_prefix_breaks: Annotated[
        int | None, typer.Option(min=0, help="With --check: exit 1 if the prefix moved more often.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="Override the layout: library or in_place.")] = None,
    window: Annotated[int | None, typer.Option(help="Override the window, in tokens.")] = None,
    model: Annotated[str | None, typer.Option(help="Override the model, as provider:name.")] = None,
) -> int:
    """Show, turn by turn, what a model would be sent, what moved, what was cached and what it costs.

    lamella replay examples/walkthrough.json --layout in_place
    """
    if as_json and messages:
        raise UsageError("--json and --messages exclude each other.", hint="--json holds the messages, too.")
    if max_prefix_breaks is not None and not check:
        raise UsageError("--max-prefix-breaks needs --check.", hint="Add --check.")
    transcript = load_named(file)
    overrides = {"layout": layout, "window": window, "model": model}
    turns = replay_transcript(transcript, overrides=overrides, beside=find_folder(file))
    if as_json or not sys.stdout.isatty():
        # Where turns are shown as they are built, nobody needs to be told how many there were.
        turns = counted(turns, "Replaying", total=len(transcript.turns))
    totals = Totals()
    passing = totals.counting(turns)
    if as_json:
        write_json(transcript.conversation, passing, totals=totals, out=sys.stdout)
    elif messages:
        print_messages(passing)
    else:
        print_table(transcript.conversation, passing, totals)
    return _verdict(totals, max_prefix_breaks, quiet=as_json) if check else 0


def _verdict(totals: Totals, allowed: int | None, *, quiet: bool) -> int:
    good = allowed is None or totals.prefix_breaks <= allowed
    limit = "" if allowed is None else f", {allowed:,} allowed"
    typer.echo(
        f"check {'passed' if good else 'failed'}: {totals.turns:,} turns hold every law; "
        f"the prefix moved {totals.prefix_breaks:,} times{limit}.",
        err=quiet or not good,
    )
    return 0 if good else 1
