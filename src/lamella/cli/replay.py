"""``lamella replay``: show what a model would be sent on each turn of a transcript or a stored conversation."""

import shutil
import sys
from collections.abc import Iterable
from tempfile import TemporaryFile
from typing import Annotated, TextIO

import typer

from lamella import Turn
from lamella.cli.access import StoreOption
from lamella.cli.output import format_count, format_json, print_text, with_progress
from lamella.cli.replay_tables import print_messages, print_replay
from lamella.cli.transcripts import replay_named
from lamella.errors import UsageError
from lamella.schemas.ledger import ReplayTotals, replay_header_to_json, replay_totals_to_json
from lamella.schemas.prompts import turn_prompt_to_json
from lamella.wiring import read_services


def replay(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|CHAT",
            help="Transcript file (docs/reference/formats/transcript.md), - for stdin, or a conversation.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: envelopes, messages, costs.")] = False,
    messages: Annotated[bool, typer.Option("--messages", help="Print the messages of each turn as sent.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check every invariant; exit with 1 if one fails.")] = False,
    max_prefix_breaks: Annotated[
        int | None, typer.Option(min=0, help="With --check: exit with 1 if the prefix changed more often.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="Layout: auto, library or in_place.")] = None,
    window: Annotated[int | None, typer.Option(help="Context window in tokens.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, as provider:name.")] = None,
    store: StoreOption = None,
) -> int:
    """Show the prompt, cache use and cost of each turn.

    lamella replay examples/walkthrough.json --layout in_place
    """
    if as_json and messages:
        raise UsageError("Use either --json or --messages, not both.", hint="--json contains the messages.")
    if max_prefix_breaks is not None and not check:
        raise UsageError("--max-prefix-breaks needs --check.", hint="Add --check.")
    overrides = {"layout": layout, "window": window, "model": model}
    conversation, count, turns = replay_named(file, overrides=overrides, store=store, services=read_services())
    if as_json or not sys.stdout.isatty():
        # On a terminal each turn is printed as it is built, so a progress line would only be in the way.
        turns = with_progress(turns, "Replaying", total=count)
    totals = ReplayTotals()
    passing = totals.add_each_turn(turns)
    if as_json:
        _write_json(conversation, passing, totals=totals, out=sys.stdout)
    elif messages:
        print_messages(passing)
    else:
        print_replay(conversation, passing, totals)
    return _print_verdict(totals, max_prefix_breaks, quiet=as_json) if check else 0


def _write_json(conversation_key: str, turns: Iterable[Turn], *, totals: ReplayTotals, out: TextIO) -> None:
    """Write the JSON object to ``out`` once it is complete, so that an error leaves no half of it behind.

    Each turn goes to a temporary file as soon as it is built, so that memory contains one turn at a time.
    """
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as draft:
        written = False
        for turn in turns:
            draft.write(",\n" if written else _json_up_to_turns(conversation_key, turn) + "\n")
            draft.write(format_json(turn_prompt_to_json(turn)))
            written = True
        if not written:
            draft.write(_json_up_to_turns(conversation_key, None))
        draft.write(f'],\n"totals": {format_json(replay_totals_to_json(totals))}}}\n')
        draft.seek(0)
        shutil.copyfileobj(draft, out)


def _json_up_to_turns(conversation_key: str, first: Turn | None) -> str:
    """Return the JSON object up to its first turn."""
    head = format_json(replay_header_to_json(conversation_key, first))
    return head.removesuffix("}") + ', "turns": ['


def _print_verdict(totals: ReplayTotals, max_prefix_breaks: int | None, *, quiet: bool) -> int:
    good = (max_prefix_breaks is None or totals.prefix_breaks <= max_prefix_breaks) and not totals.differing_turns
    limit = "" if max_prefix_breaks is None else f", {max_prefix_breaks:,} allowed"
    print_text(
        f"check {'passed' if good else 'failed'}: {format_count(totals.turns, 'turn')} "
        f"{'satisfies' if totals.turns == 1 else 'satisfy'} every invariant; "
        f"the prefix changed {format_count(totals.prefix_breaks, 'time')}{limit}.{_format_request_checks(totals)}",
        err=quiet or not good,
    )
    return 0 if good else 1


def _format_request_checks(totals: ReplayTotals) -> str:
    """Return how many requests have the hash that was stored when they were sent; empty for transcripts."""
    differing, underivable = totals.differing_turns, totals.underivable_turns
    said = [f"{format_count(totals.verified_requests, 'request')} as sent, by the stored hash"]
    said = said if totals.verified_requests or differing or underivable else []
    said += [f"not as sent: turns {', '.join(map(str, differing))}"] if differing else []
    said += [f"cannot be derived: turns {', '.join(map(str, underivable))}"] if underivable else []
    return f" {'; '.join(said)}." if said else ""
